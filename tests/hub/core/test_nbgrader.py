"""A course of nbgrader that is taken over, as nbgrader itself wrote it."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs
from sqlalchemy import Connection

from tests.hub.core.course import START_MS, Classroom
from warpbook_hub import audit
from warpbook_hub.cli.nbgrader_gradebook import BadGradebook, read_course
from warpbook_hub.course.nbgrader_course import (
    NbgraderAssignment,
    NbgraderChanges,
    NbgraderCourse,
    NbgraderMark,
    NbgraderStudent,
)
from warpbook_hub.course.next_term import Term, copy_course
from warpbook_hub.course.publications import publications, withdraw
from warpbook_hub.errors import NotOpen
from warpbook_hub.exports.grades import grades
from warpbook_hub.rules.lateness import DAY_H, HOUR_MS
from warpbook_hub.work.decisions import last_decisions, override
from warpbook_hub.work.nbgrader_import import import_nbgrader
from warpbook_hub.work.submissions import receive

DATABASES = ("sqlite", "postgres")
DATA = Path(__file__).parent / "nbgrader"
NOW_MS = START_MS + 60 * DAY_H * HOUR_MS
HARM = "=HYPERLINK(1)"


def gradebook(folder: Path, *changes: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "gradebook.db").unlink(missing_ok=True)
    with closing(sqlite3.connect(folder / "gradebook.db")) as connection:
        connection.executescript((DATA / "gradebook.sql").read_text("utf-8"))
        connection.executescript(";".join(changes))
    return folder


#: a teacher of nbgrader grades what waited there
GRADED = "UPDATE grade SET manual_score = 2, needs_manual_grade = 0 WHERE cell_id = "
GRADED += "(SELECT id FROM base_cell WHERE name = 'report') AND needs_manual_grade"


def taken_over(
    room: Classroom, connection: Connection, given: NbgraderCourse
) -> NbgraderChanges:
    room.now_ms = NOW_MS
    return import_nbgrader(connection, NOW_MS, room.instructor, "gpu101", given)


def test_marks_are_those_that_nbgrader_exports(room: Classroom, tmp_path: Path) -> None:
    folder = gradebook(tmp_path / "course")
    with room.database.write() as connection:
        told = taken_over(room, connection, read_course(folder))
        again = taken_over(room, connection, read_course(folder))
        of_learners = {
            (one.student_id, lab.assignment): lab
            for one in grades(connection, NOW_MS, "gpu101")
            for lab in one.labs
        }
        lines = audit.entries(connection, course="gpu101")
        labs = {lab.title: lab for lab in publications(connection, "gpu101")}
    assert [(lab.name, lab.how) for lab in told.labs] == [
        ("ps1", "new"),
        ("Essay 2", "new"),
        ("ps3", "refused"),
    ]
    tests = (
        "cells graded by tests 2; not graded here, since its tests run in the kernel"
    )
    assert told.labs[0].about.startswith(tests)
    by_hand = "cells graded by hand 1; not graded here, since people grade its answers"
    assert told.labs[1].about == by_hand
    # eve's report has no points yet, and 0 is not what she has
    assert told.labs[2].about == "of eve a cell waits for its grade by hand"
    assert told.roster.added == ("ben", "cy", "dora", "eve")
    assert told.roster.hidden == ()
    # all that was handed in, and for the rest nothing is made up
    with (DATA / "grades.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["assignment"] in labs]
    assert len(rows) == 10
    for row in rows:
        lab = labs[row["assignment"]]
        grade = of_learners[row["student_id"].lower(), lab.lab]
        assert (grade.score or 0.0, grade.max_score) == (
            float(row["score"]),
            float(row["max_score"]),
        )
        is_there = grade.status == "graded"
        assert is_there or (grade.status, float(row["score"])) == ("not handed in", 0)
    # what learners are shown, somebody looks at first
    assert labs["ps1"].is_hidden and not labs["ps1"].takes_submissions
    with room.database.read() as connection:
        reasons = {
            one.reason for one in last_decisions(connection, labs["ps1"].id).values()
        }
    assert (
        "From nbgrader: 5, less 1 for lateness; handed in 2026-09-11 10:00 UTC; "
        "test_small 2 of 2; test_negative 3 of 3" in reasons
    )
    assert any("extension of 48 h" in reason for reason in reasons)
    # again is nothing, and the log says once what was done
    assert {lab.how for lab in again.labs} == {"unchanged", "refused"}
    assert sum(lab.written for lab in again.labs) == again.roster.counts["changed"] == 0
    assert [line.action for line in lines].count("nbgrader imported") == 1
    assert "lab published" not in [line.action for line in lines[-1:]]


def test_mark_that_was_given_here_is_kept_unless_told(
    room: Classroom, tmp_path: Path
) -> None:
    folder = gradebook(tmp_path / "course")
    who = (NOW_MS, room.instructor)
    with room.database.write() as connection:
        taken_over(room, connection, read_course(folder))
        labs = {lab.title: lab.id for lab in publications(connection, "gpu101")}
        override(connection, *who, labs["ps1"], room.people["ada"], 3.5, "I looked")
        withdraw(connection, *who, labs["Essay 2"], "not here")
    gradebook(folder, GRADED, "UPDATE grade SET auto_score = 1 WHERE auto_score = 2")
    with room.database.write() as connection:
        given = read_course(folder)
        kept = taken_over(room, connection, given)
        (ada,) = (
            one
            for person, one in last_decisions(connection, labs["ps1"]).items()
            if person == room.people["ada"]
        )
        told = taken_over(room, connection, structs.replace(given, replaces=True))
    assert ada.points == 3.5
    assert kept.labs[0].examples[0] == "ada 4, kept as it was given here: 3.5"
    assert (kept.labs[0].kept, kept.labs[0].written) == (1, 3)
    assert "ben 3 (before: 4)" in kept.labs[0].examples
    assert (kept.labs[1].how, kept.labs[1].about) == (
        "refused",
        "it was withdrawn here",
    )
    # what was graded in nbgrader since comes now
    assert (kept.labs[2].how, kept.labs[2].written) == ("new", 3)
    assert told.labs[0].examples == ("ada 4 (before: 3.5)",)


def test_nothing_can_be_handed_in_and_next_term_has_none_of_it(
    room: Classroom, tmp_path: Path
) -> None:
    folder = gradebook(tmp_path / "course")
    with room.database.write() as connection:
        taken_over(room, connection, read_course(folder))
        (lab,) = (
            one for one in publications(connection, "gpu101") if one.title == "ps1"
        )
        for name in ("ada", "grace"):
            with pytest.raises(NotOpen, match="come from nbgrader"):
                receive(connection, NOW_MS, lab.id, room.people[name], "// mine")
        term = Term("gpu102", "Again", 7, "UTC")
        copied = copy_course(connection, NOW_MS, room.instructor, "gpu101", term)
    assert len(copied.labs) == 1 and copied.labs[0].startswith("Vector add")


def test_what_can_not_be_meant_is_refused_in_words(room: Classroom) -> None:
    mark = NbgraderMark(1, "1")
    students = ("Ada", "ada", "../../etc/passwd", HARM, "grace", "fay")
    given = NbgraderCourse(
        (*map(NbgraderStudent, students), NbgraderStudent("gus", "\u202egnirts")),
        (
            NbgraderAssignment("../../ps1", 5, marks={"fay": mark, "grace": mark}),
            NbgraderAssignment(HARM, 5, marks={"nobody": mark}),
            NbgraderAssignment("later", 5, NOW_MS + 1),
            NbgraderAssignment("nothing", 0),
            NbgraderAssignment("a\nb", 5),
            NbgraderAssignment("PS_1", 5),
            NbgraderAssignment("ps-1", 5),
        ),
    )
    with room.database.write() as connection:
        told = taken_over(room, connection, given)
        labs = [lab.lab for lab in publications(connection, "gpu101")]
    hows = [(lab.how, lab.written) for lab in told.labs]
    assert hows[:2] == [("new", 1), ("new", 0)]
    assert [how for how, _ in hows[2:]] == ["refused"] * 3 + ["new"] * 2
    assert "import it again after that" in told.labs[2].about
    assert len({*labs}) == len(labs) == 5
    assert told.roster.added == ("fay",)
    assert len(told.left_out) == 5
    assert "grace: staff here, so no marks" in told.left_out


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["DROP TABLE task_cells"], "`nbgrader db upgrade`"),
        (["ALTER TABLE grade DROP COLUMN extra_credit"], "lacks extra_credit"),
        (
            # a view that never ends, by the name of a table
            [
                "ALTER TABLE student RENAME TO s",
                "CREATE VIEW student AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL "
                "SELECT id + 1 FROM n) SELECT id, '' first_name, '' last_name, '' "
                "email FROM n",
            ],
            "table `student` lacks",
        ),
    ],
)
@pytest.mark.sqlite
def test_gradebook_of_another_kind_is_refused(
    tmp_path: Path, changes: list[str], words: str
) -> None:
    with pytest.raises(BadGradebook, match=words):
        read_course(gradebook(tmp_path / "course", *changes))


@pytest.mark.sqlite
def test_files_that_are_no_gradebook_are_refused(tmp_path: Path) -> None:
    folder = gradebook(tmp_path / "course")
    path = folder / "gradebook.db"
    whole = path.read_bytes()
    path.write_bytes(whole[:5_000])
    with pytest.raises(BadGradebook, match="can't be read"):
        read_course(folder)
    path.write_bytes(b"no database at all")
    with pytest.raises(BadGradebook, match="can't be read"):
        read_course(folder)
    (tmp_path / "other.db").write_bytes(whole)
    path.unlink()
    path.symlink_to(tmp_path / "other.db")
    with pytest.raises(BadGradebook, match="is no file"):
        read_course(folder)
    with pytest.raises(BadGradebook, match="is no file"):
        read_course(tmp_path / "nowhere")
    gradebook(folder)
    (folder / "gradebook.db-journal").touch()
    with pytest.raises(BadGradebook, match="in use"):
        read_course(folder)


@pytest.mark.sqlite
def test_values_of_other_kinds_are_no_points(tmp_path: Path) -> None:
    folder = gradebook(
        tmp_path / "course",
        "UPDATE grade_cells SET max_score = 9e999 WHERE max_score = 2",
        "UPDATE grade SET manual_score = 'all' WHERE manual_score = 9",
        "UPDATE submitted_assignment SET timestamp = 'x', student_id = x'00ff' WHERE "
        "student_id = 'eve'",
    )
    # what was collected and never graded is not left out without a word
    (folder / "submitted" / "zoe" / "ps3").mkdir(parents=True)
    (folder / "source" / "ps4").mkdir(parents=True)
    (folder / "source" / "ps5").symlink_to(tmp_path)
    labs = {lab.name: lab for lab in read_course(folder).assignments}
    assert "points of a cell are no number" in labs["ps1"].problem
    assert "a score is no number" in labs["Essay 2"].problem
    assert "1 submissions: run `nbgrader autograde`" in labs["ps3"].problem
    assert "not in the gradebook" in labs["ps4"].problem
    assert "ps5" not in labs

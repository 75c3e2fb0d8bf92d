"""What a learner gets, and what people decide about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hub.core.course import (
    CLOSES_MS,
    DUE_MS,
    START_MS,
    WINDOW,
    Classroom,
    classroom,
    facts,
    publish_lab,
)
from warpbook_hub import audit
from warpbook_hub.class_view import class_rows
from warpbook_hub.course.courses import Course
from warpbook_hub.course.mark_settings import hide_marks
from warpbook_hub.course.publications import (
    publication,
    publish,
    reference,
    reference_from,
    withdraw,
)
from warpbook_hub.errors import BadRequest, Conflict, Forbidden, NotFound, NotOpen
from warpbook_hub.rules.lateness import HOUR_MS, Window
from warpbook_hub.rules.points import PointScheme, Threshold
from warpbook_hub.rules.totals import Mark, Total, total
from warpbook_hub.rules.visibility import Viewer
from warpbook_hub.work.appeals import Change, answer_appeal, appeal, appeals
from warpbook_hub.work.decisions import excuse, override, overrides, regrade
from warpbook_hub.work.marks import all_marks, marks_of, own_marks
from warpbook_hub.work.results import results, standing, without_result
from warpbook_hub.work.submissions import is_genuine, receipt, submissions_of

DATABASES = ("sqlite", "postgres")
SCHEME = PointScheme((Threshold("right", 0.5, 5), Threshold("right", 1, 10)))


def mark(room: Classroom, name: str = "ada") -> Mark:
    with room.database.read() as connection:
        [only] = marks_of(connection, room.now_ms, "gpu101", room.people[name])
    return only


@pytest.mark.parametrize(("gpus", "most"), [(0, 10), (1, 15)])
def test_speed_that_nobody_could_reach_is_left_out_for_everybody(
    tmp_path: Path, gpus: int, most: int
) -> None:
    levels = (Threshold("right", 1, 10), Threshold("of_baseline", 2, 5))
    room = classroom(tmp_path / "hub.db", scheme=PointScheme(levels))
    grader = room.grader(gpus=gpus)
    given = room.submit("ada")
    room.grade(grader, facts("wrong", 1))
    with room.database.read() as connection:
        result = standing(connection, given.submission).result
    assert result is not None
    # of a wrong source, of nothing handed in, and on the submission's page
    seen = (mark(room).most_points, mark(room, "bob").most_points, result.points.of)
    assert seen == (most, most, most)
    room.database.close()


def test_the_best_attempt_counts(tmp_path: Path) -> None:
    room = classroom(tmp_path / "hub.db", scheme=SCHEME)
    grader = room.grader()
    best = None
    for right in (1, 3, 2):
        given = room.submit("ada", f"// {right}")
        best = given.submission if right == 3 else best
        room.grade(grader, facts("wrong", right))
    best_mark = mark(room)
    assert (best_mark.points, best_mark.computed.submission) == (5, best)
    nothing = mark(room, "bob")
    assert (nothing.state, nothing.points) == ("not handed in", None)
    assert nothing.computed.submission is None
    room.database.close()


def test_time_of_receipt_decides_lateness_not_time_of_grading(tmp_path: Path) -> None:
    room = classroom(tmp_path / "hub.db", late_percent_per_day=25)
    grader = room.grader()
    room.now_ms = DUE_MS - 1
    in_time = room.submit("ada")
    late = room.submit("bob")
    assert (in_time.late_hours, late.late_hours) == (0, 1)
    room.now_ms = CLOSES_MS + HOUR_MS
    for _ in range(2):
        room.grade(grader)
    assert (mark(room).points, mark(room, "bob").points) == (10, 7.5)
    room.database.close()


def test_the_late_budget_of_a_course_is_spent_for_the_learner(tmp_path: Path) -> None:
    course = Course("gpu101", "GPUs", late_budget_h=48)
    room = classroom(tmp_path / "hub.db", course, late_percent_per_day=50)
    with room.database.write() as connection:
        other = publish_lab(
            connection, "gpu101", lab="transpose", late_percent_per_day=50
        )
    grader, first = room.grader(), room.lab
    room.now_ms = DUE_MS + 30 * HOUR_MS
    room.submit("ada")
    room.grade(grader)
    room.lab = other
    room.now_ms = DUE_MS + 40 * HOUR_MS
    room.submit("ada")
    room.grade(grader)
    with room.database.read() as connection:
        marks = {
            m.publication: m
            for m in marks_of(connection, room.now_ms, "gpu101", room.people["ada"])
        }
    spent = sorted(m.computed.budget_hours for m in marks.values())
    # 31 hours save one lab whole, and 17 more a day of the other
    assert sum(m.points for m in marks.values()) == 15 and sum(spent) <= 48
    assert marks[first].points == 10
    room.database.close()


def test_late_hours_are_not_spent_where_points_are_set(tmp_path: Path) -> None:
    course = Course("gpu101", "GPUs", late_budget_h=24)
    room = classroom(tmp_path / "hub.db", course, late_percent_per_day=50)
    with room.database.write() as connection:
        other = publish_lab(
            connection, "gpu101", lab="transpose", late_percent_per_day=50
        )
    grader, first = room.grader(), room.lab
    for lab in (first, other):
        room.lab, room.now_ms = lab, DUE_MS + 20 * HOUR_MS
        room.submit("ada")
        room.grade(grader)
    by_lab = _by_lab(room, "ada")
    # the hours are enough for one of them
    assert sorted(one.points for one in by_lab.values()) == [5, 10]
    (saved,) = [lab for lab, one in by_lab.items() if one.points == 10]
    with room.database.write() as connection:
        ada = room.people["ada"]
        override(connection, room.now_ms, room.instructor, saved, ada, 8, "looked at")
    assert {lab: one.points for lab, one in _by_lab(room, "ada").items()} == {
        saved: 8,
        (first if saved == other else other): 10,
    }
    room.database.close()


def _by_lab(room: Classroom, name: str) -> dict[str, Mark]:
    with room.database.read() as connection:
        of_person = marks_of(connection, room.now_ms, "gpu101", room.people[name])
    return {one.publication: one for one in of_person}


def test_a_team_shares_marks(tmp_path: Path) -> None:
    room = classroom(tmp_path / "hub.db", is_team_work=True)
    room.submit("bob")
    room.grade(room.grader())
    points = [mark(room, name).points for name in ("ada", "bob", "cyd")]
    assert points == [None, 10, 10]
    room.database.close()


def test_a_receipt_is_genuine_also_after_its_submission_is_lost(
    room: Classroom,
) -> None:
    given = room.submit("ada")
    with room.database.write() as connection:
        assert receipt(connection, given.submission) == given
        for table in ("jobs", "submission_members", "submissions"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
        assert is_genuine(connection, given, "ada")
        for change in ({"received_ms": 1}, {"number": 2}, {"source_digest": "0" * 64}):
            forged = type(given)(**{**as_dict(given), **change})
            assert not is_genuine(connection, forged, "ada")
        assert not is_genuine(connection, given, "bob")


def as_dict(struct: object) -> dict[str, object]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}  # type: ignore[attr-defined]


def test_an_override_counts_until_it_is_taken_back(room: Classroom) -> None:
    room.submit("ada")
    room.grade(room.grader(), facts("wrong", 1))
    ada = room.people["ada"]

    def set_to(points: float | None, reason: str = "its idea is right") -> None:
        with room.database.write() as connection:
            override(
                connection, room.now_ms, room.instructor, room.lab, ada, points, reason
            )

    set_to(4)
    set_to(6.5)
    assert (mark(room).points, mark(room).override) == (6.5, 6.5)
    for points, reason in ((float("nan"), "x"), (-1, "x"), (5, " ")):
        with pytest.raises(BadRequest):
            set_to(points, reason)
    set_to(None)
    assert (mark(room).points, mark(room).override) == (0, None)
    with room.database.read() as connection:
        made = overrides(connection, room.lab, ada)
        entries = audit.entries(connection, subject=ada, course="gpu101")
    assert [one.points for one in made] == [4, 6.5, None]
    assert [entry.action for entry in entries].count("points set") == 3


def test_a_regrade_counts_once_it_has_ended_and_keeps_what_was_before(
    room: Classroom,
) -> None:
    grader = room.grader(gpus=1)
    given = room.submit("ada")
    room.grade(grader, facts("wrong", 1))
    with room.database.write() as connection:
        ids = [given.submission]
        regrade(connection, room.now_ms, room.instructor, ids, "a mistake of ours")
        with pytest.raises(BadRequest):
            regrade(connection, room.now_ms, room.instructor, ids, "")
    room.grade(grader)
    # a GPU has yet to tell: what came first still counts
    assert mark(room).points == 0
    room.grade(grader, device="GPU-one-0")
    assert mark(room).points == 10
    with room.database.read() as connection:
        all_results = results(connection, given.submission)
    assert [(one.run, one.stage) for one in all_results] == [
        (1, "cpu"),
        (2, "cpu"),
        (2, "gpu"),
    ]


def test_a_regrade_of_what_was_replaced_makes_it_count(room: Classroom) -> None:
    grader = room.grader()
    older = room.submit("ada", "// older, and right")
    room.submit("ada", "// newer, and wrong", replace=True)
    room.grade(grader, facts("wrong", 1))
    assert mark(room).points == 0
    with room.database.write() as connection:
        ids = [older.submission]
        regrade(connection, room.now_ms, room.instructor, ids, "they asked for it")
    room.grade(grader)
    assert mark(room).points == 10
    with room.database.read() as connection:
        assert standing(connection, older.submission).state == "graded"


def test_an_appeal_is_made_once_in_time_and_answered(room: Classroom) -> None:
    room.submit("ada")
    job = room.grade(room.grader(), facts("wrong", 1)).job
    ada, bob = room.people["ada"], room.people["bob"]
    with room.database.write() as connection:
        with pytest.raises(NotFound):
            appeal(connection, room.now_ms, bob, job, "I want it, too")
        with pytest.raises(BadRequest):
            appeal(connection, room.now_ms, ada, job, "\u202e\x00")
        with pytest.raises(Forbidden, match="168 hours"):
            appeal(connection, room.now_ms + 169 * HOUR_MS, ada, job, "too late")
        # the time for it begins when the mark is released
        hidden = (room.instructor, [room.lab])
        hide_marks(connection, room.now_ms, *hidden, True)
        hide_marks(connection, room.now_ms + HOUR_MS, *hidden, False)
        later_ms = room.now_ms + 169 * HOUR_MS
        made = appeal(connection, later_ms, ada, job, "It is right.\nLook.")
        with pytest.raises(Conflict):
            appeal(connection, room.now_ms, ada, job, "again")
        [open_one] = appeals(connection, "gpu101", only_open=True)
        assert (open_one.id, open_one.note) == (made, "It is right.\nLook.")
        assert appeals(connection, "gpu101", person=ada) == [open_one]
        assert appeals(connection, "gpu101", person=bob) == []
        answer = (room.now_ms, room.instructor, made)
        answer_appeal(connection, *answer, "dismissed", "It races in line 3.")
        with pytest.raises(Conflict):
            answer_appeal(connection, *answer, "upheld", "after all")
        assert appeals(connection, "gpu101", only_open=True) == []


def test_an_upheld_appeal_says_what_it_changed(tmp_path: Path) -> None:
    room = classroom(tmp_path / "hub.db", is_team_work=True)
    room.submit("bob")
    job = room.grade(room.grader(), facts("wrong", 1)).job
    with room.database.write() as connection:
        made = appeal(connection, room.now_ms, room.people["bob"], job, "Look.")
        answer = (connection, room.now_ms, room.instructor, made)
        with pytest.raises(BadRequest, match="dismissed changes nothing"):
            answer_appeal(*answer, "dismissed", "no", Change(points=8))
        with pytest.raises(BadRequest, match="more than the 10 points of this lab"):
            answer_appeal(*answer, "upheld", "yes", Change(points=5_000))
        answer_appeal(*answer, "upheld", "yes", Change(points=8))
        [answered] = appeals(connection, "gpu101")
    assert answered.outcome == "points set to 8 of 10; before: 0"
    # the work is the team's, and so is the decision
    assert [mark(room, name).points for name in ("bob", "cyd")] == [8, 8]
    again = room.submit("ada")
    job = room.grade(room.grader("two"), facts("wrong", 1)).job
    with room.database.write() as connection:
        made = appeal(connection, room.now_ms, room.people["ada"], job, "Look.")
        answer = (connection, room.now_ms, room.instructor, made)
        answer_appeal(*answer, "upheld", "yes", Change(is_regraded=True))
        assert appeals(connection, "gpu101")[-1].outcome == "graded again"
        assert standing(connection, again.submission).state == "waits"
    room.database.close()


def test_an_excused_lab_takes_nothing_from_the_total(room: Classroom) -> None:
    ada = room.people["ada"]
    room.now_ms = CLOSES_MS + HOUR_MS
    assert total((mark(room),), 0) == Total(0, 10)
    with room.database.write() as connection:
        at = (connection, room.now_ms, room.instructor, room.lab, ada)
        excuse(*at, "ill")
    assert (mark(room).state, mark(room).points) == ("excused", None)
    assert total((mark(room),), 0) == Total(0, 0)
    with room.database.write() as connection:
        excuse(connection, *at[1:], "was not", is_excused=False)
        [*_, last] = overrides(connection, room.lab, ada)
    assert (mark(room).state, last.reason) == ("not handed in", "was not")


def test_hidden_marks_tell_a_learner_nothing_of_a_result(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    work = room.submit("ada").submission
    room.submit("bob")
    room.grade(grader)
    room.grade(grader, facts("wrong", 1))
    with room.database.write() as connection:
        at = (connection, room.now_ms, room.instructor)
        assert hide_marks(*at, [room.lab], True) == 1
        assert hide_marks(*at, [room.lab], True) == 0
        [*_, entry] = audit.entries(connection, course="gpu101")
        assert (entry.action, entry.actor) == ("marks hidden", room.instructor)
        # what is right waits for a GPU, and looks as what is wrong and done
        assert standing(connection, work).stage == "gpu"
        told = []
        for name in ("ada", "bob"):
            viewer = Viewer(room.people[name], "learner", "main")
            [shown] = own_marks(connection, room.now_ms, "gpu101", viewer)
            [sent] = submissions_of(connection, room.lab, viewer.person)
            now = without_result(standing(connection, sent.id))
            told.append((shown.state, shown.points, shown.most_points, now.state))
            assert (now.stage, now.result, now.is_provisional) == ("cpu", None, False)
    assert told == [("hidden", None, 10, "hidden")] * 2
    assert mark(room).state == "graded"


def test_the_reference_comes_with_the_first_result(room: Classroom) -> None:
    room.submit("ada")
    room.submit("bob")
    grader = room.grader()
    assert room.grade(grader).wants_reference
    assert not room.grade(grader).wants_reference
    with room.database.read() as connection:
        assert reference(connection, room.lab) == "// reference"
        assert publication(connection, room.lab).lab_digest == "ab" * 32
        # late work is worth nothing here, so nobody gains after the due date
        assert reference_from(connection, room.lab) == DUE_MS + 1


def test_a_lab_is_changed_and_withdrawn_and_its_work_stays(room: Classroom) -> None:
    room.submit("ada")
    with room.database.write() as connection:
        lab = publication(connection, room.lab)
        sections = {"": WINDOW, "tuesday": Window(START_MS, DUE_MS + 9, CLOSES_MS + 9)}
        changed = type(lab)(**{**as_dict(lab), "windows": sections, "title": "Adding"})
        assert publish(connection, START_MS, room.instructor, changed) == room.lab
        assert publication(connection, room.lab).windows == sections
        for windows in ({}, {"": Window(9, 5, 10)}, {"nowhere": WINDOW}):
            wrong = type(lab)(**{**as_dict(lab), "windows": windows})
            with pytest.raises((BadRequest, NotFound)):
                publish(connection, START_MS, room.instructor, wrong)
        withdraw(connection, START_MS, room.instructor, room.lab, "too hard")
    with pytest.raises(NotOpen, match="taken off"):
        room.submit("bob")
    assert len(room.lease(room.grader())) == 1


def test_the_class_view_tells_who_is_where_and_who_is_stuck(room: Classroom) -> None:
    grader = room.grader()
    for number in range(3):
        room.submit("ada", f"// {number}")
        room.grade(grader, facts("wrong", 1, kind="race"))
    room.submit("bob")
    room.grade(grader)
    room.submit("cyd")
    with room.database.read() as connection:
        rows = {
            row.username: row for row in class_rows(connection, room.now_ms, "gpu101")
        }
        monday = class_rows(connection, room.now_ms, "gpu101", "monday")
    (ada,), (bob,), (cyd,) = (rows[name].labs for name in ("ada", "bob", "cyd"))
    assert (ada.state, ada.attempts, ada.stuck) == ("tried", 3, "equal failures")
    assert (ada.last_error_kind, ada.best_right) == ("race", 0.25)
    assert (bob.state, bob.stuck, cyd.state) == ("passed", None, "waits")
    with room.database.read() as connection:
        alone = class_rows(
            connection, room.now_ms, "gpu101", people=[room.people["ada"]]
        )
    assert {row.username for row in monday} == {"ada", "bob"}
    assert alone == [rows["ada"]]
    assert (rows["bob"].name, rows["bob"].team) == ("Bob Noyce", "red")


def test_marks_of_all_are_those_of_each(room: Classroom) -> None:
    room.submit("ada")
    room.grade(room.grader())
    with room.database.read() as connection:
        together = all_marks(connection, room.now_ms, "gpu101")
        for name in ("ada", "bob", "cyd"):
            person = room.people[name]
            assert together[person] == marks_of(
                connection, room.now_ms, "gpu101", person
            )
        assert room.people["grace"] not in together
        assert (
            standing(
                connection, together[room.people["ada"]][0].computed.submission or ""
            ).state
            == "graded"
        )

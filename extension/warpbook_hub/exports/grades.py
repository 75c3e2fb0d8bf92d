"""Marks as files: nbgrader's columns, a line for each learner, and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import NamedTuple

from msgspec import Struct
from sqlalchemy import Connection, select

from warpbook.hub_protocol import OwnTotal
from warpbook_hub.course.courses import course, members
from warpbook_hub.course.publications import Publication, publications
from warpbook_hub.course.windows import extended_after_reference, windows_of_labs
from warpbook_hub.database.tables import PUBLICATIONS, SUBMISSIONS
from warpbook_hub.rules.lateness import Window
from warpbook_hub.rules.totals import Mark, shown_to_learner
from warpbook_hub.rules.visibility import Viewer
from warpbook_hub.work.marks import marks_of_people, total_of
from warpbook_monitors.spreadsheet import csv_lines

#: nbgrader's, and then what it does not know
COLUMNS = (
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
    "status",
    "set_by_hand",
    "late_hours",
    "note",
)
#: of an extension
AFTER_REFERENCE = "extension granted after the reference was shown"


class LabGrade(Struct, frozen=True):
    """A line of nbgrader's file, and what its columns have no place for."""

    assignment: str
    duedate: str
    timestamp: str
    raw_score: float | None
    late_submission_penalty: float | None
    score: float | None
    max_score: float
    status: str
    set_by_hand: bool
    late_hours: int | None
    note: str


class LearnerGrades(Struct, frozen=True):
    """All of a learner."""

    student_id: str
    last_name: str
    first_name: str
    email: str
    section: str
    total: OwnTotal
    labs: tuple[LabGrade, ...]


def iso_time(time_ms: int | None) -> str:
    """Write a time in UTC, each in the same format; nothing where there is none."""
    if time_ms is None:
        return ""
    at = datetime.fromtimestamp(time_ms / 1000, timezone.utc)
    return at.isoformat(timespec="milliseconds")


def grades(
    connection: Connection, now_ms: int, course_id: str, viewer: Viewer | None = None
) -> list[LearnerGrades]:
    """Give all learners on the roster with all of their labs.

    Args:
        viewer: a learner, who is given their own alone, as far as it is released.

    Raises:
        NotFound: there is no such course.
    """
    drop_lowest = course(connection, course_id).drop_lowest
    people = [
        member
        for member in members(connection, course_id)
        if member.role == "learner"
        and not member.is_hidden
        and (viewer is None or member.person == viewer.person)
    ]
    names = [member.person for member in people]
    every = publications(connection, course_id)
    extended = extended_after_reference(connection, course_id)
    windows = windows_of_labs(connection, [lab.id for lab in every], names)
    labs = {
        lab.id: _Lab(
            lab,
            windows[lab.id],
            frozenset(person for of, person in extended if of == lab.id),
        )
        for lab in every
    }
    received = _received(connection, course_id)
    marks = marks_of_people(connection, now_ms, course_id, names)
    learners = []
    for member in people:
        of_member: Sequence[Mark] = marks[member.person]
        if viewer is not None:
            of_member = tuple(map(shown_to_learner, of_member))
        learners.append(
            LearnerGrades(
                member.username,
                member.last_name,
                member.first_name,
                member.email,
                member.section,
                total_of(of_member, every, drop_lowest),
                tuple(
                    _lab_grade(labs[mark.publication], mark, received)
                    for mark in of_member
                ),
            )
        )
    return learners


def nbgrader_csv(learners: Sequence[LearnerGrades]) -> str:
    """Write a line for each learner and each lab."""
    rows = (
        (
            *(lab.assignment, lab.duedate, lab.timestamp),
            *(one.student_id, one.last_name, one.first_name, one.email),
            *(lab.raw_score, lab.late_submission_penalty, lab.score, lab.max_score),
            *(lab.status, "yes" if lab.set_by_hand else "", lab.late_hours, lab.note),
        )
        for one in learners
        for lab in one.labs
    )
    return "".join(csv_lines([COLUMNS, *rows]))


def totals_csv(learners: Sequence[LearnerGrades]) -> str:
    """Write a line for each learner, with the total, its rules, and all labs."""
    names = list(dict.fromkeys(lab.assignment for one in learners for lab in one.labs))
    head = (
        *("student_id", "last_name", "first_name", "email", "section"),
        *("total", "max_total", "left_out", "rules", "notes"),
    )
    of_labs = [column for name in names for column in (name, f"{name} status")]
    return "".join(csv_lines([(*head, *of_labs), *_totals(learners, names)]))


class _Lab(NamedTuple):
    lab: Publication
    windows: dict[str, Window]
    #: whose extension was granted after the reference was shown
    after_reference: frozenset[str]


def _lab_grade(of: _Lab, mark: Mark, received: dict[str, int]) -> LabGrade:
    counted, is_set = mark.computed, mark.override is not None
    is_graded = mark.points is not None
    window = of.windows.get(mark.person)
    return LabGrade(
        of.lab.lab,
        iso_time(None if window is None else window.due_ms),
        iso_time(received.get(counted.submission or "")),
        # an override has no penalty: it is what counts
        mark.points if is_set or not is_graded else counted.raw_points,
        None if not is_graded else 0.0 if is_set else counted.penalty,
        mark.points,
        mark.most_points,
        mark.state,
        is_set,
        counted.late_hours if counted.submission else None,
        AFTER_REFERENCE if mark.person in of.after_reference else "",
    )


def _totals(
    learners: Sequence[LearnerGrades], names: Sequence[str]
) -> Iterator[tuple[object, ...]]:
    for one in learners:
        labs = {lab.assignment: lab for lab in one.labs}
        cells: list[object] = []
        for name in names:
            lab = labs.get(name)
            cells += [None, ""] if lab is None else [lab.score, lab.status]
        yield (
            *(one.student_id, one.last_name, one.first_name, one.email, one.section),
            *(one.total.points, one.total.most_points),
            ", ".join(one.total.dropped),
            " ".join(one.total.rules),
            "; ".join(f"{lab.assignment}: {lab.note}" for lab in one.labs if lab.note),
            *cells,
        )


def _received(connection: Connection, course_id: str) -> dict[str, int]:
    query = (
        select(SUBMISSIONS.c.id, SUBMISSIONS.c.received_ms)
        .join(PUBLICATIONS, PUBLICATIONS.c.id == SUBMISSIONS.c.publication)
        .where(PUBLICATIONS.c.course == course_id)
    )
    return {row.id: row.received_ms for row in connection.execute(query)}

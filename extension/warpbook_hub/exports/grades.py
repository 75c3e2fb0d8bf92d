"""Grades in the columns of nbgrader's own export, for programs that read those."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from sqlalchemy import Connection, select

from warpbook_hub.course.courses import course, members
from warpbook_hub.course.publications import publications
from warpbook_hub.course.windows import windows_of
from warpbook_hub.database.tables import PUBLICATIONS, SUBMISSIONS
from warpbook_hub.rules.lateness import Window
from warpbook_hub.work.marks import all_marks
from warpbook_monitors.spreadsheet import csv_lines

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
)


def iso_time(time_ms: int | None) -> str:
    """Write a time in UTC, each in the same format; nothing where there is none."""
    if time_ms is None:
        return ""
    at = datetime.fromtimestamp(time_ms / 1000, timezone.utc)
    return at.isoformat(timespec="milliseconds")


def grades_csv(connection: Connection, course_id: str) -> str:
    """Write a line for each learner on the roster and each lab.

    Raises:
        NotFound: there is no such course.
    """
    return "".join(csv_lines([COLUMNS, *_rows(connection, course_id)]))


def _rows(connection: Connection, course_id: str) -> Iterator[tuple[object, ...]]:
    labs = {lab.id: lab for lab in publications(connection, course_id)}
    windows: dict[str, dict[str, Window]] = {}
    people = [
        member
        for member in members(connection, course(connection, course_id).id)
        if member.role == "learner" and not member.is_hidden
    ]
    for lab in labs:
        windows[lab] = windows_of(connection, lab, [one.person for one in people])
    received = _received(connection, course_id)
    marks = all_marks(connection, course_id)
    for member in people:
        for mark in marks[member.person]:
            counted = mark.computed
            # an override has no penalty: it is what counts
            is_set = mark.override is not None
            yield (
                labs[mark.publication].lab,
                iso_time(windows[mark.publication][member.person].due_ms),
                iso_time(received.get(counted.submission or "")),
                member.username,
                member.last_name,
                member.first_name,
                member.email,
                mark.points if is_set else counted.raw_points,
                0.0 if is_set else counted.penalty,
                mark.points,
                mark.most_points,
            )


def _received(connection: Connection, course_id: str) -> dict[str, int]:
    query = (
        select(SUBMISSIONS.c.id, SUBMISSIONS.c.received_ms)
        .join(PUBLICATIONS, PUBLICATIONS.c.id == SUBMISSIONS.c.publication)
        .where(PUBLICATIONS.c.course == course_id)
    )
    return {row.id: row.received_ms for row in connection.execute(query)}

"""The gradebook: all marks of a course, with what waits and how often was handed in."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, select

from warpbook_hub.course.courses import Member
from warpbook_hub.database.tables import (
    JOBS,
    PUBLICATIONS,
    SUBMISSION_MEMBERS,
    SUBMISSIONS,
    outside_finals,
)
from warpbook_hub.rules.totals import Mark, Total, total


class Cell(NamedTuple):
    """What a learner has of a lab."""

    mark: Mark
    #: how often was handed in; what the queue dropped is left out
    attempts: int
    #: the submission that counts, else the newest; empty where there is none
    submission: str
    #: "waits" or "parked", though there may be a mark; else empty
    in_queue: str
    #: their extension was granted after they could see the reference
    is_after_reference: bool


class GradebookRow(NamedTuple):
    """A learner's marks."""

    member: Member
    #: by publication
    cells: Mapping[str, Cell]
    total: Total


class Work(NamedTuple):
    """What was handed in for a lab, and what is done with it."""

    #: submissions; what the queue dropped is left out
    attempts: int = 0
    newest: str = ""
    #: "waits" or "parked"; else empty
    in_queue: str = ""


def gradebook(
    people: Mapping[str, Member],
    marks: Mapping[str, Sequence[Mark]],
    work: Mapping[tuple[str, str], Work],
    after_reference: Collection[tuple[str, str]],
    drop_lowest: int,
) -> list[GradebookRow]:
    """Give the rows of some learners, in their order.

    Args:
        people: by their ids.
        marks: of all of them.
        work: by publication and person.
        after_reference: those of the publications and people whose extension was.
        drop_lowest: of the course.
    """
    rows = []
    for person, member in people.items():
        cells: dict[str, Cell] = {}
        for mark in marks.get(person, ()):
            key = mark.publication, person
            of = work.get(key, Work())
            shown = mark.computed.submission or of.newest
            told = of.attempts, shown, of.in_queue, key in after_reference
            cells[mark.publication] = Cell(mark, *told)
        counted = total(marks.get(person, ()), drop_lowest)
        rows.append(GradebookRow(member, cells, counted))
    return rows


def work_of_all(connection: Connection, course_id: str) -> dict[tuple[str, str], Work]:
    """Give what all of a course handed in, by publication and person."""
    rows = connection.execute(
        select(SUBMISSIONS.c.id, SUBMISSIONS.c.publication, SUBMISSION_MEMBERS.c.person)
        .join(SUBMISSION_MEMBERS, SUBMISSION_MEMBERS.c.submission == SUBMISSIONS.c.id)
        .join(PUBLICATIONS, PUBLICATIONS.c.id == SUBMISSIONS.c.publication)
        .where(PUBLICATIONS.c.course == course_id, SUBMISSIONS.c.replaced_ms.is_(None))
        .order_by(SUBMISSIONS.c.received_ms)
    )
    in_queue = _in_queue(connection, course_id)
    work: dict[tuple[str, str], Work] = {}
    for submission, publication, person in rows:
        key = publication, person
        attempts = work[key].attempts + 1 if key in work else 1
        work[key] = Work(attempts, submission, in_queue.get(key, ""))
    return work


def _in_queue(connection: Connection, course_id: str) -> dict[tuple[str, str], str]:
    """Tell what waits, runs or is parked, by publication and person."""
    rows = connection.execute(
        select(JOBS.c.publication, SUBMISSION_MEMBERS.c.person, JOBS.c.state)
        .join(SUBMISSION_MEMBERS, SUBMISSION_MEMBERS.c.submission == JOBS.c.submission)
        .join(PUBLICATIONS, PUBLICATIONS.c.id == JOBS.c.publication)
        .where(
            PUBLICATIONS.c.course == course_id,
            JOBS.c.state.in_(("queued", "leased", "parked")),
            outside_finals(),
        )
        # the last one stands: what is parked needs a person
        .order_by(JOBS.c.state == "parked")
    )
    return {
        (publication, person): "parked" if state == "parked" else "waits"
        for publication, person, state in rows
    }

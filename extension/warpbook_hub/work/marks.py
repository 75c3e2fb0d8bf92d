"""Marks: what counts of a learner's work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from sqlalchemy import Connection, select

from warpbook.hub_protocol import GradedFacts, Points
from warpbook_hub.course.courses import course, members
from warpbook_hub.course.publications import Publication, publications
from warpbook_hub.course.windows import windows_of
from warpbook_hub.database.tables import (
    MEMBERSHIPS,
    OVERRIDES,
    PUBLICATIONS,
    SUBMISSION_MEMBERS,
    SUBMISSIONS,
)
from warpbook_hub.errors import NotFound
from warpbook_hub.rules.lateness import LatePolicy, Window, late_hours
from warpbook_hub.rules.points import points_of
from warpbook_hub.rules.rubric import with_rubric
from warpbook_hub.rules.standing import Attempt, LabAttempts, LabMark, marks
from warpbook_hub.work.results import standings, timed_publications

#: of who has handed in nothing
NOTHING = GradedFacts("wrong", "", "", 0, 0)


class Mark(Struct, frozen=True):
    """What a learner has of a lab."""

    person: str
    publication: str
    #: what the best attempt gives, after penalty and late budget
    computed: LabMark
    #: of an instructor, in place of it; None where there is none
    override: float | None
    #: what counts
    points: float
    most_points: float


def marks_of(connection: Connection, course_id: str, person: str) -> tuple[Mark, ...]:
    """Compute the marks of a learner for all labs of a course.

    Raises:
        NotFound: they are not of the course.
    """
    by_person = _marks(connection, course_id, [person])
    if person not in by_person:
        raise NotFound("This person is not a member of this course.")
    return by_person[person]


def all_marks(
    connection: Connection, course_id: str, section: str = ""
) -> dict[str, tuple[Mark, ...]]:
    """Compute the marks of all learners of a course or section, by person."""
    people = [
        member.person
        for member in members(connection, course_id, section)
        if member.role == "learner"
    ]
    return _marks(connection, course_id, people)


def _marks(
    connection: Connection, course_id: str, people: Sequence[str]
) -> dict[str, tuple[Mark, ...]]:
    budget_h = course(connection, course_id).late_budget_h
    query = select(MEMBERSHIPS.c.person).where(
        MEMBERSHIPS.c.course == course_id, MEMBERSHIPS.c.person.in_(list(people))
    )
    there = connection.execute(query).scalars().all()
    labs = publications(connection, course_id)
    attempts = _attempts(connection, course_id, there)
    windows = {lab.id: windows_of(connection, lab.id, there) for lab in labs}
    set_points = _overrides(connection, course_id)
    of_course = select(PUBLICATIONS.c.id).where(PUBLICATIONS.c.course == course_id)
    timed = timed_publications(connection, of_course)
    nothing = {lab.id: points_of(lab.scheme, NOTHING, lab.id in timed) for lab in labs}
    most = {lab.id: with_rubric(nothing[lab.id], lab.rubric, {}).of for lab in labs}
    return {
        person: _marks_of_one(
            person, labs, attempts, windows, set_points, budget_h, most
        )
        for person in there
    }


def _marks_of_one(
    person: str,
    labs: Sequence[Publication],
    attempts: Mapping[tuple[str, str], Sequence[_Attempt]],
    windows: Mapping[str, Mapping[str, Window]],
    set_points: Mapping[tuple[str, str], float | None],
    budget_h: int,
    most_points: Mapping[str, float],
) -> tuple[Mark, ...]:
    # a lab that is for no section of theirs is none of theirs
    theirs = [lab for lab in labs if person in windows[lab.id]]
    of_labs = [
        LabAttempts(
            lab.id,
            tuple(
                Attempt(
                    graded.submission,
                    graded.points.points,
                    late_hours(graded.received_ms, windows[lab.id][person]),
                )
                for graded in attempts.get((lab.id, person), ())
            ),
            LatePolicy(lab.late_percent_per_day),
        )
        for lab in theirs
    ]
    # late hours gain nothing where an instructor has set the points
    is_set = {lab.id for lab in theirs if set_points.get((lab.id, person)) is not None}
    open_labs = [of for of in of_labs if of.publication not in is_set]
    set_labs = [of for of in of_labs if of.publication in is_set]
    computed = {
        mark.publication: mark
        for mark in (*marks(open_labs, budget_h), *marks(set_labs, 0))
    }
    marked: list[Mark] = []
    for lab in theirs:
        mark, override = computed[lab.id], set_points.get((lab.id, person))
        most = most_points[lab.id]
        for graded in attempts.get((lab.id, person), ()):
            if graded.submission == mark.submission:
                most = graded.points.of
        points = mark.points if override is None else override
        marked.append(Mark(person, lab.id, mark, override, points, most))
    return tuple(marked)


class _Attempt(NamedTuple):
    submission: str
    received_ms: int
    points: Points


def _attempts(
    connection: Connection, course_id: str, people: Sequence[str]
) -> dict[tuple[str, str], list[_Attempt]]:
    """Give what was graded, by publication and person."""
    of_people = select(SUBMISSION_MEMBERS.c.submission).where(
        SUBMISSION_MEMBERS.c.person.in_(list(people))
    )
    of_course = SUBMISSIONS.c.publication.in_(
        select(PUBLICATIONS.c.id).where(PUBLICATIONS.c.course == course_id)
    ) & SUBMISSIONS.c.id.in_(of_people)
    standing = standings(connection, of_course)
    rows = connection.execute(
        select(
            SUBMISSIONS.c.id,
            SUBMISSIONS.c.publication,
            SUBMISSIONS.c.received_ms,
            SUBMISSION_MEMBERS.c.person,
        )
        .join(SUBMISSION_MEMBERS, SUBMISSION_MEMBERS.c.submission == SUBMISSIONS.c.id)
        .where(of_course)
        .order_by(SUBMISSIONS.c.received_ms, SUBMISSIONS.c.number)
    )
    by_lab: dict[tuple[str, str], list[_Attempt]] = {}
    for row in rows:
        counts = standing[row.id].result if row.id in standing else None
        if counts is not None and counts.is_marked:
            graded = _Attempt(row.id, row.received_ms, counts.points)
            by_lab.setdefault((row.publication, row.person), []).append(graded)
    return by_lab


def _overrides(
    connection: Connection, course_id: str
) -> dict[tuple[str, str], float | None]:
    """Give the last override of each lab and person."""
    rows = connection.execute(
        select(OVERRIDES.c.publication, OVERRIDES.c.person, OVERRIDES.c.points)
        .join(PUBLICATIONS, PUBLICATIONS.c.id == OVERRIDES.c.publication)
        .where(PUBLICATIONS.c.course == course_id)
        .order_by(OVERRIDES.c.number)
    )
    return {(row.publication, row.person): row.points for row in rows}

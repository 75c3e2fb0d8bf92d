"""Erases a person: names, sources and results."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, structs
from sqlalchemy import Connection, Select, delete, func, select, update

from warpbook_hub import audit
from warpbook_hub.course.courses import check_other_instructor
from warpbook_hub.database.tables import (
    APPEALS,
    BULK_ACTIONS,
    CODE_QUESTIONS,
    COMMENTS,
    COMPETITORS,
    EXTENSIONS,
    FINAL_JOBS,
    JOBS,
    LTI_PEOPLE,
    LTI_SCORES,
    MAILS,
    MEMBERSHIPS,
    NOTICE_CHOICES,
    NOTICES,
    OPERATORS,
    OVERRIDES,
    PEOPLE,
    RESULTS,
    RUBRIC_POINTS,
    SUBMISSION_MEMBERS,
    SUBMISSIONS,
    TEAM_MEMBERS,
    TURNS,
)
from warpbook_hub.errors import Conflict, NotFound
from warpbook_hub.leases import requests
from warpbook_hub.texts import reason_of


class Erasure(Struct, frozen=True):
    """What was erased."""

    submissions: int
    #: work of a team, from which only the person was taken out
    shared_submissions: int


def erase(
    connection: Connection, now_ms: int, actor: str, person: str, reason: str
) -> Erasure:
    """Erase all that is a person's: it can't be undone, and backups are not touched.

    Raises:
        BadRequest: no reason is given.
        NotFound: there is no such person, or they were erased before.
        Conflict: a course would have no instructor, or they operate the hub.
    """
    why = reason_of(reason)
    of = PEOPLE.c.id == person
    query = select(PEOPLE.c.id).where(of, PEOPLE.c.erased_ms.is_(None))
    if connection.execute(query).first() is None:
        raise NotFound("There is no such person.")
    operates = select(OPERATORS.c.person).where(OPERATORS.c.person == person)
    if connection.execute(operates).first() is not None:
        raise Conflict(
            "This person operates the hub. Start it without their name as --operator "
            "first."
        )
    courses = _all(
        connection, select(MEMBERSHIPS.c.course).where(MEMBERSHIPS.c.person == person)
    )
    for course in courses:
        check_other_instructor(connection, course, person)
    members = SUBMISSION_MEMBERS.alias()
    others = (
        select(func.count(members.c.person))
        .where(members.c.submission == SUBMISSIONS.c.id)
        .scalar_subquery()
    )
    work = connection.execute(
        select(SUBMISSIONS.c.id, SUBMISSIONS.c.person, others.label("people"))
        .join(SUBMISSION_MEMBERS, SUBMISSION_MEMBERS.c.submission == SUBMISSIONS.c.id)
        .where(SUBMISSION_MEMBERS.c.person == person)
    ).all()
    alone = [row.id for row in work if row.people == 1]
    shared = [row for row in work if row.people > 1]
    jobs = _all(connection, select(JOBS.c.id).where(JOBS.c.submission.in_(alone)))
    appeals = _all(connection, select(APPEALS.c.id).where(APPEALS.c.person == person))
    _erase_submissions(connection, alone)
    _leave_shared(connection, person, [row.id for row in shared])
    # what was written about them, and about what is theirs alone
    orders = BULK_ACTIONS.c.undo.contains(person)
    named = _all(connection, select(BULK_ACTIONS.c.id).where(orders))
    audit.forget(connection, [person, *alone, *jobs, *appeals, *named])
    # an order of others as well is not undone any more
    connection.execute(update(BULK_ACTIONS).where(orders).values(undo=""))
    connection.execute(delete(TURNS).where(TURNS.c.party == f"person:{person}"))
    requests.forget(connection, person)
    # what others were told about them
    connection.execute(delete(NOTICES).where(NOTICES.c.subject.in_([*jobs, *alone])))
    theirs = (
        *(NOTICES, MAILS, NOTICE_CHOICES),
        *(EXTENSIONS, OVERRIDES, TEAM_MEMBERS, MEMBERSHIPS),
        *(LTI_PEOPLE, LTI_SCORES, COMPETITORS),
    )
    for table in theirs:
        connection.execute(delete(table).where(table.c.person == person))
    connection.execute(
        update(PEOPLE).where(of).values(username=f"erased-{person}", erased_ms=now_ms)
    )
    erased = Erasure(len(alone), len(shared))
    detail = {"reason": why, **structs.asdict(erased)}
    of_course = courses[0] if len(courses) == 1 else ""
    audit.note(connection, now_ms, actor, "person erased", person, detail, of_course)
    return erased


def _all(connection: Connection, query: Select[str]) -> list[str]:
    return list(connection.execute(query).scalars())


def _erase_submissions(connection: Connection, submissions: Sequence[str]) -> None:
    jobs = select(RESULTS.c.job).where(RESULTS.c.submission.in_(submissions))
    connection.execute(delete(APPEALS).where(APPEALS.c.job.in_(jobs)))
    of_finals = select(JOBS.c.id).where(JOBS.c.submission.in_(submissions))
    connection.execute(delete(FINAL_JOBS).where(FINAL_JOBS.c.job.in_(of_finals)))
    of_work = (RESULTS, JOBS, COMMENTS, RUBRIC_POINTS, CODE_QUESTIONS)
    for table in (*of_work, SUBMISSION_MEMBERS):
        connection.execute(delete(table).where(table.c.submission.in_(submissions)))
    connection.execute(delete(SUBMISSIONS).where(SUBMISSIONS.c.id.in_(submissions)))


def _leave_shared(
    connection: Connection, person: str, submissions: Sequence[str]
) -> None:
    """Take a person out of their team's work, which is the others' from then on."""
    members = SUBMISSION_MEMBERS.c
    for submission in submissions:
        of = (members.submission == submission) & (members.person == person)
        connection.execute(delete(SUBMISSION_MEMBERS).where(of))
        query = select(func.min(members.person)).where(members.submission == submission)
        other = connection.execute(query).scalar_one()
        theirs = (SUBMISSIONS.c.id == submission) & (SUBMISSIONS.c.person == person)
        # what their own program told of them goes with them
        left = {"person": other, "ai_log": None}
        connection.execute(update(SUBMISSIONS).where(theirs).values(**left))
    connection.execute(delete(APPEALS).where(APPEALS.c.person == person))

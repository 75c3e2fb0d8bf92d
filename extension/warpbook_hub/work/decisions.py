"""What people decide about marks: overrides, excuses, regrades, each with a reason."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct, structs
from sqlalchemy import Connection, func, insert, select, update

from warpbook_hub import audit
from warpbook_hub.course.publications import publication
from warpbook_hub.course.windows import window_of
from warpbook_hub.database.tables import JOBS, OVERRIDES, SUBMISSIONS
from warpbook_hub.errors import BadRequest, NotFound
from warpbook_hub.ids import new_id
from warpbook_hub.queue.entries import REGRADE_LANE, enqueue
from warpbook_hub.texts import reason_of
from warpbook_hub.work.marks import mark_of

_MOST = 1_000_000


class Override(Struct, frozen=True):
    """Points that an instructor set, or that a lab does not count for a learner."""

    points: float | None
    is_excused: bool
    reason: str
    made_by: str
    made_ms: int


def override(
    connection: Connection,
    now_ms: int,
    actor: str,
    publication_id: str,
    person: str,
    points: float | None,
    reason: str,
    is_bonus: bool = False,
) -> None:
    """Set the points of a learner for a lab; None takes the last decision back.

    Args:
        is_bonus: they may be more than could be had.

    Raises:
        BadRequest: no reason is given, or the points are negative, not finite, or more
            than could be had and said to be no bonus.
        NotFound: there is no such lab or learner.
    """
    if points is not None and not (math.isfinite(points) and 0 <= points <= _MOST):
        raise BadRequest(f"Points are a number from 0 to {_MOST:,}.")
    most = mark_of(connection, now_ms, publication_id, person).most_points
    if points is not None and points > most and not is_bonus:
        raise BadRequest(
            f"{points:g} is more than the {most:g} points of this lab. Set fewer, or "
            "say that what is above is a bonus."
        )
    why = reason_of(reason)
    decide(connection, now_ms, actor, publication_id, person, why, points)
    detail = {"publication": publication_id, "points": points, "reason": why}
    course_id = publication(connection, publication_id).course
    audit.note(connection, now_ms, actor, "points set", person, detail, course_id)


def excuse(
    connection: Connection,
    now_ms: int,
    actor: str,
    publication_id: str,
    person: str,
    reason: str,
    is_excused: bool = True,
) -> None:
    """Have a lab count nothing for a learner, or have it count again.

    Points that were set before do not come back.

    Raises:
        BadRequest: no reason is given.
        NotFound: there is no such lab or learner.
    """
    why = reason_of(reason)
    if window_of(connection, publication_id, person) is None:
        raise NotFound("This lab is published for no section of this person.")
    decide(connection, now_ms, actor, publication_id, person, why, None, is_excused)
    detail = {"publication": publication_id, "reason": why}
    course_id = publication(connection, publication_id).course
    action = "excused" if is_excused else "excuse taken back"
    audit.note(connection, now_ms, actor, action, person, detail, course_id)


def decide(
    connection: Connection,
    now_ms: int,
    actor: str,
    publication_id: str,
    person: str,
    reason: str,
    points: float | None,
    is_excused: bool = False,
) -> None:
    """Keep a decision, without a line in the log; the last one counts."""
    decided = Override(points, is_excused, reason, actor, now_ms)
    decide_all(connection, publication_id, {person: decided})


def decide_all(
    connection: Connection, publication_id: str, decided: Mapping[str, Override]
) -> None:
    """Keep decisions about learners of a lab, without a line in the log."""
    query = select(func.coalesce(func.max(OVERRIDES.c.number), 0))
    last = connection.execute(query).scalar_one()
    rows = [
        {
            "id": new_id(),
            "number": number,
            "publication": publication_id,
            "person": person,
            **structs.asdict(one),
            "is_excused": int(one.is_excused),
        }
        for number, (person, one) in enumerate(decided.items(), last + 1)
    ]
    if rows:
        connection.execute(insert(OVERRIDES), rows)


def last_decisions(connection: Connection, publication_id: str) -> dict[str, Override]:
    """Return the decision that counts of each learner with one, by person."""
    query = (
        select(
            OVERRIDES.c.person,
            *(OVERRIDES.c[name] for name in Override.__struct_fields__),
        )
        .where(OVERRIDES.c.publication == publication_id)
        .order_by(OVERRIDES.c.number)
    )
    return {
        row.person: Override(row.points, bool(row.is_excused), *row[3:])
        for row in connection.execute(query)
    }


def overrides(
    connection: Connection, publication_id: str, person: str
) -> list[Override]:
    """Give all overrides ever made for a learner and a lab, the first first."""
    query = (
        select(*(OVERRIDES.c[name] for name in Override.__struct_fields__))
        .where(OVERRIDES.c.publication == publication_id, OVERRIDES.c.person == person)
        .order_by(OVERRIDES.c.number)
    )
    return [
        Override(row.points, bool(row.is_excused), *row[2:])
        for row in connection.execute(query)
    ]


def regrade(
    connection: Connection,
    now_ms: int,
    actor: str,
    submission_ids: Sequence[str],
    reason: str,
) -> int:
    """Grade submissions once more; what they got before is kept.

    Returns:
        How many were put into the queue: those that wait or run already were not.

    Raises:
        BadRequest: no reason is given.
        NotFound: there is no such submission.
    """
    why = reason_of(reason)
    begun = 0
    for submission in submission_ids:
        if grade_again(connection, now_ms, submission) is not None:
            detail = {"reason": why}
            audit.note(connection, now_ms, actor, "regrade asked", submission, detail)
            begun += 1
    return begun


def grade_again(
    connection: Connection, now_ms: int, submission: str
) -> tuple[str, list[str]] | None:
    """Put a submission into the queue once more, without a line in the log.

    Returns:
        Its job, and those that were parked and are no more; None if it waits or runs.

    Raises:
        NotFound: there is no such submission.
    """
    query = select(JOBS.c.id, JOBS.c.run, JOBS.c.state)
    jobs = connection.execute(query.where(JOBS.c.submission == submission)).all()
    if not jobs:
        raise NotFound("There is no such submission.")
    if any(job.state in ("queued", "leased") for job in jobs):
        return None
    run = max(job.run for job in jobs) + 1
    begun = enqueue(connection, now_ms, submission, "cpu", run, REGRADE_LANE)
    # what its own learner had replaced counts again: an instructor wants it
    again = update(SUBMISSIONS).where(SUBMISSIONS.c.id == submission)
    connection.execute(again.values(replaced_ms=None))
    # a person has looked at what was parked
    parked = [job.id for job in jobs if job.state == "parked"]
    change = update(JOBS).where(JOBS.c.id.in_(parked))
    connection.execute(change.values(state="cancelled", finished_ms=now_ms))
    return begun, parked

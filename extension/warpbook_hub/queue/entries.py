"""Puts jobs into the queue, and takes back what its own learner replaces."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from warpbook_hub.database.tables import GRADERS, JOBS, SUBMISSIONS
from warpbook_hub.ids import new_id

STAFF_LANE = 0
LEARNER_LANE = 1
REGRADE_LANE = 2
FIRST_TURN = 0
LATER_TURN = 1


def enqueue(
    connection: Connection,
    now_ms: int,
    submission: str,
    stage: str,
    run: int = 1,
    lane: int = LEARNER_LANE,
) -> str:
    """Have a submission graded in a stage, and give the job's id."""
    query = select(SUBMISSIONS.c.publication, SUBMISSIONS.c.party)
    of = connection.execute(query.where(SUBMISSIONS.c.id == submission)).one()
    served = connection.execute(
        select(JOBS.c.id)
        .where(
            JOBS.c.party == of.party,
            JOBS.c.publication == of.publication,
            JOBS.c.stage == stage,
            JOBS.c.fence > 0,
        )
        .limit(1)
    ).first()
    row: dict[str, Any] = {
        "id": new_id(),
        "submission": submission,
        "publication": of.publication,
        "party": of.party,
        "run": run,
        "stage": stage,
        "state": "queued",
        "lane": lane,
        "turn": FIRST_TURN if served is None else LATER_TURN,
        "queued_ms": now_ms,
        "not_before_ms": now_ms,
        "fence": 0,
        "device": "",
        "crashes": 0,
        "busy": 0,
        "note": "",
    }
    connection.execute(insert(JOBS).values(**row))
    return str(row["id"])


def waiting_submission(
    connection: Connection, publication: str, party: str
) -> str | None:
    """Give the submission of a party that waits for its first grading, if one does."""
    query = (
        select(JOBS.c.submission)
        .where(
            JOBS.c.publication == publication,
            JOBS.c.party == party,
            JOBS.c.state == "queued",
            JOBS.c.run == 1,
        )
        .order_by(JOBS.c.queued_ms)
        .limit(1)
    )
    submission = connection.execute(query).scalar()
    return None if submission is None else str(submission)


def replace_waiting(
    connection: Connection, now_ms: int, publication: str, party: str
) -> None:
    """Take what waits for its first grading out of the queue.

    A submission that no stage has judged takes no attempt; another keeps its result.
    """
    waiting = connection.execute(
        select(JOBS.c.id, JOBS.c.submission, JOBS.c.stage).where(
            JOBS.c.publication == publication,
            JOBS.c.party == party,
            JOBS.c.state == "queued",
            JOBS.c.run == 1,
        )
    ).all()
    for job in waiting:
        change = update(JOBS).where(JOBS.c.id == job.id)
        connection.execute(change.values(state="replaced", finished_ms=now_ms))
        if job.stage == "cpu":
            connection.execute(
                update(SUBMISSIONS)
                .where(SUBMISSIONS.c.id == job.submission)
                .values(replaced_ms=now_ms)
            )


def has_gpu(connection: Connection) -> bool:
    """Whether a grader that is not retired has a GPU, though it may be away now."""
    query = select(func.count()).where(
        GRADERS.c.state != "retired", GRADERS.c.devices != "[]"
    )
    return bool(connection.execute(query.select_from(GRADERS)).scalar())

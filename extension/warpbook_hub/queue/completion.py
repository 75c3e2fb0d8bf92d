"""Takes what graders give back: exactly one result of each job is accepted."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Connection, Row, insert, select, update

from warpbook.hub_protocol import (
    MOST_EVIDENCE_BYTES,
    JobResult,
    LeaseName,
    Receipt,
    Release,
    Released,
)
from warpbook_hub import audit
from warpbook_hub.database.tables import (
    CODE_QUESTIONS,
    JOBS,
    PUBLICATIONS,
    REFUSED_RESULTS,
    RESULTS,
    SUBMISSIONS,
)
from warpbook_hub.ids import new_id
from warpbook_hub.notices.notes import note_parked, note_result
from warpbook_hub.queue.dispatch import MOST_NOTE, take_back
from warpbook_hub.queue.entries import LATER_TURN, enqueue, has_gpu
from warpbook_monitors.plain_text import bounded

#: before a GPU that was busy is tried again
BUSY_WAIT_MS = 15_000
#: results "too busy", after which the last one is kept
MOST_BUSY = 5


def finish(
    connection: Connection, now_ms: int, grader: str, result: JobResult
) -> Receipt:
    """Accept a result, if its lease is the job's last one.

    A result that was accepted before is acknowledged once more; one of a lost lease is
    refused, and noted. "Too busy" goes back into the queue behind first runs. A right
    source of a timed lab goes on to a GPU where there is one.
    """
    lease = result.lease
    before = connection.execute(
        select(RESULTS.c.fence, RESULTS.c.grader).where(RESULTS.c.job == lease.job)
    ).first()
    if before is not None and (before.fence, before.grader) == (lease.fence, grader):
        return Receipt(True)
    job = _leased(connection, grader, lease)
    if job is None:
        return _refuse(connection, now_ms, grader, lease, "its lease was lost")
    wrong = _unfit(connection, job, result)
    if wrong:
        words = f"Its result can't be used: {wrong}."
        _end(connection, job.id, "parked", now_ms, words)
        detail = {"note": words}
        audit.note(connection, now_ms, "hub", "job parked", job.id, detail)
        note_parked(connection, now_ms, job.id)
        return _refuse(connection, now_ms, grader, lease, wrong)
    if result.facts.verdict == "too busy" and job.busy + 1 < MOST_BUSY:
        connection.execute(
            update(JOBS)
            .where(JOBS.c.id == job.id)
            .values(
                state="queued",
                turn=LATER_TURN,
                not_before_ms=now_ms + BUSY_WAIT_MS,
                busy=job.busy + 1,
                grader=None,
                device="",
                note=bounded(result.facts.message, MOST_NOTE),
            )
        )
        return Receipt(True, "too busy: it waits for another turn")
    _end(connection, job.id, "done", now_ms, "")
    _keep(connection, now_ms, grader, job, result)
    _keep_questions(connection, job.submission, result)
    _pin(connection, job.publication, result)
    if _goes_on(connection, job, result):
        enqueue(connection, now_ms, job.submission, "gpu", job.run, job.lane)
    else:
        note_result(connection, now_ms, job.id)
    return Receipt(True)


def release(
    connection: Connection, now_ms: int, grader: str, given_back: Release
) -> Released:
    """Take a job back without a result: it is queued again, or parked for a person."""
    job = _leased(connection, grader, given_back.lease)
    if job is None:
        return Released("lost")
    note = f"{given_back.reason}: {given_back.message}"
    if given_back.reason == "can't grade":
        _end(connection, job.id, "parked", now_ms, note)
        detail = {"note": bounded(note, MOST_NOTE)}
        audit.note(connection, now_ms, "hub", "job parked", job.id, detail)
        note_parked(connection, now_ms, job.id)
        return Released("parked")
    is_crash = given_back.reason != "returned"
    state = take_back(connection, now_ms, job, note, is_crash)
    return Released("parked" if state == "parked" else "queued")


def _leased(connection: Connection, grader: str, lease: LeaseName) -> Row[Any] | None:
    """Give a job if a lease is its last one, and has not been taken back."""
    query = select(JOBS).where(
        JOBS.c.id == lease.job,
        JOBS.c.fence == lease.fence,
        JOBS.c.grader == grader,
        JOBS.c.state == "leased",
    )
    # on PostgreSQL nobody else may finish it meanwhile; SQLite leaves this out
    return connection.execute(query.with_for_update()).first()


def _unfit(connection: Connection, job: Row[Any], result: JobResult) -> str:
    """Say why a result is not of this submission and lab; nothing if it is."""
    digests = connection.execute(
        select(SUBMISSIONS.c.source_digest, PUBLICATIONS.c.lab_digest)
        .join(PUBLICATIONS, PUBLICATIONS.c.id == SUBMISSIONS.c.publication)
        .where(SUBMISSIONS.c.id == job.submission)
    ).one()
    facts = result.facts
    if result.source_digest != digests.source_digest:
        return "it is of another source"
    if digests.lab_digest and result.lab_digest != digests.lab_digest:
        return (
            "the grader has another version of the lab than the course; publish that "
            "version on the lab's page, or give the grader the course's"
        )
    if facts.right > facts.of:
        return "it says that more cases are right than there are"
    if any(one.right >= len(one.choices) for one in result.questions):
        return "a question of it has no right choice"
    if len(result.evidence) > MOST_EVIDENCE_BYTES:
        return "its evidence is too large"
    return ""


def _refuse(
    connection: Connection, now_ms: int, grader: str, lease: LeaseName, reason: str
) -> Receipt:
    connection.execute(
        insert(REFUSED_RESULTS).values(
            id=new_id(),
            job=lease.job[:64],
            fence=lease.fence,
            grader=grader,
            refused_ms=now_ms,
            reason=reason,
        )
    )
    return Receipt(False, reason)


def _end(connection: Connection, job: str, state: str, now_ms: int, note: str) -> None:
    connection.execute(
        update(JOBS)
        .where(JOBS.c.id == job)
        .values(
            state=state,
            finished_ms=now_ms,
            lease_until_ms=None,
            note=bounded(note, MOST_NOTE),
        )
    )


def _keep(
    connection: Connection, now_ms: int, grader: str, job: Row[Any], result: JobResult
) -> None:
    connection.execute(
        insert(RESULTS).values(
            job=job.id,
            submission=job.submission,
            run=job.run,
            stage=job.stage,
            fence=job.fence,
            grader=grader,
            received_ms=now_ms,
            took_ms=result.took_ms,
            lab_digest=result.lab_digest,
            facts=msgspec.json.encode(result.facts).decode(),
            evidence=result.evidence,
            gpu_ms=result.gpu_ms,
            energy_mj=result.energy_mj,
        )
    )


def _keep_questions(connection: Connection, submission: str, result: JobResult) -> None:
    """Keep what is asked about a submission; a regrade asks nothing else."""
    of_it = CODE_QUESTIONS.c.submission == submission
    if connection.execute(select(CODE_QUESTIONS.c.number).where(of_it)).first():
        return
    for number, question in enumerate(result.questions, 1):
        row = {"submission": submission, "number": number}
        text = msgspec.json.encode(question).decode()
        connection.execute(insert(CODE_QUESTIONS).values(**row, question=text))


def _pin(connection: Connection, publication: str, result: JobResult) -> None:
    """Hold a lab to the version that its first result is of."""
    of = update(PUBLICATIONS).where(PUBLICATIONS.c.id == publication)
    is_new = PUBLICATIONS.c.lab_digest == ""
    connection.execute(of.where(is_new).values(lab_digest=result.lab_digest))
    if result.reference and len(result.reference) <= MOST_EVIDENCE_BYTES:
        is_new = PUBLICATIONS.c.reference == ""
        connection.execute(of.where(is_new).values(reference=result.reference))


def _goes_on(connection: Connection, job: Row[Any], result: JobResult) -> bool:
    """Whether a GPU is to judge a submission, too."""
    if job.stage != "cpu" or result.facts.verdict == "wrong":
        return False
    query = select(PUBLICATIONS.c.is_timed).where(PUBLICATIONS.c.id == job.publication)
    return bool(connection.execute(query).scalar()) and has_gpu(connection)

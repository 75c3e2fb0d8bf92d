"""Jobs of finals: on one GPU of one grader, one after another, and nothing between."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, Select, select, update

from warpbook_hub.database.tables import COURSES, FINAL_JOBS, FINALS, JOBS, PUBLICATIONS

_OPEN = ("queued", "leased")


def next_of_final(
    connection: Connection, now_ms: int, grader: str, device: str
) -> tuple[bool, Row[Any] | None]:
    """Tell whether a GPU is held for a final, and give the job that is next there.

    It is held while jobs of a final wait or run. Their order stays as it was drawn: a
    job that has to wait holds up those behind it. One that is parked is passed over. A
    paused course holds no GPU: the rest of its final comes later. As all of it is read
    from the jobs, a service or grader that was killed goes on where it was.
    """
    if not device:
        return False, None
    query = (
        select(JOBS)
        .join(FINAL_JOBS, FINAL_JOBS.c.job == JOBS.c.id)
        .join(FINALS, FINALS.c.id == FINAL_JOBS.c.final)
        .where(
            FINALS.c.grader == grader,
            FINALS.c.device == device,
            JOBS.c.state.in_(_OPEN),
            JOBS.c.publication.not_in(of_paused_courses()),
        )
        .order_by(FINALS.c.started_ms, FINALS.c.id, FINAL_JOBS.c.place)
        .limit(1)
    )
    job = connection.execute(query).first()
    if job is None:
        return False, None
    may_begin = job.state == "queued" and job.not_before_ms <= now_ms
    return True, job if may_begin else None


def of_paused_courses() -> Select[tuple[str]]:
    """Select the labs whose jobs are not leased."""
    return (
        select(PUBLICATIONS.c.id)
        .join(COURSES, COURSES.c.id == PUBLICATIONS.c.course)
        .where(COURSES.c.paused != "")
    )


def cancel_finals(connection: Connection, now_ms: int, publication_id: str) -> None:
    """End what is left of a lab's earlier finals; what they measured is kept."""
    of_lab = (
        select(FINAL_JOBS.c.job)
        .join(FINALS, FINALS.c.id == FINAL_JOBS.c.final)
        .where(FINALS.c.publication == publication_id)
    )
    connection.execute(
        update(JOBS)
        .where(JOBS.c.id.in_(of_lab), JOBS.c.state.in_((*_OPEN, "parked")))
        .values(state="cancelled", finished_ms=now_ms, note="A final was begun anew.")
    )

"""Gives GPUs to who waits, and ends leases: each time the keeper says what it finds."""

from __future__ import annotations

import secrets
from typing import Any

from sqlalchemy import Connection, Row, func, insert, or_, select, update

from warpbook.hub_protocol import LEAST_MINUTES, Grant, KeptGpu, Orders, Report
from warpbook_hub.database import settings
from warpbook_hub.database.tables import (
    GPU_LEASES,
    JOBS,
    LEASE_GPUS,
    MEMBERSHIPS,
    PEOPLE,
)
from warpbook_hub.errors import Forbidden
from warpbook_hub.ids import new_token, token_digest
from warpbook_hub.leases.calendar import MINUTE_MS, sessions, until_session

KEEPER_DIGEST = "keeper_digest"
#: whose use is counted
_LATELY_MS = 7 * 24 * 60 * MINUTE_MS
OPEN = ("held", "ending")


def register_keeper(connection: Connection) -> str:
    """Draw the keeper's token, which is kept nowhere; the one before is void."""
    token = new_token()
    settings.put(connection, KEEPER_DIGEST, token_digest(token))
    return token


def check_keeper(connection: Connection, token: str) -> None:
    """Let nobody else pass.

    Raises:
        Forbidden: it is not the keeper's token.
    """
    kept = settings.get(connection, KEEPER_DIGEST)
    if kept is None or not secrets.compare_digest(kept, token_digest(token)):
        raise Forbidden("This is for the keeper of the GPUs.")


def report(connection: Connection, now_ms: int, message: Report) -> Orders:
    """Note what the keeper finds, end what has to end, give what is free.

    A GPU is given only in the transaction of a report that finds it clear, and while no
    grader's job is on it; graders ask in a transaction of the same writer.
    """
    for gpu in message.gpus:
        _note_gpu(connection, now_ms, message, gpu)
    _end_due(connection, now_ms)
    for gpu in message.gpus:
        if gpu.is_clear:
            _finish(connection, now_ms, gpu)
    for gpu in message.gpus:
        if gpu.is_clear and not gpu.problem:
            _grant(connection, now_ms, gpu)
    return Orders(_grants(connection, now_ms, {gpu.gpu for gpu in message.gpus}))


def leased_gpus(connection: Connection) -> set[str]:
    """Give the GPUs that somebody has, or that are not clear of them yet."""
    of_leases = select(GPU_LEASES.c.gpu).where(GPU_LEASES.c.state.in_(OPEN))
    unclear = select(LEASE_GPUS.c.id).where(LEASE_GPUS.c.is_clear == 0)
    return {str(gpu) for gpu in connection.execute(of_leases.union(unclear)).scalars()}


def waiting(connection: Connection, now_ms: int) -> list[Row[Any]]:
    """Give the leases that wait, in the order in which they are served.

    A course with a session now comes first, then who has used GPUs least in a week.
    """
    now = {one.course for one in sessions(connection, now_ms, now_ms + 1)}
    lease = GPU_LEASES.alias()
    # a lease that goes on counts until now
    used = (
        select(
            func.coalesce(
                func.sum(func.coalesce(lease.c.ended_ms, now_ms) - lease.c.granted_ms),
                0,
            )
        )
        .where(
            lease.c.person == GPU_LEASES.c.person,
            lease.c.granted_ms.is_not(None),
            or_(lease.c.ended_ms.is_(None), lease.c.ended_ms > now_ms - _LATELY_MS),
        )
        .scalar_subquery()
    )
    query = select(GPU_LEASES, used.label("used_ms")).where(
        GPU_LEASES.c.state == "waiting"
    )
    rows = connection.execute(query).all()
    return sorted(
        rows, key=lambda row: (row.course not in now, row.used_ms, row.asked_ms, row.id)
    )


def end(connection: Connection, lease: str, note: str, until_ms: int) -> None:
    """Have the keeper take a GPU back from now on."""
    connection.execute(
        update(GPU_LEASES)
        .where(GPU_LEASES.c.id == lease, GPU_LEASES.c.state == "held")
        .values(state="ending", note=note, until_ms=until_ms)
    )


def _note_gpu(
    connection: Connection, now_ms: int, message: Report, gpu: KeptGpu
) -> None:
    values = {
        "node": message.node,
        "name": gpu.name,
        "problem": gpu.problem,
        "is_clear": int(gpu.is_clear),
        "idle_end_ms": message.idle_end_ms,
        "energy_mj": gpu.energy_mj,
        "seen_ms": now_ms,
    }
    of = LEASE_GPUS.c.id == gpu.gpu
    if not connection.execute(update(LEASE_GPUS).where(of).values(**values)).rowcount:
        connection.execute(insert(LEASE_GPUS).values(id=gpu.gpu, **values))
    # what nobody can tell is not held against the holder
    if gpu.is_busy is not False:
        held = (GPU_LEASES.c.gpu == gpu.gpu) & (GPU_LEASES.c.state == "held")
        connection.execute(update(GPU_LEASES).where(held).values(busy_ms=now_ms))


def _end_due(connection: Connection, now_ms: int) -> None:
    """End leases that are over, idle, or of somebody who has left the course."""
    query = (
        select(GPU_LEASES, LEASE_GPUS.c.idle_end_ms, MEMBERSHIPS.c.hidden_ms)
        .join(LEASE_GPUS, LEASE_GPUS.c.id == GPU_LEASES.c.gpu)
        .outerjoin(
            MEMBERSHIPS,
            (MEMBERSHIPS.c.course == GPU_LEASES.c.course)
            & (MEMBERSHIPS.c.person == GPU_LEASES.c.person),
        )
        .where(GPU_LEASES.c.state == "held")
    )
    for row in connection.execute(query).all():
        if row.until_ms <= now_ms:
            end(connection, row.id, "Its time was over.", row.until_ms)
        elif row.idle_end_ms and now_ms - row.busy_ms >= row.idle_end_ms:
            minutes = row.idle_end_ms // MINUTE_MS
            end(connection, row.id, f"No work for {minutes} minutes.", now_ms)
        elif row.hidden_ms is not None:
            end(connection, row.id, "You are off the roster.", now_ms)


def _finish(connection: Connection, now_ms: int, gpu: KeptGpu) -> None:
    """Note that a GPU was taken back: nobody has it any more."""
    query = select(GPU_LEASES.c.id, GPU_LEASES.c.energy_from_mj).where(
        GPU_LEASES.c.gpu == gpu.gpu, GPU_LEASES.c.state == "ending"
    )
    row = connection.execute(query).first()
    if row is None:
        return
    used_mj = None
    if gpu.energy_mj is not None and row.energy_from_mj is not None:
        # a driver that was loaded anew counts from nothing
        used_mj = max(0, gpu.energy_mj - row.energy_from_mj)
    change = update(GPU_LEASES).where(GPU_LEASES.c.id == row.id)
    connection.execute(change.values(state="ended", ended_ms=now_ms, energy_mj=used_mj))


def _grant(connection: Connection, now_ms: int, gpu: KeptGpu) -> None:
    leased = select(GPU_LEASES.c.id).where(
        GPU_LEASES.c.gpu == gpu.gpu, GPU_LEASES.c.state.in_(OPEN)
    )
    graded = select(JOBS.c.id).where(
        JOBS.c.state == "leased", JOBS.c.stage == "gpu", JOBS.c.device == gpu.gpu
    )
    if connection.execute(leased.union(graded)).first() is not None:
        return
    for row in waiting(connection, now_ms):
        if row.model not in ("", gpu.name):
            continue
        wanted_ms = now_ms + row.minutes * MINUTE_MS
        until_ms = until_session(connection, now_ms, row.course, wanted_ms)
        if until_ms - now_ms < LEAST_MINUTES * MINUTE_MS:
            continue
        connection.execute(
            update(GPU_LEASES)
            .where(GPU_LEASES.c.id == row.id)
            .values(
                state="held",
                gpu=gpu.gpu,
                granted_ms=now_ms,
                until_ms=until_ms,
                busy_ms=now_ms,
                energy_from_mj=gpu.energy_mj,
            )
        )
        return


def _grants(connection: Connection, now_ms: int, gpus: set[str]) -> tuple[Grant, ...]:
    query = (
        select(
            GPU_LEASES.c.id, GPU_LEASES.c.gpu, GPU_LEASES.c.until_ms, PEOPLE.c.username
        )
        .join(PEOPLE, PEOPLE.c.id == GPU_LEASES.c.person)
        .where(GPU_LEASES.c.state == "held", GPU_LEASES.c.gpu.in_(gpus))
    )
    return tuple(
        Grant(row.id, row.gpu, row.username, row.until_ms - now_ms)
        for row in connection.execute(query)
    )

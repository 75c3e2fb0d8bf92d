"""What somebody does with their lease: take, extend, give back, look."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from warpbook.hub_protocol import LEAST_MINUTES, MOST_MINUTES, OwnLease
from warpbook_hub.database.tables import GPU_LEASES, LEASE_GPUS
from warpbook_hub.errors import BadRequest, Conflict
from warpbook_hub.ids import new_id
from warpbook_hub.leases import grants
from warpbook_hub.leases.calendar import HEARD_MS, MINUTE_MS, until_session

#: how long before its end a lease says so
WARN_MS = 2 * MINUTE_MS
NONE_LEASED = (
    "This hub leases no GPUs. Labs are checked on the CPU, and recorded profiles can "
    "be opened."
)


def take(
    connection: Connection,
    now_ms: int,
    course: str,
    person: str,
    minutes: int,
    model: str = "",
) -> OwnLease:
    """Ask for a GPU; who waits already changes what they ask for, and keeps the place.

    Args:
        course: for which it is used.
        person: who asks.
        minutes: 10 to 30.
        model: the name of a GPU, or empty for any.

    Raises:
        BadRequest: so many minutes are not lent, or there is no such GPU.
        Conflict: the person has one, or the hub leases none.
    """
    _check(minutes)
    if connection.execute(select(LEASE_GPUS.c.id).limit(1)).first() is None:
        raise Conflict(NONE_LEASED)
    if model:
        known = select(LEASE_GPUS.c.id).where(LEASE_GPUS.c.name == model)
        if connection.execute(known).first() is None:
            raise BadRequest("There is no GPU of this name. Leave it out for any.")
    row = _open(connection, person)
    if row is not None and row.state != "waiting":
        raise Conflict("You have a GPU. Extend its lease, or give it back first.")
    if row is not None:
        change = update(GPU_LEASES).where(GPU_LEASES.c.id == row.id)
        connection.execute(change.values(course=course, minutes=minutes, model=model))
    else:
        connection.execute(
            insert(GPU_LEASES).values(
                id=new_id(),
                course=course,
                person=person,
                model=model,
                state="waiting",
                minutes=minutes,
                asked_ms=now_ms,
                note="",
            )
        )
    return own_lease(connection, now_ms, person)


def extend(connection: Connection, now_ms: int, person: str, minutes: int) -> OwnLease:
    """Have a lease end so many minutes from now, where nobody waits for the GPU.

    Raises:
        BadRequest: so many minutes are not lent.
        Conflict: there is no lease, somebody waits, or a session begins.
    """
    _check(minutes)
    row = _open(connection, person)
    if row is None or row.state != "held" or row.until_ms <= now_ms:
        raise Conflict("You have no GPU whose lease could be extended.")
    gpu = connection.execute(
        select(LEASE_GPUS.c.name).where(LEASE_GPUS.c.id == row.gpu)
    ).scalar_one()
    if any(one.model in ("", gpu) for one in grants.waiting(connection, now_ms)):
        raise Conflict("Others wait for this GPU: its lease can't be extended.")
    wanted_ms = now_ms + minutes * MINUTE_MS
    until_ms = until_session(connection, now_ms, row.course, wanted_ms, row.id)
    if until_ms <= row.until_ms:
        raise Conflict(
            "A reserved session begins then, or the lease is that long already."
        )
    change = update(GPU_LEASES).where(GPU_LEASES.c.id == row.id)
    connection.execute(change.values(until_ms=until_ms))
    return own_lease(connection, now_ms, person)


def give_back(connection: Connection, now_ms: int, person: str) -> OwnLease:
    """End a lease, or leave the line.

    Raises:
        Conflict: there is neither.
    """
    row = _open(connection, person)
    if row is None:
        raise Conflict("You have no GPU, and wait for none.")
    if row.state == "waiting":
        connection.execute(delete(GPU_LEASES).where(GPU_LEASES.c.id == row.id))
    else:
        grants.end(connection, row.id, "You gave it back.", now_ms)
    return own_lease(connection, now_ms, person)


def forget(connection: Connection, person: str) -> None:
    """Erase what somebody has leased; a GPU they have is taken back by the keeper."""
    connection.execute(delete(GPU_LEASES).where(GPU_LEASES.c.person == person))


def own_lease(connection: Connection, now_ms: int, person: str) -> OwnLease:
    """Tell how it stands with somebody's lease."""
    row = _open(connection, person)
    if row is None:
        query = (
            select(GPU_LEASES.c.note)
            .where(GPU_LEASES.c.person == person, GPU_LEASES.c.state == "ended")
            .order_by(GPU_LEASES.c.ended_ms.desc())
            .limit(1)
        )
        note = connection.execute(query).scalar()
        return OwnLease("none", note=f"Your last lease ended: {note}" if note else "")
    if row.state == "waiting":
        place, eta_ms = _place(connection, now_ms, row.id)
        eta_s = None if eta_ms is None else eta_ms // 1000
        return OwnLease("waiting", name=row.model, place=place, eta_s=eta_s)
    gpu = connection.execute(select(LEASE_GPUS).where(LEASE_GPUS.c.id == row.gpu)).one()
    left_ms = max(0, row.until_ms - now_ms)
    note = row.note or _warning(now_ms, row, gpu, left_ms)
    return OwnLease(row.state, row.gpu, gpu.name, left_ms // 1000, note=note)


def _warning(now_ms: int, row: Row[Any], gpu: Row[Any], left_ms: int) -> str:
    if left_ms <= WARN_MS:
        return "It ends soon: processes that have the GPU open are ended with it."
    idle_ms = now_ms - row.busy_ms
    if gpu.idle_end_ms and idle_ms >= gpu.idle_end_ms / 2:
        return (
            f"No work for {idle_ms // MINUTE_MS} minutes: after "
            f"{gpu.idle_end_ms // MINUTE_MS} it is taken back."
        )
    return ""


def _check(minutes: int) -> None:
    if not LEAST_MINUTES <= minutes <= MOST_MINUTES:
        raise BadRequest(f"A lease is of {LEAST_MINUTES} to {MOST_MINUTES} minutes.")


def _open(connection: Connection, person: str) -> Row[Any] | None:
    query = select(GPU_LEASES).where(
        GPU_LEASES.c.person == person, GPU_LEASES.c.state != "ended"
    )
    return connection.execute(query).first()


def _place(connection: Connection, now_ms: int, lease: str) -> tuple[int, int | None]:
    """Give the place in the line, and when a GPU comes if leases last to their end."""
    query = (
        select(LEASE_GPUS.c.id, LEASE_GPUS.c.name, GPU_LEASES.c.until_ms)
        .outerjoin(
            GPU_LEASES,
            (GPU_LEASES.c.gpu == LEASE_GPUS.c.id) & GPU_LEASES.c.state.in_(grants.OPEN),
        )
        .where(LEASE_GPUS.c.problem == "", LEASE_GPUS.c.seen_ms > now_ms - HEARD_MS)
    )
    frees = [
        (max(now_ms, row.until_ms or now_ms), row.id, row.name)
        for row in connection.execute(query)
    ]
    line = grants.waiting(connection, now_ms)
    for number, row in enumerate(line, 1):
        fits = [free for free in frees if row.model in ("", free[2])]
        free = min(fits, default=None)
        if row.id == lease:
            return number, None if free is None else free[0] - now_ms
        if free is not None:
            frees.remove(free)
            frees.append((free[0] + row.minutes * MINUTE_MS, free[1], free[2]))
    return 0, None

"""Sessions for which a course's staff reserve GPUs."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import Connection, delete, func, insert, select

from warpbook_hub import audit
from warpbook_hub.database.tables import GPU_LEASES, GPU_SESSIONS, LEASE_GPUS
from warpbook_hub.errors import BadRequest, Conflict
from warpbook_hub.ids import new_id
from warpbook_monitors.plain_text import bounded

MINUTE_MS = 60_000
#: a keeper that was not heard of for so long is lost
HEARD_MS = 15_000
_DAY_MS = 24 * 60 * MINUTE_MS
MOST_SESSION_MS = 12 * 60 * MINUTE_MS
MOST_AHEAD_MS = 366 * _DAY_MS
MOST_SESSIONS = 500


class GpuSession(Struct, frozen=True):
    """GPUs that are a course's for a time."""

    id: str
    course: str
    title: str
    gpus: int
    starts_ms: int
    ends_ms: int


_COLUMNS = tuple(GPU_SESSIONS.c[name] for name in GpuSession.__struct_fields__)


def sessions(connection: Connection, from_ms: int, to_ms: int) -> list[GpuSession]:
    """Give the sessions of all courses that overlap a time."""
    query = (
        select(*_COLUMNS)
        .where(GPU_SESSIONS.c.ends_ms > from_ms, GPU_SESSIONS.c.starts_ms < to_ms)
        .order_by(GPU_SESSIONS.c.starts_ms, GPU_SESSIONS.c.id)
    )
    return [GpuSession(**row) for row in connection.execute(query).mappings()]


def reserve(
    connection: Connection, now_ms: int, actor: str, wanted: GpuSession
) -> GpuSession:
    """Reserve GPUs of a session; `wanted.id` is drawn anew.

    Raises:
        BadRequest: its times or its title can't be used.
        Conflict: so many GPUs are not there, or are others' then.
    """
    if not wanted.title.strip():
        raise BadRequest("Name the session, such as `Monday's exercise`.")
    length_ms = wanted.ends_ms - wanted.starts_ms
    if not 0 < length_ms <= MOST_SESSION_MS or wanted.ends_ms <= now_ms:
        raise BadRequest("A session ends in the future and takes 12 hours at most.")
    if wanted.starts_ms > now_ms + MOST_AHEAD_MS:
        raise BadRequest("A session begins within a year.")
    total = usable_gpus(connection, now_ms)
    if total == 0:
        raise Conflict("No GPU can be reserved: this hub leases none that works now.")
    beside = sessions(connection, wanted.starts_ms, wanted.ends_ms)
    # at its worst moment; which is the start of one of them
    taken = max(
        sum(one.gpus for one in beside if one.starts_ms <= at < one.ends_ms)
        for at in (wanted.starts_ms, *(one.starts_ms for one in beside))
    )
    if not 0 < wanted.gpus <= total - taken:
        raise Conflict(f"Of {total} GPUs {taken} are reserved then.")
    upcoming = select(func.count(GPU_SESSIONS.c.id)).where(
        GPU_SESSIONS.c.course == wanted.course, GPU_SESSIONS.c.ends_ms > now_ms
    )
    if connection.execute(upcoming).scalar_one() >= MOST_SESSIONS:
        raise Conflict(f"A course has up to {MOST_SESSIONS} sessions ahead.")
    title = bounded(wanted.title.strip(), 100)
    made = GpuSession(
        new_id(), wanted.course, title, wanted.gpus, wanted.starts_ms, wanted.ends_ms
    )
    values = {name: getattr(made, name) for name in GpuSession.__struct_fields__}
    connection.execute(insert(GPU_SESSIONS).values(**values, made_by=actor))
    detail = {"gpus": made.gpus, "starts_ms": made.starts_ms, "ends_ms": made.ends_ms}
    audit.note(connection, now_ms, actor, "GPUs reserved", made.id, detail, made.course)
    return made


def cancel(
    connection: Connection, now_ms: int, actor: str, course: str, session: str
) -> None:
    """Let others have the GPUs of a session.

    Raises:
        Conflict: the course has none of this id.
    """
    of = (GPU_SESSIONS.c.id == session) & (GPU_SESSIONS.c.course == course)
    if not connection.execute(delete(GPU_SESSIONS).where(of)).rowcount:
        raise Conflict("The course has no such session.")
    audit.note(connection, now_ms, actor, "GPUs released", session, {}, course)


def usable_gpus(connection: Connection, now_ms: int) -> int:
    """Count the GPUs that can be leased."""
    query = select(func.count(LEASE_GPUS.c.id)).where(
        LEASE_GPUS.c.problem == "", LEASE_GPUS.c.seen_ms > now_ms - HEARD_MS
    )
    return int(connection.execute(query).scalar_one())


def until_session(
    connection: Connection, now_ms: int, course: str, until_ms: int, lease: str = ""
) -> int:
    """Shorten a time so that every other course's session finds its GPUs.

    Args:
        course: of who is to have a GPU.
        until_ms: how long they would have it.
        lease: the one that is prolonged, which is not counted twice.

    Returns:
        The time; `now_ms` or earlier where no GPU is left for the course now.
    """
    total = usable_gpus(connection, now_ms)
    for session in sessions(connection, now_ms, until_ms):
        if session.course == course:
            continue
        others = select(func.count(GPU_LEASES.c.id)).where(
            GPU_LEASES.c.state.in_(("held", "ending")),
            GPU_LEASES.c.course != session.course,
            GPU_LEASES.c.until_ms > session.starts_ms,
            GPU_LEASES.c.id != lease,
        )
        if connection.execute(others).scalar_one() + 1 > total - session.gpus:
            until_ms = min(until_ms, session.starts_ms)
    return until_ms

"""Every GPU that is leased: who has it, since when it idles, and what courses used."""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy import Connection, func, select

from warpbook_hub.database.tables import GPU_LEASES, JOBS, LEASE_GPUS, PEOPLE
from warpbook_hub.leases.calendar import HEARD_MS
from warpbook_hub.leases.grants import OPEN

_WEEK_MS = 7 * 24 * 3_600_000


class BoardGpu(Struct, frozen=True):
    """A GPU of a node."""

    id: str
    node: str
    name: str
    #: "free", "leased", "ending", "grades", "unclear", "unfit" or "lost"
    state: str
    #: why it is unfit
    problem: str
    #: user name of who has it; empty if nobody
    holder: str
    course: str
    until_ms: int | None
    #: when its holder last worked on it
    busy_ms: int | None
    seen_ms: int


class CourseUse(Struct, frozen=True):
    """What the leases of a course have used within a week."""

    course: str
    leases: int
    hours: float
    #: None where no GPU tells its energy
    joules: float | None


def gpus(connection: Connection, now_ms: int) -> list[BoardGpu]:
    """Give all GPUs that a keeper has told of."""
    query = (
        select(
            LEASE_GPUS,
            GPU_LEASES.c.state,
            GPU_LEASES.c.course,
            GPU_LEASES.c.until_ms,
            GPU_LEASES.c.busy_ms,
            PEOPLE.c.username,
        )
        .outerjoin(
            GPU_LEASES,
            (GPU_LEASES.c.gpu == LEASE_GPUS.c.id) & GPU_LEASES.c.state.in_(OPEN),
        )
        .outerjoin(PEOPLE, PEOPLE.c.id == GPU_LEASES.c.person)
        .order_by(LEASE_GPUS.c.node, LEASE_GPUS.c.name, LEASE_GPUS.c.id)
    )
    jobs = select(JOBS.c.device).where(JOBS.c.state == "leased", JOBS.c.stage == "gpu")
    graded = set(connection.execute(jobs).scalars())
    shown = []
    for row in connection.execute(query):
        if row.seen_ms <= now_ms - HEARD_MS:
            state = "lost"
        elif row.problem:
            state = "unfit"
        elif row.state is not None:
            state = "leased" if row.state == "held" else "ending"
        elif row.id in graded:
            state = "grades"
        else:
            state = "free" if row.is_clear else "unclear"
        shown.append(
            BoardGpu(
                row.id,
                row.node,
                row.name,
                state,
                row.problem,
                row.username or "",
                row.course or "",
                row.until_ms,
                row.busy_ms,
                row.seen_ms,
            )
        )
    return shown


def use_of_courses(connection: Connection, now_ms: int) -> list[CourseUse]:
    """Add up the leases that have ended within a week."""
    query = (
        select(
            GPU_LEASES.c.course,
            func.count(GPU_LEASES.c.id).label("leases"),
            func.sum(GPU_LEASES.c.ended_ms - GPU_LEASES.c.granted_ms).label("held_ms"),
            func.sum(GPU_LEASES.c.energy_mj).label("energy_mj"),
        )
        .where(
            GPU_LEASES.c.ended_ms > now_ms - _WEEK_MS,
            GPU_LEASES.c.granted_ms.is_not(None),
        )
        .group_by(GPU_LEASES.c.course)
        .order_by(GPU_LEASES.c.course)
    )
    return [
        CourseUse(
            row.course,
            row.leases,
            float(row.held_ms) / 3_600_000,
            None if row.energy_mj is None else float(row.energy_mj) / 1000,
        )
        for row in connection.execute(query)
    ]

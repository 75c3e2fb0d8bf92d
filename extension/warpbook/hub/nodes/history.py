"""The past of nodes: hours of GPUs, weeks of nodes, and what courses used.

A time of which nothing is known is None, and never zero.
"""

from __future__ import annotations

from collections import defaultdict

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, and_, func, select

from warpbook.hub.database.node_tables import GPU_SPANS, HOLDER_SPANS, NODE_HOLDERS
from warpbook.hub.database.tables import JOBS, MEMBERSHIPS, PUBLICATIONS, RESULTS
from warpbook.hub.nodes.taking import HOUR_MS, MINUTE_MS

WEEK_MS = 7 * 24 * HOUR_MS
HOURS = 7 * 24
MINUTES = 60
#: None, or the share of time in which the GPUs were active
Ratios = tuple[float | None, ...]


class CourseEnergy(Struct, frozen=True):
    """What a course has used of the GPUs within a week; None: not known."""

    course: str
    #: charged to accounts of its members
    members_j: float | None
    #: charged to processes of nobody here that say that they are its members'
    claimed_j: float | None
    #: of its jobs, as its graders counted it
    grading_j: float | None


def weeks(connection: Connection, now_ms: int) -> dict[str, Ratios]:
    """Give by node the activity of each of the last 168 hours, the newest last."""
    first_ms = now_ms // HOUR_MS * HOUR_MS - (HOURS - 1) * HOUR_MS
    query = (
        select(
            GPU_SPANS.c.node,
            GPU_SPANS.c.from_ms,
            func.sum(GPU_SPANS.c.active_ms).label("active_ms"),
            func.sum(GPU_SPANS.c.read_ms).label("read_ms"),
        )
        .where(
            GPU_SPANS.c.width_ms == HOUR_MS,
            GPU_SPANS.c.from_ms >= first_ms,
            GPU_SPANS.c.active_ms.is_not(None),
        )
        .group_by(GPU_SPANS.c.node, GPU_SPANS.c.from_ms)
    )
    by_node: dict[str, list[float | None]] = defaultdict(lambda: [None] * HOURS)
    for row in connection.execute(query):
        place = (row.from_ms - first_ms) // HOUR_MS
        if row.read_ms and place < HOURS:
            by_node[row.node][place] = float(row.active_ms) / float(row.read_ms)
    return {node: tuple(ratios) for node, ratios in by_node.items()}


def hours(connection: Connection, now_ms: int) -> dict[tuple[str, str], Ratios]:
    """Give by node and GPU the activity of each of the last 60 minutes."""
    first_ms = now_ms // MINUTE_MS * MINUTE_MS - (MINUTES - 1) * MINUTE_MS
    spans = GPU_SPANS.c
    query = select(
        spans.node, spans.gpu, spans.from_ms, spans.read_ms, spans.active_ms
    ).where(spans.width_ms == MINUTE_MS, spans.from_ms >= first_ms)
    by_gpu: dict[tuple[str, str], list[float | None]] = defaultdict(
        lambda: [None] * MINUTES
    )
    for row in connection.execute(query):
        place = (row.from_ms - first_ms) // MINUTE_MS
        if row.read_ms and row.active_ms is not None and place < MINUTES:
            by_gpu[row.node, row.gpu][place] = row.active_ms / row.read_ms
    return {gpu: tuple(ratios) for gpu, ratios in by_gpu.items()}


def energy_of_courses(connection: Connection, now_ms: int) -> list[CourseEnergy]:
    """Add up a week; who is a member of several courses counts in each."""
    since_ms = now_ms - WEEK_MS
    holders = NODE_HOLDERS.c
    members = _charged(connection, since_ms, holders.person == MEMBERSHIPS.c.person)
    # an account that somebody here owns is charged to them, whatever is claimed
    is_claimed = and_(
        holders.person.is_(None), holders.claimant == MEMBERSHIPS.c.person
    )
    claimed = _charged(connection, since_ms, is_claimed)
    graded = _graded(connection, since_ms)
    return [
        CourseEnergy(
            course, members.get(course), claimed.get(course), graded.get(course)
        )
        for course in sorted(members.keys() | claimed.keys() | graded.keys())
    ]


def _charged(
    connection: Connection, since_ms: int, is_theirs: ColumnElement[bool]
) -> dict[str, float]:
    query = (
        select(
            MEMBERSHIPS.c.course, func.sum(HOLDER_SPANS.c.energy_mj).label("energy_mj")
        )
        .join(NODE_HOLDERS, is_theirs)
        .join(HOLDER_SPANS, HOLDER_SPANS.c.holder == NODE_HOLDERS.c.id)
        .where(
            HOLDER_SPANS.c.width_ms == HOUR_MS,
            HOLDER_SPANS.c.from_ms > since_ms - HOUR_MS,
            HOLDER_SPANS.c.energy_mj.is_not(None),
        )
        .group_by(MEMBERSHIPS.c.course)
    )
    return {
        row.course: float(row.energy_mj) / 1000 for row in connection.execute(query)
    }


def _graded(connection: Connection, since_ms: int) -> dict[str, float]:
    query = (
        select(PUBLICATIONS.c.course, func.sum(RESULTS.c.energy_mj).label("energy_mj"))
        .join(JOBS, JOBS.c.publication == PUBLICATIONS.c.id)
        .join(RESULTS, RESULTS.c.job == JOBS.c.id)
        .where(RESULTS.c.received_ms > since_ms, RESULTS.c.energy_mj.is_not(None))
        .group_by(PUBLICATIONS.c.course)
    )
    return {
        row.course: float(row.energy_mj) / 1000 for row in connection.execute(query)
    }

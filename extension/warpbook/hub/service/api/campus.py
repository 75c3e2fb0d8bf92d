"""What instructors do with the nodes of the campus board."""

from __future__ import annotations

from msgspec import Struct

from warpbook.hub.nodes import campus, history, registry
from warpbook.hub.service.admitted import Admitted
from warpbook.hub.service.parameters import NodeName, NodeToRetire, Nothing, WeeksKept


class CampusNow(Struct, frozen=True):
    """The board, as a page shows it."""

    nodes: list[campus.CampusNode]
    courses: list[history.CourseEnergy]


def campus_now(asked: Admitted, _: Nothing) -> CampusNow:
    """Give what every GPU does now, who holds it, and what courses used."""
    connection, now_ms = asked.connection, asked.now_ms
    return CampusNow(
        campus.campus(connection, now_ms),
        history.energy_of_courses(connection, now_ms),
    )


def register_node(asked: Admitted, given: NodeName) -> dict[str, str]:
    """Make a node known; its token is told once."""
    token = registry.register(asked.connection, asked.now_ms, asked.actor, given.name)
    return {"token": token}


def retire_node(asked: Admitted, given: NodeToRetire) -> dict[str, str]:
    """Take a node off the board."""
    registry.retire(asked.connection, asked.now_ms, asked.actor, given.node)
    return {"node": given.node}


def keep_weeks(asked: Admitted, given: WeeksKept) -> dict[str, int]:
    """Set for how long hours are kept."""
    registry.keep_weeks(asked.connection, asked.now_ms, asked.actor, given.weeks)
    return {"weeks": given.weeks}

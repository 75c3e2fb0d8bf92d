"""What instructors do with the nodes of the campus board."""

from __future__ import annotations

from msgspec import Struct

from warpbook.hub.nodes import campus, history, registry
from warpbook.hub.nodes.kernel_hints import HintsNow
from warpbook.hub.service.admitted import Admitted
from warpbook.hub.service.parameters import NodeName, NodeToRetire, WeeksKept


class CampusNow(Struct, frozen=True):
    """The board, as a page shows it."""

    nodes: list[campus.CampusNode]
    courses: list[history.CourseEnergy]


def campus_now(admitted: Admitted, hints: HintsNow) -> CampusNow:
    """Give what every GPU does now, who holds it, and what courses used."""
    connection, now_ms = admitted.connection, admitted.now_ms
    return CampusNow(
        campus.campus(connection, now_ms, hints),
        history.energy_of_courses(connection, now_ms),
    )


def register_node(admitted: Admitted, given: NodeName) -> dict[str, str]:
    """Make a node known; its token is shown once."""
    token = registry.register(
        admitted.connection, admitted.now_ms, admitted.actor, given.name
    )
    return {"token": token}


def retire_node(admitted: Admitted, given: NodeToRetire) -> dict[str, str]:
    """Take a node off the board."""
    registry.retire(admitted.connection, admitted.now_ms, admitted.actor, given.node)
    return {"node": given.node}


def keep_weeks(admitted: Admitted, given: WeeksKept) -> dict[str, int]:
    """Set for how long hours are kept."""
    registry.keep_weeks(
        admitted.connection, admitted.now_ms, admitted.actor, given.weeks
    )
    return {"weeks": given.weeks}

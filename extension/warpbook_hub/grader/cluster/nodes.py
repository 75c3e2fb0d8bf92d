"""The machines of a Ray cluster, as its head tells of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from warpbook.hub_protocol import Device
from warpbook_hub.grader.cluster.settings import GPU_NAME, GPU_RESOURCE
from warpbook_hub.grader.engine import Places
from warpbook_hub.grader.gpus import gangs

#: of one grader, by the hub's rules
_MOST_SLOTS = 256


class Node(Struct, frozen=True):
    """A machine that is there."""

    id: str
    name: str
    cpu_slots: int
    #: a job has one of these
    devices: tuple[Device, ...]


def nodes_of(
    listed: Sequence[Mapping[str, Any]], together: int = 1, accelerator: str = ""
) -> dict[str, Node]:
    """Read `ray.nodes()`.

    Args:
        listed: what it gave.
        together: GPUs that one job has.
        accelerator: only GPUs of this type, as Ray calls it; empty: of any.

    Returns:
        By id the machines that are alive.
    """
    nodes: dict[str, Node] = {}
    for one in listed:
        if not one["Alive"]:
            continue
        resources = one["Resources"]
        name = one.get("Labels", {}).get(GPU_NAME, "GPU")
        gpus = [
            Device(resource.removeprefix(GPU_RESOURCE), name)
            for resource in sorted(resources)
            if resource.startswith(GPU_RESOURCE)
        ]
        if accelerator and f"accelerator_type:{accelerator}" not in resources:
            gpus = []
        slots = int(resources.get("CPU", 0))
        where = str(one["NodeManagerAddress"])
        nodes[one["NodeID"]] = Node(one["NodeID"], where, slots, gangs(gpus, together))
    return nodes


def places_of(nodes: Mapping[str, Node]) -> Places:
    """Add up what jobs can have."""
    slots = sum(node.cpu_slots for node in nodes.values())
    gpus = [gpu for node in nodes.values() for gpu in node.devices]
    return Places(min(slots, _MOST_SLOTS), tuple(gpus[:_MOST_SLOTS]))

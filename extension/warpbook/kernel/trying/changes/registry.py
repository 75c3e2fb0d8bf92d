"""All changes that are tried, the cheapest first."""

from __future__ import annotations

from collections.abc import Callable

from warpbook.kernel.trying.changes.change import Change
from warpbook.kernel.trying.changes.compiled import Compile
from warpbook.kernel.trying.changes.graph import CudaGraph
from warpbook.kernel.trying.changes.layout import ChannelsLast
from warpbook.kernel.trying.changes.optimizers import FusedOptimizer
from warpbook.kernel.trying.changes.pinned import Pinned
from warpbook.kernel.trying.changes.precision import Bf16, Tf32
from warpbook.kernel.trying.names import ALL

CHANGES: tuple[Callable[[], Change], ...] = (
    Tf32,
    Bf16,
    FusedOptimizer,
    Pinned,
    ChannelsLast,
    CudaGraph,
    Compile,
)


def asked_for(name: str) -> list[Change]:
    """Make the changes that a person asks for: one by its name, or all."""
    changes = [make() for make in CHANGES]
    return [change for change in changes if name in (ALL, change.name)]

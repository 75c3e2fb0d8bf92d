"""What a run did, as far as it tells whether another run did the same; no NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct


class WorkRow(Struct, frozen=True):
    """All calls of one operator, kernel or copy with the same sizes and dtypes."""

    kind: Literal["operator", "GPU work"]
    name: str
    #: of an operator's tensors, or a kernel's blocks; "" where not known
    sizes: str
    #: of an operator's arguments; "" where not known
    dtypes: str
    calls: int


class Work(Struct, frozen=True):
    """What was done in the steps of a schedule, or in all of a run without one.

    What an optimizer does is left out: nearly all programs that train do that alike.
    """

    #: the GPU, another device, or "CPU"
    device: str
    versions: Mapping[str, str]
    steps: int
    #: less the profiler's own
    time_ns: int
    #: of it, what the GPU worked
    busy_ns: int
    launches: int
    rows: tuple[WorkRow, ...]

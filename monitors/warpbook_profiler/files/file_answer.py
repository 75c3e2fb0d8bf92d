"""What the process that reads a trace file answers; this module needs no NumPy."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from warpbook_profiler.model.cell_profile import CellProfile

Fault = Literal["not_a_trace", "damaged", "too_large", "unreadable"]


class Told(Struct, frozen=True):
    """The answer of the process: a profile, or a fault in words."""

    profile: CellProfile | None = None
    #: as `timeline_body` packs them; None if there are more than a timeline takes
    timeline: bytes | None = None
    timeline_events: int | None = None
    fault: Fault | None = None
    problem: str = ""

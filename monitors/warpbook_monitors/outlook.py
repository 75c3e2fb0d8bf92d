"""Where a GPU's memory is heading: how fast it fills, and when it would be full."""

from __future__ import annotations

from msgspec import Struct


class MemoryOutlook(Struct, frozen=True):
    """The memory of one GPU now, and its trend."""

    used_bytes: int
    total_bytes: int
    #: None where the readings do not suffice, or have no trend
    slope_bytes_per_s: float | None
    #: None unless memory grows steadily
    full_in_s: float | None
    #: the same for a person
    sentence: str

"""Reasons why a warp waits, in plain words, with what to do; the table is beside it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct

from warpbook_monitors import toml_text
from warpbook_monitors.plain_text import bounded
from warpbook_profiler.model.stalls import SELECTED


class StallReason(Struct, frozen=True):
    """What CUPTI's name of a reason means."""

    #: what a warp does then: "waits for device memory"
    words: str
    #: in a column "Waits for": "device memory"
    short: str
    #: what it waits for, and what helps, in sentences
    advice: str
    #: id of the lab that teaches it, where one does
    lab: str | None = None


@cache
def stall_reasons() -> Mapping[str, StallReason]:
    """Return the reasons that are known, by CUPTI's short names."""
    text = Path(__file__).with_suffix(".toml").read_text("utf-8")
    return toml_text.decode(text, dict[str, StallReason])


def stall_reason(name: str) -> StallReason:
    """Return what a reason means; of one that is not known, its name alone."""
    known = stall_reasons().get(name)
    if known is not None:
        return known
    shown = bounded(name)
    return StallReason(f"waits for {shown}", shown, "This is CUPTI's name.")


def leading(reasons: Mapping[str, int]) -> str | None:
    """Return the reason for which warps waited most; None where none waited."""
    waits = {name: count for name, count in reasons.items() if name != SELECTED}
    return max(waits, key=lambda name: (waits[name], name), default=None)

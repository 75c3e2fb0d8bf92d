"""How long work takes: as measured on its GPU and host, else in proportion to an H200.

`h200.json` beside this is what `warpbook limits` measured on one. Of another GPU it is
read at as many times the work as the H200's ceiling is higher, so that what is small
keeps its floor. Ranges of defaults are wider than they were measured.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from math import log
from pathlib import Path
from typing import NamedTuple

import msgspec

from warpbook_profiler.model.ceilings import Ceilings, ceilings
from warpbook_profiler.model.limits import Limits, Point

#: curves that scale with memory, and those with the arithmetic of the dtype they name
_OF_MEMORY = frozenset({"pass", "reduce"})
_OF_ARITHMETIC = frozenset(
    "multiply odd convolve convolve_backward attend attend_backward".split()
)
#: on the host, whose speed no GPU's name tells
_OF_HOST = frozenset(
    "launch operator autograd autocast compiled_call graph_launch synchronize "
    "round_trip recorded".split()
)
_OF_LINK = "copy"
#: how many times as fast PCIe 5 is as the link of a compute capability
_LINKS = {7: 4.3, 8: 2.15, 9: 1.0, 10: 1.0}
#: what ranges are widened by: those measured here, for work of another shape; those of
#: defaults for the same chip, for another one, and for another host
_HERE, _SAME, _OTHER, _HOST = 1.05, 1.1, 1.3, 1.5
#: beyond the last point of a curve; a file may come from anyone
_MOST_RATIO = 1e9
_HOPPER = ("NVIDIA H100", "NVIDIA H200", "NVIDIA GH200")


class Times(NamedTuple):
    """At least, usually and at most, in ns."""

    low_ns: float
    usual_ns: float
    high_ns: float


@dataclass(frozen=True)
class Calibration:
    """Times of work on one GPU and its host."""

    #: the driver's name; empty without a GPU
    gpu: str = ""
    #: of the compute capability
    major: int | None = None
    measured: Limits | None = None

    def times(self, name: str, amount: float = 1.0) -> Times | None:
        """Give what work takes; None where nothing is known of this GPU.

        Args:
            name: of a curve of `Limits`.
            amount: in its unit.
        """
        own = self.own(name, amount)
        if own is not None:
            return _wider(own, _HERE)
        curve, ratio = defaults().curves.get(name), self._ratio(name)
        if curve is None or ratio is None:
            return None
        kind = name.partition(".")[0]
        wider = _SAME if self.gpu.startswith(_HOPPER) else _OTHER
        wider = _HOST if kind in _OF_HOST else wider
        return _wider(_at(curve, amount * ratio), wider)

    def own(self, name: str, amount: float = 1.0) -> Times | None:
        """Give what was measured on this GPU and host; None where nothing was."""
        curve = None if self.measured is None else self.measured.curves.get(name)
        return None if curve is None else _at(curve, amount)

    @property
    def words(self) -> str:
        """Tell where the times come from."""
        if self.measured is None:
            return f"defaults of an {defaults().gpu.removeprefix('NVIDIA ')}"
        return f"measured on {self.measured.host} with torch {self.measured.torch}"

    def _ratio(self, name: str) -> float | None:
        """Give how many times as fast as this GPU the one of the defaults is."""
        kind, _, rest = name.partition(".")
        if kind == _OF_LINK:
            return _LINKS.get(self.major or 0)
        if kind not in _OF_MEMORY | _OF_ARITHMETIC:
            return 1.0
        mine, theirs = self.ceilings, ceilings(defaults().gpu)
        if mine is None or theirs is None:
            return None
        if kind in _OF_MEMORY:
            return theirs.memory_bytes_per_s / mine.memory_bytes_per_s
        dtype = rest.partition(".")[0]
        peak, default = (of.flops_per_s.get(dtype) for of in (mine, theirs))
        return None if peak is None or default is None else default / peak

    @property
    def ceilings(self) -> Ceilings | None:
        """Give the datasheet's, else those that were measured."""
        sheet = ceilings(self.gpu)
        return sheet or (None if self.measured is None else self.measured.ceilings)


@cache
def defaults() -> Limits:
    """Return what was measured on an H200."""
    text = Path(__file__).with_name("h200.json").read_bytes()
    return msgspec.json.decode(text, type=Limits)


def _wider(times: Times, ratio: float) -> Times:
    return Times(times.low_ns / ratio, times.usual_ns, times.high_ns * ratio)


def _at(curve: tuple[Point, ...], amount: float) -> Times:
    """Read a curve: straight in logarithms, level before it, in proportion beyond."""
    place = bisect_right(curve, amount, key=lambda point: point.amount)
    before = curve[max(place - 1, 0)]
    times = Times(before.low_ns, before.usual_ns, before.high_ns)
    if place == 0:
        return times
    if place == len(curve):
        ratio = min(amount / before.amount, _MOST_RATIO)
        return Times(*(time_ns * ratio for time_ns in times))
    after = curve[place]
    share = log(amount / before.amount) / log(after.amount / before.amount)
    ends = after.low_ns, after.usual_ns, after.high_ns
    return Times(
        *(one * (end / one) ** share for one, end in zip(times, ends, strict=True))
    )

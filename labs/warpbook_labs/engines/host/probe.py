"""Whether a process that stands still has left work on the GPU.

A GPU gives its time to processes in turns. A kernel that only counts takes as long as
ever if nobody else has work there, and about twice as long if somebody has. The copy
engines are asked by a copy each way. Both are timed by the GPU: a host with too few
cores is no work that anybody has left.
"""

from __future__ import annotations

import statistics
import time
from typing import NamedTuple

from warpbook_labs.gpu.tools import Tools

#: longer than a process's turn, or nobody else's would come
_WANTED_NS = 4e6
_FIRST_STEPS = 20_000
_WARM_UP_S = 0.2
_TIMES = 7
_COPY_BYTES = 32 << 20
_PATIENCE_S = 20.0
#: a clock that moves is no work of another's
_MOST = 1.35


class _Took(NamedTuple):
    spin_ns: float
    copy_ns: float


class Probe:
    """Knows how long it takes when all is quiet."""

    def __init__(self, tools: Tools) -> None:
        """Measure that; no child may have work there."""
        self._tools = tools
        self._held = tools.device.pinned(_COPY_BYTES)
        self._address = tools.device.allocate(_COPY_BYTES)
        until_s = time.monotonic() + _WARM_UP_S
        first_ns = tools.spin_ns(_FIRST_STEPS)
        # clocks that are low after a rest would let others' work pass for it later
        while time.monotonic() < until_s:
            first_ns = tools.spin_ns(_FIRST_STEPS)
        self._steps = max(1, round(_FIRST_STEPS * _WANTED_NS / first_ns))
        took = [self._took() for _ in range(_TIMES)]
        self.quiet = _Took(
            statistics.median(times.spin_ns for times in took),
            statistics.median(times.copy_ns for times in took),
        )

    def is_quiet(self) -> bool:
        """Tell whether nobody else has work there."""
        took = self._took()
        return all(
            now <= _MOST * before for now, before in zip(took, self.quiet, strict=True)
        )

    def _took(self) -> _Took:
        device = self._tools.device
        return _Took(
            self._tools.spin_ns(self._steps),
            device.copied_both_ways_ns(self._address, self._held, _PATIENCE_S),
        )

"""Which line of a cell the host had come to, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warpbook_profiler.events.columns import NONE, Int64s


@dataclass(frozen=True)
class Marks:
    """When the host came to which line, in order; Unix time."""

    line: Int64s
    start_ns: Int64s

    def line_at(self, at_ns: Int64s) -> Int64s:
        """Give the line at which the host was; NONE before the first."""
        place = np.searchsorted(self.start_ns, at_ns, side="right") - 1
        line: Int64s = np.append(self.line, NONE)[place]
        return line


def make_marks(lines: Sequence[int], start_ns: Sequence[int]) -> Marks:
    """Take what the code noted as it ran."""
    return Marks(np.array(lines, np.int64), np.array(start_ns, np.int64))

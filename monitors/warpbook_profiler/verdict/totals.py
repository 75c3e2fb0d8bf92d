"""Events added up by their names, the longest first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpbook_profiler.events.columns import NONE, Columns, Int64s

#: rows beyond these are added up into one
MAX_ROWS = 50


@dataclass(frozen=True)
class Total:
    """All events of one name."""

    name: str
    calls: int
    time_ns: int
    #: of one event
    longest_ns: int
    size_bytes: int | None


def totals(events: Columns, time_ns: Int64s) -> list[Total]:
    """Add up by name, the longest first; the rest beyond MAX_ROWS becomes one."""
    count = len(events.names)
    calls = np.bincount(events.name, minlength=count)
    # float64 sums of nanoseconds are exact up to 104 days
    time = np.bincount(events.name, time_ns, minlength=count)
    longest = np.zeros(count, np.int64)
    np.maximum.at(longest, events.name, time_ns)
    sizes = np.bincount(events.name, np.maximum(events.size_bytes, 0), minlength=count)
    unsized = np.bincount(events.name, events.size_bytes == NONE, minlength=count) > 0
    order = np.argsort(-time, kind="stable")
    order = order[calls[order] > 0]

    def total(name: str, rows: Int64s) -> Total:
        return Total(
            name,
            int(calls[rows].sum()),
            round(time[rows].sum()),
            int(longest[rows].max()),
            None if unsized[rows].any() else int(sizes[rows].sum()),
        )

    if len(order) <= MAX_ROWS:
        return [total(events.names[row], order[[n]]) for n, row in enumerate(order)]
    kept, rest = order[: MAX_ROWS - 1], order[MAX_ROWS - 1 :]
    return [total(events.names[row], kept[[n]]) for n, row in enumerate(kept)] + [
        total(f"({len(rest):,} others)", rest)
    ]

"""The times of a trace file's events, and which of them can't be."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warpbook_profiler.events.columns import Int64s

#: An event that begins or lasts beyond these is nonsense, and left out.
_MOST_US = 4e15
_LONGEST_US = 1e12
#: A few events are nonsense too if nothing at all lies between them and the others
#: for a minute, and for so many times as long as all others take.
_LEAST_AWAY_US = 60e6
_MOST_TIMES_AWAY = 10
_FEW_SHARE = 0.05


def make_sense(start_us: Any, duration_us: Any) -> Any:
    """Tell events that were over before they began, or never; for numbers or arrays."""
    return (
        (start_us >= -_LONGEST_US)
        & (start_us <= _MOST_US)
        & (duration_us >= 0)
        & (duration_us <= _LONGEST_US)
    )


def far_away(
    start_us: npt.NDArray[np.float64],
    duration_us: npt.NDArray[np.float64],
    on_host: npt.NDArray[np.bool_],
    recorded: list[tuple[float, float]],
) -> npt.NDArray[np.bool_]:
    """Choose events whose clock was another one, or none: a few, or all of a GPU.

    Args:
        on_host: those that no GPU timed.
        recorded: while the profiler recorded, nothing is far away.
    """
    count = len(start_us)
    far = np.zeros(count, np.bool_)
    if not count or np.ptp(start_us) < _LEAST_AWAY_US:
        return far
    begin = np.append(start_us, [span[0] for span in recorded])
    end = np.append(start_us + duration_us, [sum(span) for span in recorded])
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], np.maximum.accumulate(end[order])
    first = np.flatnonzero(np.append(True, begin[1:] - end[:-1] > _LEAST_AWAY_US))
    last = np.append(first[1:], len(begin)) - 1
    sizes = last - first + 1
    most = int(sizes.argmax())
    away = np.maximum(begin[first] - end[last[most]], begin[first[most]] - end[last])
    took = end[last[most]] - begin[first[most]]
    of_host = np.append(on_host, np.ones(len(recorded), np.bool_))[order]
    hosts = np.add.reduceat(of_host.astype(np.int64), first)
    # a GPU does nothing so far from all that the host does
    lone = (sizes <= _FEW_SHARE * sizes[most]) | ((hosts == 0) & (hosts[most] > 0))
    lone &= away > _MOST_TIMES_AWAY * took
    group = np.repeat(lone, sizes)
    # the recorded span itself is no event
    is_event = order < count
    far[order[is_event]] = group[is_event]
    return far


def nanoseconds(us: npt.NDArray[np.float64]) -> Int64s:
    """Convert a file's microseconds."""
    # they have three decimals; where they count from 1970, as
    # many nanoseconds would not fit a float
    whole = np.floor(us)
    part = np.rint((us - whole) * 1000)
    return whole.astype(np.int64) * 1000 + part.astype(np.int64)

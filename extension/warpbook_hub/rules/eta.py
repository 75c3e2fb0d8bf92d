"""When a job in the queue will be done, as far as one can tell."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from statistics import mean


def finish_times_s(
    durations_s: Sequence[float], slots: int, running_s: Sequence[float] = ()
) -> list[float]:
    """Give for each job of a queue in how many seconds it will be done.

    Args:
        durations_s: how long each is thought to take, the first of the queue first.
        slots: how many are done at the same time.
        running_s: how much longer each job that runs is thought to take.

    Returns:
        Infinity for all where there is no slot.
    """
    if slots <= 0:
        return [math.inf] * len(durations_s)
    # when each slot is free; more may run than there are slots now
    free_s = sorted(max(0.0, left_s) for left_s in running_s)
    free_s = [0.0] * (slots - len(free_s)) + free_s[-slots:]
    heapq.heapify(free_s)
    finished: list[float] = []
    for duration_s in durations_s:
        end_s = heapq.heappop(free_s) + max(0.0, duration_s)
        heapq.heappush(free_s, end_s)
        finished.append(end_s)
    return finished


def expected_s(recent_s: Sequence[float], otherwise_s: float) -> float:
    """Estimate how long a job of a lab takes, by those that were done last."""
    return mean(recent_s) if recent_s else otherwise_s

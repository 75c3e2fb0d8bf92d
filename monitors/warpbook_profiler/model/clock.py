"""Asks the system what a run takes of the CPU; only a capture imports this."""

from __future__ import annotations

import math
import time
from pathlib import Path

import torch

from warpbook_monitors.cores import usable_cores
from warpbook_profiler.model.use import CpuUse

#: Linux: time on a core, time in line for one, turns
_SCHEDULER = Path("/proc/thread-self/schedstat")
#: of a control group: CPU time in µs that it may take in a period, and the period
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


class CpuClock:
    """Counts from when it is made, for the thread that makes it."""

    def __init__(self) -> None:
        self._queued_ns = _queued_ns()
        self._thread_ns = time.thread_time_ns()
        self._process_ns = time.process_time_ns()

    def use(self, wall_ns: int) -> CpuUse:
        """Give what was taken since, on the same thread, in so much time."""
        queued_ns = _queued_ns()
        if queued_ns is not None and self._queued_ns is not None:
            queued_ns -= self._queued_ns
        return CpuUse(
            wall_ns=max(wall_ns, 0),
            thread_ns=time.thread_time_ns() - self._thread_ns,
            process_ns=time.process_time_ns() - self._process_ns,
            queued_ns=queued_ns,
            threads=torch.get_num_threads(),
            cores=min(usable_cores(), _allowed_cores() or usable_cores()),
        )


def _allowed_cores() -> int | None:
    """Give the cores that a container may keep busy; None without a limit."""
    try:
        quota, period = _QUOTA.read_text().split()
        return max(math.ceil(int(quota) / int(period)), 1)
    except (OSError, ValueError, ZeroDivisionError):
        return None  # "max" is no number


def _queued_ns() -> int | None:
    try:
        return int(_SCHEDULER.read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None

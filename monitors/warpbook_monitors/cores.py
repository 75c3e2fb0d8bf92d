"""How many cores of the machine this process may use."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Count them: a container or `taskset` may leave fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

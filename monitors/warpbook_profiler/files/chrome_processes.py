"""Whose events a file holds: several processes where somebody merged their traces.

Correlation and External ids are unique within one process only. An event on a GPU names
the GPU where others name their process. What merged the files has changed both alike
("[TP00] 83" and "[TP00] 0"), or has made the ids unique; else nobody can tell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from warpbook_profiler.events.columns import (
    NONE,
    ON_GPU,
    Category,
    Int8s,
    Int64s,
    distinct,
)

#: in a merged file; of more nobody is told
MOST_MERGED = 64
_NUMBER = re.compile(r"\d+")


def merged(category: Int8s, process: Int64s) -> list[int]:
    """Give the processes of a file; none where it is of one, as profilers write it."""
    for kind in (Category.API, Category.OPERATOR):
        processes = distinct(process[category == kind]).tolist()
        if processes:
            # an operator's process may be told otherwise than its calls'
            return processes if len(processes) > 1 else []
    return []


def owners(
    category: Int8s,
    process: Int64s,
    correlation: Int64s,
    names: Sequence[str],
    processes: Sequence[int],
) -> Int64s:
    """Give each event's process, or NONE where that is not known.

    Args:
        category: of each event.
        process: what the file calls its process, a position in `names`.
        correlation: of each event.
        names: of processes, and of GPUs in their place.
        processes: those of the host.
    """
    owner = np.full(len(process), NONE, np.int64)
    is_call = category == Category.API
    on_gpu = np.isin(category, (*ON_GPU, Category.GPU_ANNOTATION, Category.SYNC))
    owner[~on_gpu] = np.where(np.isin(process, processes), process, NONE)[~on_gpu]
    by_form: dict[str, set[int]] = {}
    for host in processes:
        for form in _forms(names[host]):
            by_form.setdefault(form, set()).add(host)
    for other in distinct(process[owner == NONE]).tolist():
        alike = [by_form.get(form, set()) for form in _forms(names[other])]
        owns = {host for hosts in alike for host in hosts if len(hosts) == 1}
        if len(owns) == 1:
            owner[(process == other) & (owner == NONE)] = owns.pop()
    rows = np.flatnonzero(on_gpu & (owner == NONE))
    if len(rows):
        launchers = np.zeros(len(rows), np.int64)
        launcher = np.full(len(rows), NONE, np.int64)
        for host in processes:
            own = correlation[is_call & (process == host)]
            linked = np.isin(correlation[rows], own[own > 0])
            launchers += linked
            launcher[linked] = host
        owner[rows] = np.where(launchers == 1, launcher, NONE)
    return owner


def _forms(name: str) -> set[str]:
    """Write a process's name with one of its numbers left open."""
    return {
        f"{name[: number.start()]}#{name[number.end() :]}"
        for number in _NUMBER.finditer(name[:100])
    }

"""What of the window a change makes shorter: parts of it, and its work by name."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from warpbook_profiler.advice.edits import Edit
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.events.columns import Int64s
from warpbook_profiler.model.figures import BETWEEN, LAUNCHING, OTHER_WORK, WAITS
from warpbook_profiler.replay.host import Floats

#: of the window; who makes less of a part shorter does not act on it
_LEAST_SHARE = 0.01
_MOST_NAMES = 8


class Shortened(NamedTuple):
    """Parts of the window, and names of work on the GPU, the longest first."""

    parts: tuple[str, ...]
    slices: tuple[str, ...]


def shortened(evidence: Evidence, edit: Edit) -> Shortened:
    """Return what an edit makes shorter."""
    least_ns = _LEAST_SHARE * evidence.bare_run.judged_ns
    of_gpu = _of_work(evidence, evidence.gpu.duration_ns * edit.saved_shares, least_ns)
    parts = [*of_gpu.parts]
    if edit.stops_waiting:
        parts.append(WAITS)
    if edit.saved_host_ns >= least_ns:
        parts += [LAUNCHING, OTHER_WORK]
    if edit.closes_up:
        parts += [LAUNCHING, BETWEEN]
    return Shortened(tuple(dict.fromkeys(parts)), of_gpu.slices)


def about(evidence: Evidence, events: Int64s) -> Shortened:
    """Return what a change without an edit is about, from events on the GPU."""
    saved_ns = np.zeros(len(evidence.gpu))
    saved_ns[events] = evidence.gpu.duration_ns[events]
    return _of_work(evidence, saved_ns, 1.0)


def _of_work(evidence: Evidence, saved_ns: Floats, least_ns: float) -> Shortened:
    gpu = evidence.gpu
    of_name = np.bincount(gpu.name, saved_ns, minlength=len(gpu.names))
    order = np.argsort(-of_name, kind="stable")
    names = [gpu.names[at] for at in order[of_name[order] > 0].tolist()]
    of_part: dict[str, float] = {}
    for name, time_ns in zip(names, np.sort(of_name)[::-1].tolist(), strict=False):
        for part in evidence.trace.parts.get(name, ()):
            of_part[part] = of_part.get(part, 0.0) + time_ns
    parts = (part for part, time_ns in of_part.items() if time_ns >= least_ns)
    return Shortened(tuple(parts), tuple(names[:_MOST_NAMES]))

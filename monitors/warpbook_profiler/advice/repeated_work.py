"""Whether a window's work repeats: the same kernels in the same order, once more."""

from __future__ import annotations

import numpy as np

from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.events.columns import groups

#: candidates for the length of a repeated part that are tried
_MOST_TRIED = 64
#: of the work, what is the same a period later; a first pass may differ a little
_LEAST_SAME = 0.98


def period_of(evidence: Evidence) -> int | None:
    """Give after how many events on the GPU the same ones come again; None if never."""
    gpu, launch = evidence.gpu, evidence.calls.launch
    order = np.argsort(launch, kind="stable")
    if len(order) < 2:
        return None
    _, kind = groups(gpu.name, gpu.shape)
    kind = kind[order]
    # what comes again does so in the second half, too: begin with its rarest kind
    half = kind[: len(kind) // 2]
    counts = np.bincount(half)
    rarest = int(np.argmin(np.where(counts > 0, counts, len(kind))))
    places = np.flatnonzero(kind == rarest)
    for period in (places[1:] - places[0])[:_MOST_TRIED].tolist():
        if 2 * period > len(kind):
            return None
        if (kind[period:] == kind[:-period]).mean() >= _LEAST_SAME:
            return int(period)
    return None

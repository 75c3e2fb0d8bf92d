"""Columns of events as a profiler would have recorded them."""

import numpy as np

from warpbook_profiler.events.columns import make_columns
from warpbook_profiler.events.run import Run

BEGIN_NS = 1_790_857_026_000_000_000
NAMES = ("gemm", "Memcpy HtoD", "aten::linear", "cudaLaunchKernel", "relu", "copy_")


def columns(events):
    """Columns of (category, device, track, name, start, duration), start from 0."""
    category, device, track, name, start, duration = zip(*events, strict=True)
    count = len(events)
    return make_columns(
        names=(NAMES, np.array(name, np.int32)),
        categories=np.array(category, np.int8),
        start_ns=BEGIN_NS + np.array(start, np.int64),
        duration_ns=np.array(duration, np.int64),
        device=np.array(device, np.int64),
        track=np.array(track, np.int64),
        correlation=np.zeros(count, np.int64),
        size_bytes=np.full(count, -1, np.int64),
    )


def run_of(span_ns: int) -> Run:
    return Run(BEGIN_NS, BEGIN_NS + span_ns, BEGIN_NS + span_ns)

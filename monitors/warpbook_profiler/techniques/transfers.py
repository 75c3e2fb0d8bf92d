"""Copies from and to ordinary memory, which the driver has to stage."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpbook_monitors import units
from warpbook_monitors.units import rate, size
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Category, Int64s

#: copies below this share of the bare run are left alone
_LEAST_SHARE = 0.03
#: smaller ones take what their call takes, from whichever memory
_SMALL_BYTES = 256 << 10
_TO_GPU, _PAGEABLE = "HtoD", "Pageable"


def transfers(evidence: Evidence) -> Iterator[Proposal]:
    """Propose pinned memory for large copies to the GPU."""
    copies = _pageable(evidence)
    time_ns = evidence.time_ns(copies)
    if evidence.share(time_ns) < _LEAST_SHARE:
        return
    gpu, chip = evidence.gpu, evidence.chip
    size_bytes = int(gpu.size_bytes[copies].sum())
    per_second = size_bytes / max(time_ns, 1) * 1e9
    ways = Ways(evidence)
    span = None if chip is None else chip.copy_pinned(size_bytes)
    if span is None:
        # a copy takes time whatever memory it is from
        span = Span(0.0, 0.0, 0.0)
    ways.resize(copies, span.at_most(time_ns))
    launches = evidence.calls.launch[copies]
    ways.stop_waiting(launches[launches != NONE])
    moved = evidence.code.calls("to", "cuda")
    receiver = moved[0].receiver if moved else ""
    receiver = receiver or "batch"
    # what a call gives has no name to be bound to again
    target = receiver if receiver.isidentifier() else "batch"
    count = f"{len(copies):,} cop{'ies' if len(copies) != 1 else 'y'}"
    yield Proposal(
        name="pinned",
        title="Copy from pinned memory, with non_blocking=True.",
        evidence=(
            f"{count} to the GPU carry {size(size_bytes)} from pageable memory at "
            f"{rate(per_second, 'B')}: {units.share(evidence.share(time_ns))} of the "
            "bare run."
        ),
        ways=ways,
        is_bound=chip is None or chip.copy_pinned(size_bytes) is None,
        reason=(
            "The memory is pinned before, as DataLoader(pin_memory=True) does it: "
            "pinning it for one copy takes longer than the copy."
        ),
        operator=_operator(evidence, copies),
        line=moved[0].line if moved else _line(evidence, copies),
        sketch=(
            "loader = DataLoader(..., pin_memory=True)  # or pin_memory() once, ahead\n"
            f'{target} = {receiver}.to("cuda", non_blocking=True)'
        ),
        topic="pinned-memory",
    )


def _pageable(evidence: Evidence) -> Int64s:
    gpu = evidence.gpu
    named = [_TO_GPU in name and _PAGEABLE in name for name in gpu.names]
    chosen = np.array(named or [False])[gpu.name] & gpu.is_in(Category.COPY)
    return np.flatnonzero(chosen & (gpu.size_bytes >= _SMALL_BYTES))


def _operator(evidence: Evidence, copies: Int64s) -> str | None:
    outer = evidence.operators.outer[copies]
    known = outer[outer != NONE]
    return evidence.operators.name(int(known[0])) if len(known) else None


def _line(evidence: Evidence, copies: Int64s) -> int | None:
    launch = evidence.calls.launch[copies]
    known = launch[launch != NONE]
    if not len(known):
        return None
    return evidence.line_at(int(evidence.calls.api.start_ns[known[0]]))

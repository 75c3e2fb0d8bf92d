"""How far a trace can be believed, and when nothing can be concluded from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.events.columns import (
    NONE,
    ON_GPU,
    Bools,
    Category,
    Columns,
    distinct,
)
from warpbook_profiler.events.intervals import union_ns
from warpbook_profiler.events.run import Run
from warpbook_profiler.facts.calls import FILL, Calls, named
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.model.cell_profile import Completeness
from warpbook_profiler.verdict.contradictions import Contradiction, contradictions

#: Below these shares nobody would draw another conclusion ...
_TOLERATED_LOST_SHARE = 0.01
_TOLERATED_PROFILER_SHARE = 0.05
#: ... and above these nobody should draw any: of launches, of the GPU's events, and
#: of the window.
_MOST_LOST_SHARE = 0.05
_MOST_CORRUPT_SHARE = 0.05
_MOST_PROFILER_SHARE = 0.8
#: nobody notices a wait that is shorter
_NOTICED_NS = 100_000_000

_COPIES = re.compile(r"(cuda|cu|hip)Memcpy")

_BUFFER = (
    " They are the last ones: the profiler's buffer was probably full. Profile a "
    "shorter run."
)
_HEAD = (
    " They are the first ones: some drivers lose these after the GPU was idle. Profile "
    "again."
)


@dataclass(frozen=True)
class _Lost:
    """Launches of one kind whose work on the GPU was not recorded."""

    launches: int
    lost: int
    #: what is likely, where they are the first or the last ones
    hint: str

    @property
    def share(self) -> float:
        """Give the part of them that is lost."""
        return self.lost / self.launches if self.launches else 0.0

    @property
    def refusal(self) -> str:
        """Say why nothing can be concluded, if too many are lost."""
        if self.share <= _MOST_LOST_SHARE:
            return ""
        return (
            f"The GPU's side of {self.lost:,} of {self.launches:,} launches was not "
            "recorded, so nothing can be concluded."
            f"{self.hint or ' Profile again.'}"
        )


def _lost(calls: Calls, chosen: Bools, unlinked: int) -> _Lost:
    """Count launches without work; work without a launch may be theirs."""
    mine = calls.launches & chosen
    seen = calls.matched[mine]
    lost = max(len(seen) - int(seen.sum()) - unlinked, 0)
    return _Lost(len(seen), lost, _where_lost(seen) if lost else "")


def examine(trace: Trace) -> Completeness:
    """Count what is missing, what is wrong and what the profiler did itself."""
    run, on_gpu, calls = trace.run, trace.on_gpu, trace.calls
    launches = int(calls.launches.sum())
    wrong = tuple(contradictions(trace))
    # one piece may contradict several things
    corrupt = max((one.pieces for one in wrong), default=0) + run.senseless_events
    profiler_ns = union_ns(
        *(np.clip(at, run.start_ns, run.end_ns) for at in trace.profiler_spans)
    )
    window_ns = max(run.end_ns - run.start_ns, 1)
    fills, copies = named(calls.api, FILL), named(calls.api, _COPIES)
    kernels, copied, filled = np.bincount(
        on_gpu.category[calls.launch == NONE], minlength=len(Category)
    )[list(ON_GPU)].tolist()
    work = _lost(calls, ~fills, kernels + copied)
    # a few copies among many kernels hide no loss of kernels
    worst = max(
        work, _lost(calls, ~fills & ~copies, kernels), key=lambda kind: kind.share
    )
    fill = _lost(calls, fills, filled)
    reasons = [
        run.refusal,
        *(_grave(one) for one in wrong if not one.is_gap),
        _corrupt(corrupt, len(on_gpu), run),
        worst.refusal,
        *(_grave(one) for one in wrong if one.is_gap),
    ]
    if profiler_ns > _MOST_PROFILER_SHARE * window_ns:
        reasons.append(
            f"{units.share(profiler_ns / window_ns)} of the window was the profiler's "
            "own work, so nothing can be concluded. Profile again, or a longer run."
        )
    remedy = (
        "Calls and work have no correlation ids in common."
        if len(calls.api)
        else "Also record the host's calls."
    )
    if len(on_gpu) and not calls.matched.any() and _busy_ns(on_gpu) < window_ns / 2:
        reasons.append(
            "The trace has GPU work but no call that launched it, so it does not show "
            f"why the GPU idled. {remedy}"
        )
    return Completeness(
        launches=launches,
        matched=int(calls.matched.sum()),
        lanes_omitted=0,
        warnings=tuple(_missing(work, fill, on_gpu, kernels if launches else 0))
        + tuple(_wrong(trace, wrong, profiler_ns)),
        corrupt=corrupt,
        profiler_ns=profiler_ns,
        refusal=next(filter(None, reasons), ""),
        linked_by=run.linked_by,
    )


def profiler_cost(run: Run, bare_ns: int | None) -> Iterator[str]:
    """Warn where the profiler's own time is larger than the cell's.

    Args:
        run: of the profiled cell.
        bare_ns: the cell without the profiler; None where only its time with the
            profiler on is known, which is no shorter.
    """
    cell_ns = run.end_ns - run.start_ns if bare_ns is None else bare_ns
    if run.profiler_ns >= _NOTICED_NS and run.profiler_ns > cell_ns:
        how = "with the profiler on" if bare_ns is None else "without the profiler"
        yield (
            f"The profiler's own start, stop and reading of events took "
            f"{units.duration_ns(run.profiler_ns)}, the cell {how} "
            f"{units.duration_ns(cell_ns)}."
        )


def saw_nothing(trace: Trace) -> bool:
    """CUDA is set up, and not even the profiler's own calls were recorded."""
    if not trace.run.cuda_used or len(trace.on_gpu):
        return False
    return not trace.events.is_in(Category.API).any()


def _missing(
    work: _Lost, fills: _Lost, on_gpu: Columns, unlinked: int
) -> Iterator[str]:
    if work.launches and not len(on_gpu):
        yield (
            f"The cell made {work.launches:,} launches, but the profiler recorded no "
            "work on the GPU: this trace is incomplete and does not mean that the GPU "
            "was idle. Restart the kernel and profile again."
        )
        return
    if work.share > _TOLERATED_LOST_SHARE:
        yield (
            f"The GPU's side of {work.lost:,} of {work.launches:,} launches is "
            f"missing: times on the GPU are lower bounds.{work.hint}"
        )
    if fills.lost > _TOLERATED_LOST_SHARE * (work.launches + fills.launches):
        yield (
            f"The profiler recorded nothing of {fills.lost:,} of {fills.launches:,} "
            "fills of memory (cudaMemsetAsync), as some versions of CUPTI do. Each "
            "takes some microseconds, which count as idle; no verdict rests on them."
        )
    if unlinked > _TOLERATED_LOST_SHARE * len(on_gpu):
        yield (
            f"{unlinked:,} kernels have no launch in the trace, so it is not known "
            "what the host did for them."
        )


def _wrong(
    trace: Trace, wrong: Sequence[Contradiction], profiler_ns: int
) -> Iterator[str]:
    run = trace.run
    if saw_nothing(trace):
        yield (
            "The profiler recorded no CUDA call at all, not even its own: it can't see "
            "the GPU from this kernel. Another profiler may hold it; restart the "
            "kernel and profile again."
        )
    if run.senseless_events:
        yield (
            "Events of the file with impossible times (not a number, an end before "
            "the start, or far from all others) are left out: "
            f"{run.senseless_events:,}."
        )
    if run.odd_fields:
        yield (
            "Malformed fields of the file (a word instead of a number) are treated as "
            f"not known: {run.odd_fields:,}. The other fields of these events are used."
        )
    gpus = len(distinct(trace.on_gpu.device))
    if gpus > 1:
        yield (
            f"Work of {gpus} GPUs is in this trace: figures of the GPU are of all of "
            "them together, busy while any of them is busy."
        )
    yield from (one.sentence for one in wrong)
    if profiler_ns > _TOLERATED_PROFILER_SHARE * (run.end_ns - run.start_ns):
        yield (
            f"{units.duration_ns(profiler_ns)} of the host's time was the profiler's "
            "own work: the code is faster without it."
        )


def _grave(one: Contradiction) -> str:
    if not one.is_grave:
        return ""
    return f"Nothing can be concluded. {one.sentence} Profile again."


def _corrupt(corrupt: int, pieces: int, run: Run) -> str:
    if corrupt <= _MOST_CORRUPT_SHARE * (pieces + run.senseless_events):
        return ""
    return (
        f"Too many times are wrong (wrong: {corrupt:,}, events on the GPU: "
        f"{pieces:,}), so nothing can be concluded. Profile again."
    )


def _busy_ns(on_gpu: Columns) -> int:
    return union_ns(on_gpu.start_ns, on_gpu.end_ns)


def _where_lost(matched: Bools) -> str:
    """Say what is likely where the lost launches are the last ones, or the first."""
    seen, lost = np.flatnonzero(matched), np.flatnonzero(~matched)
    if not len(seen) or not len(lost):
        return ""
    if lost[0] > seen[-1]:
        return _BUFFER
    return _HEAD if lost[-1] < seen[0] else ""

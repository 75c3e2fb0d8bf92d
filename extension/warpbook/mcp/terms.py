"""Words of reports and figures, with what they mean and the lab that teaches them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import cache

from warpbook.mcp.marked import Own
from warpbook_monitors import metrics
from warpbook_monitors.verdict_kinds import Kind

#: docs/reference/verdicts.md has the rules
VERDICTS: dict[Kind, str] = {
    "launch-bound": "The GPU idled while the host launched one small piece of work "
    "after another. Launch less: fuse, batch, torch.compile, a CUDA graph.",
    "sync-bound": "The GPU ran out of work while the host stood still and waited for "
    "it: .item(), .cpu(), a copy to pageable memory. Wait less often.",
    "host-bound": "The GPU idled while the host did other work: loading data, Python, "
    "operators on the CPU. Live it also stands for launch-bound and sync-bound.",
    "transfer-bound": "Copies between host and GPU took the time, and no kernel ran "
    "beside them. Pin memory, copy earlier, copy less.",
    "memory-bound": "Kernels wait for device memory: their least traffic takes longer "
    "than their arithmetic. Fuse, use a smaller dtype, pass over data less often.",
    "compute-bound": "Kernels wait for arithmetic units. Use tensor cores, a smaller "
    "dtype, or less work.",
    "communication-bound": "GPUs exchanged data while they computed nothing else.",
    "input-bound": "Without GPU work: the thread waited for its DataLoader.",
    "python-bound": "Without GPU work: the interpreter between operators.",
    "overhead-bound": "Without GPU work: many small operator calls.",
    "operator-bound": "Without GPU work: operators that are neither bound by memory "
    "nor by arithmetic.",
    "thread-bound": "Without GPU work: too few threads, or too many, for the cores.",
    "wait-bound": "Without GPU work: the thread slept or waited outside operators.",
    "few-multiprocessors": "Live: a kernel ran nearly always, on few multiprocessors.",
    "idle": "Live: next to nothing ran on the GPU.",
    "mixed": "No cause explains most of the time: both that lead are named.",
    "unknown": "Too little was recorded or read to conclude anything.",
}


def explained(term: str) -> list[object]:
    """Say what a word means: as a verdict, a metric, a change, a reason of stalls."""
    return list(_meanings(term.strip()))


def known_terms(term: str) -> Own:
    """Name the words that are most like one that is not known."""
    words = sorted({*VERDICTS, *metrics.GPU, *metrics.MIG, *_stalls(), *_changes()})
    near = difflib.get_close_matches(term, words, 8, 0.3) or list(VERDICTS)
    return Own(", ".join(near))


def _meanings(term: str) -> Iterator[dict[str, object]]:
    from warpbook_profiler.stalls.reasons import stall_reasons

    for kind, meaning in VERDICTS.items():
        if kind == term:
            yield {"verdict": Own(kind), "means": Own(meaning)}
    metric = metrics.GPU.get(term) or metrics.MIG.get(term)
    if metric is not None:
        yield {
            "metric": Own(metric.name),
            "unit": Own(metric.unit),
            "label": Own(metric.label),
            "means": Own(metric.meaning),
        }
    reason = stall_reasons().get(term)
    if reason is not None:
        yield {
            "stall": Own(term),
            "a_warp": Own(reason.words),
            "advice": Own(reason.advice),
            "lab": None if reason.lab is None else Own(reason.lab),
        }
    change = _changes().get(term)
    if change is not None:
        what, time, lab = change
        yield {
            "change": Own(term),
            "means": Own(what),
            "its_time": Own(time),
            "lab": None if lab is None else Own(lab),
        }


def _stalls() -> list[str]:
    from warpbook_profiler.stalls.reasons import stall_reasons

    return list(stall_reasons())


@cache
def _changes() -> dict[str, tuple[str, str, str | None]]:
    """By name what a change is, its time and its lab."""
    from warpbook_profiler.techniques.registry import OWN

    return {
        name: (kind.what, kind.time, kind.lab)
        for technique in OWN
        for kind in technique.changes
        for name in kind.names
    }

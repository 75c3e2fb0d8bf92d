"""Batches that the host prepares while the GPU waits for them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import duration_ns
from warpbook_profiler.advice.cell_code import CellCode
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.source_edit import SourceEdit
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question, percent
from warpbook_profiler.events.columns import Bools, Columns, rows_by
from warpbook_profiler.techniques.technique import ChangeKind, Technique

_PREFIX = "enumerate(DataLoader)#"
_ALONE = f"{_PREFIX}_SingleProcessDataLoaderIter.__next__"
_OF_WORKERS = f"{_PREFIX}_MultiProcessingDataLoaderIter"
_WITH_WORKERS = f"{_OF_WORKERS}.__next__"
#: of the profiled run, below which loading is no cause
_LEAST_SHARE = 0.05
#: the first batches of workers wait for their start
_FIRST = 1


def loading(evidence: Evidence) -> Iterator[Proposal]:
    """Propose workers, or more of them."""
    yield from _proposal(evidence, _ALONE, has_workers=False)
    yield from _proposal(evidence, _WITH_WORKERS, has_workers=True)


def _proposal(
    evidence: Evidence, name: str, *, has_workers: bool
) -> Iterator[Proposal]:
    spans = _spans(evidence.operators.annotations, name)
    if has_workers:
        spans = spans.where(np.arange(len(spans)) >= _FIRST)
    time_ns = int(spans.duration_ns.sum())
    profiled_ns = max(evidence.bare_run.profiled_ns, 1)
    if len(spans) < 2 or time_ns < _LEAST_SHARE * profiled_ns:
        return
    ways = Ways(evidence)
    for rows in rows_by(spans.track):
        ways.drop_host(
            int(spans.track[rows[0]]), spans.start_ns[rows], spans.end_ns[rows]
        )
    took = f"{duration_ns(time_ns)} of {duration_ns(profiled_ns)} profiled"
    call = next(iter(evidence.code.calls("DataLoader")), None)
    yield Proposal(
        name="more-workers" if has_workers else "workers",
        title=(
            "Give the DataLoader more workers, or a higher prefetch_factor."
            if has_workers
            else "Load in worker processes: DataLoader(..., num_workers=4)."
        ),
        evidence=(
            f"The main process waits for its workers' batches {len(spans):,} times, "
            f"{took}."
            if has_workers
            else f"The main process prepares {len(spans):,} batches itself, {took}, "
            "and launches nothing meanwhile."
        ),
        ways=ways,
        is_bound=True,
        reason=(
            "The main process still waits for workers that load more slowly than the "
            "GPU computes, and starting them takes time once."
        ),
        line=call.line if call else evidence.line_at(int(spans.start_ns[0])),
        code=with_workers(evidence.code, 8 if has_workers else 4),
    )


def with_workers(code: CellCode, workers: int) -> str:
    """Return the cell whose own DataLoader has workers; empty where it has none."""
    calls = code.calls("DataLoader")
    if len(calls) != 1:
        return ""
    edit = SourceEdit(code)
    given = {"num_workers": str(workers), "persistent_workers": "True"}
    edit.arguments(calls[0].node, given)
    return edit.source()


def _spans(annotations: Columns, name: str) -> Columns:
    chosen = np.array([text == name for text in annotations.names] or [False])
    are_spans: Bools = chosen[annotations.name]
    return annotations.where(are_spans)


def _judge(facts: Facts) -> Judgement:
    advised = facts.advised(LOADER_WORKERS)
    if advised is not None:
        return advised
    loading = facts.annotations(_PREFIX)
    if not loading:
        return Judgement("not applicable", "No DataLoader runs in this window.")
    time_ns = sum(row.host_ns for row in loading)
    batches = sum(row.times for row in loading)
    share = time_ns / max(facts.profile.wall_ns, 1)
    evidence = (
        f"The main process spends {duration_ns(time_ns)} on {batches:,} batches, "
        f"{percent(share)} of the window."
    )
    if any(row.name.startswith(_OF_WORKERS) for row in loading):
        return Judgement("yes", f"Worker processes load the batches. {evidence}")
    if share < _LEAST_SHARE:
        return Judgement("not applicable", evidence)
    return facts.without_gain(evidence)


LOADER_WORKERS = Question(
    name="loader-workers",
    text="Do worker processes prepare the batches?",
    judge=_judge,
    no_where="the main process prepares batches, or waits for workers",
    lab="copy-compute-overlap",
    is_of_gpu=False,
)


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("workers", "more-workers", "fewer-workers", "keep-workers"),
            what=(
                "a `DataLoader` in the main process, or one whose workers are too slow "
                "or are restarted; fewer workers, where they and torch have too few "
                "cores"
            ),
            time="a bound",
            answers=LOADER_WORKERS,
        ),
    ),
    rule=loading,
    questions=(LOADER_WORKERS,),
    untried="Worker processes can't be part of a run on copies.",
)

"""Batches that are copied before they are computed, on one stream: one by one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import duration_ns, size
from warpbook_profiler.advice.cell_code import CellCode
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.source_edit import SourceEdit
from warpbook_profiler.advice.value_flow import ValueFlow
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Int64s
from warpbook_profiler.techniques.data.pinned_waits import pinned_copies
from warpbook_profiler.techniques.host.transfers import PINNED_INPUT
from warpbook_profiler.techniques.technique import ChangeKind, Technique

#: fewer turns overlap little
_LEAST_TURNS = 3
#: of the bare run, the copies
_LEAST_SHARE = 0.05
#: while copies and kernels share the memory, each takes a little longer: at best,
#: usually, at worst
_SHARED = (1.0, 1.03, 1.12)
_AHEAD = '''\
def {ahead}(batches):
    """Copy each batch while the GPU computes the one before it."""
    stream, ready = {torch}.cuda.Stream(), None
    for batch in batches:
        with {torch}.cuda.stream(stream):
            copied = {copy}
            event = stream.record_event()
        if ready is not None:
            yield {waited}(*ready)
        ready = batch, copied, event
    if ready is not None:
        yield {waited}(*ready)


def {waited}(batch, copied, event):
    """Make later work on the current stream wait for a copy."""
    {torch}.cuda.current_stream().wait_event(event)
    copied.record_stream({torch}.cuda.current_stream())
    return batch, copied
'''


def prefetch(evidence: Evidence) -> Iterator[Proposal]:
    """Propose a second stream that copies the next batch meanwhile."""
    copies = pinned_copies(evidence)
    gpu = evidence.gpu
    if len(copies) < _LEAST_TURNS or len(np.unique(gpu.track[copies])) > 1:
        return
    time_ns = evidence.time_ns(copies)
    if evidence.share(time_ns) < _LEAST_SHARE:
        return
    calls = evidence.code.calls("to", "cuda", "copy_", in_loop=True)
    # a copy into one place after the other, or one that is waited for, can't be ahead
    outer = evidence.operators.outer[copies]
    if len(evidence.waits_within(np.unique(outer[outer != NONE]))):
        return
    if calls and calls[0].name == "copy_":
        return
    before_ns = _computed_before(evidence, copies)
    if before_ns is None or not before_ns.any():
        return
    took_ns = gpu.duration_ns[copies].astype(np.float64)
    hidden_ns, left_ns = np.zeros(len(copies)), 0.0
    for at in range(len(copies)):
        # of several copies a turn each is hidden by what the others leave
        left_ns = before_ns[at] or left_ns
        hidden_ns[at] = min(took_ns[at], left_ns)
        left_ns -= hidden_ns[at]
    ways = Ways(evidence)
    for edit, share in zip(ways.all, _SHARED, strict=True):
        rest_ns = np.maximum(took_ns - hidden_ns, 0.0) + hidden_ns * (share - 1)
        edit.resize(copies, gpu.duration_ns[copies], rest_ns)
    total = int(gpu.size_bytes[copies].sum())

    yield Proposal(
        name="prefetch",
        title="Copy the next batch on a second stream while the GPU computes this one.",
        evidence=(
            f"{len(copies):,} copies carry {size(total)} from pinned memory on the "
            f"stream that computes, {duration_ns(time_ns)} in which no kernel runs."
        ),
        ways=ways,
        reason="The GPU's memory then holds two batches.",
        operator=None,
        line=calls[0].line
        if calls
        else evidence.line_at(
            int(evidence.calls.api.start_ns[evidence.calls.launch[copies[0]]])
        ),
        code=_edited(evidence.code),
    )


def _computed_before(evidence: Evidence, copies: Int64s) -> np.ndarray | None:
    """Return how long kernels run between the copy before and each copy, in ns.

    Returns:
        None where kernels run beside the copies already.
    """
    gpu = evidence.gpu
    kernels = np.flatnonzero(evidence.is_kernel)
    starts, ends = gpu.start_ns[copies], gpu.end_ns[copies]
    if (np.diff(starts) <= 0).any():
        return None
    kernel_ns = gpu.duration_ns[kernels].astype(np.float64)
    beside = np.searchsorted(starts, gpu.start_ns[kernels], side="right") - 1
    runs_beside = (beside >= 0) & (gpu.start_ns[kernels] < ends[beside])
    if runs_beside.any():
        return None
    # after the copy before it, up to its own begin
    turn = np.searchsorted(starts, gpu.start_ns[kernels])
    before_ns = np.bincount(turn, kernel_ns, minlength=len(copies) + 1)[: len(copies)]
    before_ns[0] = 0.0
    return before_ns


def _edited(code: CellCode) -> str:
    """Write a generator that copies ahead around the loop whose turns begin so."""
    flow = ValueFlow(code)
    for loop in ast.walk(code.tree):
        if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
            continue
        if flow.is_repeated(loop):
            continue
        first, name = loop.body[0], loop.target.id
        match first:
            case ast.Assign(
                targets=[ast.Name(id=target)],
                value=ast.Call(
                    func=ast.Attribute(
                        attr="to" | "cuda" as method, value=ast.Name(id=moved)
                    )
                ) as call,
            ) if moved == name and len(loop.body) > 1:
                pass
            case _:
                continue
        is_told = any(one.arg == "non_blocking" for one in call.keywords)
        # a loop that ends early would lose the batch that is copied already
        leaves = any(isinstance(part, ast.Break) for part in ast.walk(loop))
        if not is_told or not flow.is_set_once(name) or loop.orelse or leaves:
            return ""
        edit = SourceEdit(code)
        moves = ast.Attribute(ast.Name("batch"), method)
        copy = ast.unparse(ast.Call(moves, call.args, call.keywords))
        ahead, waited = edit.free_name("copied_ahead"), edit.free_name("waited_for")
        edit.at_start(
            _AHEAD.format(ahead=ahead, waited=waited, copy=copy, torch=edit.torch)
        )
        edit.replace(loop.target, f"{name}, {target}")
        edit.replace(loop.iter, f"{ahead}({edit.text(loop.iter)})")
        edit.delete(first)
        return edit.source()
    return ""


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("prefetch",),
            what="pinned batches that are copied on the stream that computes",
            time="predicted",
            answers=PINNED_INPUT,
            lab="copy-compute-overlap",
        ),
    ),
    rule=prefetch,
    untried=(
        "The copies go to another stream, which a trial of the cell's body can't "
        "arrange."
    ),
)

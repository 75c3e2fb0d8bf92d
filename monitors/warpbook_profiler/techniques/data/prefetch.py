"""Batches that are copied before they are computed, on one stream: one by one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import duration_ns, size
from warpbook_profiler.advice.code.cell_code import CellCode, names_in
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Int64s, distinct
from warpbook_profiler.techniques.data.pinned_waits import pinned_copies
from warpbook_profiler.techniques.host.transfers import PINNED_INPUT
from warpbook_profiler.techniques.technique import ChangeKind, Technique

#: fewer turns overlap little
_LEAST_TURNS = 3
#: copies from the GPU that the host does not wait for
_INTO_PINNED = re.compile(r"DtoH \(.*Pinned\)")
#: of the bare run, the copies
_LEAST_SHARE = 0.05
#: while copies and kernels share the memory, each takes a little longer: at best,
#: usually, at worst
_SHARED = (1.0, 1.03, 1.12)
_STREAM_NAME = "copying_stream"
#: who runs the cell again has the stream, and its memory, again
_STREAM = """\
if "{stream}" not in globals():
    {stream} = {torch}.cuda.Stream()
# what was launched may write to what is copied
{stream}.wait_stream({torch}.cuda.current_stream())
"""
_AHEAD = '''\
def {ahead}(batches, copy):
    """Copy each batch from pinned memory while the GPU computes the one before it."""
    # what else gives batches may look at what turns do
    is_sure = type(batches) in (list, tuple) and all(
        isinstance(batch, {torch}.Tensor) and batch.is_pinned() for batch in batches
    )
    if not is_sure:
        yield from ((batch, copy(batch)) for batch in batches)
        return
    ready = []
    for batch in batches:
        with {torch}.cuda.stream({stream}):
            ready.append((batch, copy(batch), {stream}.record_event()))
        if len(ready) > 1:
            yield {waited}(*ready.pop(0))
    if ready:
        yield {waited}(*ready.pop())
def {waited}(batch, copied, event):
    """Make later work on the current stream wait for a copy."""
    {torch}.cuda.current_stream().wait_event(event)
    if copied.is_cuda:
        copied.record_stream({torch}.cuda.current_stream())
    return batch, copied
'''
#: of the time between copies, what they wait on the GPU where the host is ahead of it
_AHEAD_SHARE = 0.3
_BESIDE = '''\
def {beside}(copy, *given, events=[], **options):
    """Copy from pinned memory while what was launched before computes."""
    batch, main = getattr(copy, "__self__", None), {torch}.cuda.current_stream()
    if not (isinstance(batch, {torch}.Tensor) and batch.is_pinned()):
        copied = copy(*given, **options)
        # this may write to what is copied later
        {stream}.wait_stream(main)
        return copied
    with {torch}.cuda.stream({stream}):
        copied = copy(*given, **options)
    main.wait_stream({stream})
    if copied.is_cuda:
        copied.record_stream(main)
    # the host is one batch ahead, so that the GPU's memory holds few
    events.append(main.record_event())
    if len(events) > {calls}:
        events.pop(0).synchronize()
    return copied
'''


def prefetch(evidence: Evidence) -> Iterator[Proposal]:
    """Propose a second stream that copies the next batch meanwhile."""
    copies = pinned_copies(evidence)
    gpu = evidence.gpu
    if len(copies) < _LEAST_TURNS or len(distinct(gpu.track[copies])) > 1:
        return
    time_ns = evidence.time_ns(copies)
    if evidence.share(time_ns) < _LEAST_SHARE:
        return
    calls = evidence.code.calls("to", "cuda", "copy_", in_loop=True)
    # a copy into one place after the other, or one that is waited for, can't be ahead
    outer = evidence.operators.outer[copies]
    if len(evidence.waits_within(distinct(outer[outer != NONE]))):
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
        code=_code(evidence, copies),
    )


def _code(evidence: Evidence, copies: Int64s) -> str:
    """Write the cell with a second stream where no copy may need what it computes."""
    gpu, operators = evidence.gpu, evidence.operators
    names = gpu.names
    into_pinned = np.array([bool(_INTO_PINNED.search(one)) for one in names] or [False])
    is_item = np.append(operators.named("aten::_local_scalar_dense"), False)
    if (into_pinned[gpu.name] & ~is_item[operators.direct]).any():
        # what is copied from pinned memory later may be that, which a stream orders
        return ""
    return _edited(evidence.code) or (
        _beside(evidence.code) if _is_ahead(evidence, copies) else ""
    )


def _is_ahead(evidence: Evidence, copies: Int64s) -> bool:
    """Tell whether the host launches the next copies while the GPU computes."""
    gpu, calls = evidence.gpu, evidence.calls
    begun_ns = gpu.start_ns[copies]
    waited_ns = begun_ns - calls.api.end_ns[calls.launch[copies]]
    between_ns = np.median(np.diff(begun_ns))
    return bool(np.median(waited_ns[1:]) > _AHEAD_SHARE * between_ns)


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
        read = {name} | names_in(loop.iter) | names_in(call)
        if any(flow.is_changed_in(one, part) for one in read for part in loop.body):
            # a later batch may be what a turn makes it
            return ""
        edit = SourceEdit(code)
        moves = ast.Attribute(ast.Name("batch"), method)
        copy = ast.unparse(ast.Call(moves, call.args, call.keywords))
        names = {
            "stream": edit.free_name(_STREAM_NAME),
            "ahead": edit.free_name("copied_ahead"),
            "waited": edit.free_name("waited_for"),
        }
        edit.at_start((_STREAM + _AHEAD).format(**names, torch=edit.torch))
        edit.replace(loop.target, f"{name}, {target}")
        over = edit.text(loop.iter)
        edit.replace(loop.iter, f"{names['ahead']}({over}, lambda batch: {copy})")
        edit.delete(first)
        return edit.source()
    return ""


def _beside(code: CellCode) -> str:
    """Write each copy of a turn as one on a stream of its own, wherever it stands."""
    edit, flow = SourceEdit(code), ValueFlow(code)
    stream, beside = map(edit.free_name, (_STREAM_NAME, "copied_beside"))
    calls = [
        call
        for call in code.calls("to", "cuda")
        if any(
            one.arg == "non_blocking" and ast.unparse(one.value) == "True"
            for one in call.node.keywords
        )
        and (call.in_loop or flow.is_repeated(call.node))
    ]
    for call in calls:
        if not isinstance(call.node.func, ast.Attribute):
            return ""
        texts = [*map(edit.text, [call.node.func, *call.node.args])]
        texts += [f"{one.arg}={edit.text(one.value)}" for one in call.node.keywords]
        edit.replace(call.node, f"{beside}({', '.join(texts)})")
    made = (_STREAM + _BESIDE).format(
        stream=stream, beside=beside, calls=len(calls), torch=edit.torch
    )
    edit.at_start(made)
    return edit.source() if calls else ""


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

"""Convolutions whose tensors change their layout before and after each of them.

Convolutions on tensor cores read channels last. Of tensors with channels first cuDNN
makes copies in the other layout, each time.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.cell_code import Call
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import sizes
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Bools, Int64s
from warpbook_profiler.facts.kernels import uses_tensor_cores
from warpbook_profiler.facts.traffic import tensor_sizes

_LAYOUT = re.compile(
    r".*(nchwToNhwc|nhwcToNchw|cudnn::\S*convertTensor|nchw2nhwc|nhwc2nchw"
    r"|batched_transpose_)"
)
#: torch's own copies, which are of the layout where they are within a convolution
_COPY = re.compile(r".*at::native::.*(direct_copy_kernel|transpose)")
_CONVOLUTION = re.compile(r"aten::\w*conv(olution|_?transpose|\d)")
_DEPTHWISE = ("aten::_conv_depthwise2d", "aten::conv_depthwise3d")
_HALVES = (("c10::Half",), ("c10::BFloat16",))
#: of the bare run or of the GPU's time
_LEAST_SHARE = 0.03


def layout(evidence: Evidence) -> Iterator[Proposal]:
    """Propose channels last for model and input."""
    yield from _of_each_channel(evidence)
    operators, gpu = evidence.operators, evidence.gpu
    convolving = _convolving(evidence)
    moving = _named(evidence, _LAYOUT) & (convolving != NONE)
    if not moving.any():
        return
    on_tensor = [bool(uses_tensor_cores(name)) for name in gpu.names]
    fast = np.array(on_tensor or [False])[gpu.name] & (convolving != NONE)
    # a convolution of plain FP32 gains nothing by another layout
    gains = np.isin(convolving, convolving[fast])
    moving = (moving | (_named(evidence, _COPY) & (convolving != NONE))) & gains
    events: Int64s = np.flatnonzero(moving)
    time_ns = evidence.time_ns(events)
    if time_ns < _LEAST_SHARE * max(evidence.busy_ns, 1):
        return
    ways = Ways(evidence)
    old_ns = gpu.duration_ns[events]
    for edit in (ways.best, ways.usual):
        edit.drop(events, old_ns)
    # an operator without channels last in the middle turns the axes back
    ways.worst.resize(events, old_ns, old_ns / 2)
    times = np.bincount(convolving[events], old_ns)
    longest = int(np.argmax(times))
    outer = int(operators.outer_of(np.array([longest]))[0])
    dims = [dim for dim in operators.operands(longest).dims if len(dim) > 2]
    yield Proposal(
        name="channels-last",
        title="Keep model and input in channels_last.",
        evidence=(
            f"{len(events):,} kernels turn the axes of tensors around convolutions"
            f"{f', the longest of {sizes(dims[:2])}' if dims else ''}: "
            f"{units.share(evidence.share(time_ns))} of the bare run."
        ),
        ways=ways,
        reason="All layers in between must keep channels_last.",
        operator=operators.name(outer),
        line=evidence.line_at(int(operators.table.start_ns[outer])),
        sketch=_sketch(evidence.code.model_call()),
        topic="memory-traffic",
    )


def _of_each_channel(evidence: Evidence) -> Iterator[Proposal]:
    """Propose it where torch's own kernel convolves each channel in half precision."""
    operators, chip = evidence.operators, evidence.chip
    positions = [
        int(at)
        for at in np.flatnonzero(operators.named(*_DEPTHWISE))
        if operators.operands(int(at)).dtypes[:1] in _HALVES
    ]
    events = operators.launched_within(np.array(positions, np.int64))
    time_ns = evidence.time_ns(events)
    if not positions or chip is None or evidence.share(time_ns) < _LEAST_SHARE:
        return
    ways = Ways(evidence)
    moved = sum(sum(tensor_sizes(operators.operands(at)) or (0,)) for at in positions)
    # it reads and writes its tensors once at best
    ways.resize(events, chip.pass_over(2.0 * moved).at_most(time_ns))
    first = operators.operands(positions[0])
    outer = int(operators.outer_of(np.array(positions[:1]))[0])
    yield Proposal(
        name="channels-last",
        title="Keep model and input in channels_last.",
        evidence=(
            f"{len(events):,} convolutions of each channel by itself, of "
            f"{sizes(first.dims[:2])}, take {units.share(evidence.share(time_ns))} of "
            "the bare run in torch's general kernel; of channels_last cuDNN has its "
            "own."
        ),
        ways=ways,
        is_bound=True,
        reason="How fast cuDNN's kernel is depends on its shapes.",
        operator=operators.name(outer),
        line=evidence.line_at(int(operators.table.start_ns[outer])),
        sketch=_sketch(evidence.code.model_call()),
        topic="memory-traffic",
    )


def _sketch(call: Call | None) -> str:
    model, images = "model", "x"
    if call is not None:
        model, given = call.name, call.node.args[0]
        images = given.id if isinstance(given, ast.Name) else images
    return "\n".join(
        f"{name} = {name}.to(memory_format=torch.channels_last)"
        for name in (model, images)
    )


def _named(evidence: Evidence, pattern: re.Pattern[str]) -> Bools:
    names = evidence.gpu.names
    fits = np.array([bool(pattern.match(name)) for name in names] or [False])
    chosen: Bools = fits[evidence.gpu.name] & evidence.is_kernel
    return chosen


def _convolving(evidence: Evidence) -> Int64s:
    """Give for each event on the GPU the innermost convolution around its launch."""
    operators = evidence.operators
    names = operators.table.names
    fits = np.array([bool(_CONVOLUTION.match(name)) for name in names] or [False])
    is_convolution = np.append(fits[operators.table.name], True)
    parent = np.append(operators.parent, NONE)
    position: Int64s = operators.direct.copy()
    while not is_convolution[position].all():
        position = np.where(is_convolution[position], position, parent[position])
    return position

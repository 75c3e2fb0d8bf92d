"""Convolutions whose tensors change their layout before and after each of them.

Convolutions on tensor cores read channels last. Of tensors with channels first cuDNN
makes copies in the other layout, each time.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import sizes
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question, at_line, percent
from warpbook_profiler.events.columns import NONE, Bools, Int64s
from warpbook_profiler.facts.kernels import copies_layout, uses_tensor_cores
from warpbook_profiler.facts.traffic import tensor_sizes
from warpbook_profiler.techniques.technique import (
    Applied,
    ChangeKind,
    Technique,
    TriedCell,
)

if TYPE_CHECKING:
    import torch

#: torch's own copies, which are of the layout where they are within a convolution
_COPY = re.compile(r".*at::native::.*(direct_copy_kernel|transpose)")
_CONVOLUTION = re.compile(r"aten::\w*conv(olution|_?transpose|\d)")
_DEPTHWISE = ("aten::_conv_depthwise2d", "aten::conv_depthwise3d")
_HALVES = (("c10::Half",), ("c10::BFloat16",))
#: of the bare run or of the GPU's time
_LEAST_SHARE = 0.03
_LAST = re.compile(r"nhwc", re.I)
_CONVOLVES = re.compile(r"conv|fprop|dgrad|wgrad", re.I)


def layout(evidence: Evidence) -> Iterator[Proposal]:
    """Propose channels last for model and input."""
    yield from _of_each_channel(evidence)
    operators, gpu = evidence.operators, evidence.gpu
    convolving = _convolving(evidence)
    moving = _named(evidence, copies_layout) & (convolving != NONE)
    if not moving.any():
        return
    on_tensor = [bool(uses_tensor_cores(name)) for name in gpu.names]
    fast = np.array(on_tensor or [False])[gpu.name] & (convolving != NONE)
    # a convolution of plain FP32 gains nothing by another layout
    gains = np.isin(convolving, convolving[fast])
    moving = (moving | (_named(evidence, _COPY.match) & (convolving != NONE))) & gains
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
            f"{len(events):,} kernels permute the axes of tensors around "
            f"convolutions{f', the longest of {sizes(dims[:2])}' if dims else ''}: "
            f"{units.share(evidence.share(time_ns))} of the bare run."
        ),
        ways=ways,
        reason="All layers in between must preserve channels_last.",
        operator=operators.name(outer),
        line=evidence.line_at(int(operators.table.start_ns[outer])),
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
    # it reads and writes its tensors once at best, and has no use for tensor cores
    flops = sum(one.flops for one in evidence.products if one.by.name in _DEPTHWISE)
    least = chip.multiply(flops, "float", 2.0 * moved) or chip.pass_over(2.0 * moved)
    ways.resize(events, least.at_most(time_ns))
    first = operators.operands(positions[0])
    outer = int(operators.outer_of(np.array(positions[:1]))[0])
    yield Proposal(
        name="channels-last",
        title="Keep model and input in channels_last.",
        evidence=(
            f"{len(events):,} depthwise convolutions of {sizes(first.dims[:2])} take "
            f"{units.share(evidence.share(time_ns))} of the bare run in torch's "
            "generic kernel; for channels_last, cuDNN has a dedicated one."
        ),
        ways=ways,
        is_bound=True,
        reason="The speed of cuDNN's kernel depends on the shapes.",
        operator=operators.name(outer),
        line=evidence.line_at(int(operators.table.start_ns[outer])),
    )


def _named(evidence: Evidence, fits_name: Callable[[str], object]) -> Bools:
    names = evidence.gpu.names
    fits = np.array([bool(fits_name(name)) for name in names] or [False])
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


def _judge(facts: Facts) -> Judgement:
    if not facts.has_convolutions:
        return Judgement("not applicable", "No convolution runs in this window.")
    advised = facts.advised(CHANNELS_LAST)
    if advised is not None:
        return advised
    rows = facts.profile.kernels
    converting = sum(row.share_ratio for row in rows if copies_layout(row.name))
    on_tensor_cores = [
        row
        for row in rows
        if _CONVOLVES.search(row.name) and uses_tensor_cores(row.name)
    ]
    if not on_tensor_cores:
        return Judgement(
            "not applicable",
            (
                "No convolution runs on tensor cores, and only those benefit from "
                "channels_last."
            ),
        )
    if converting:
        return facts.without_gain(
            f"Copies between the layouts take {percent(converting)} of the kernels' "
            "time."
        )
    if any(_LAST.search(row.name) for row in on_tensor_cores):
        line = facts.code.mention("channels_last")
        by = f" channels_last is in the code{at_line(line)}." if line else ""
        return Judgement(
            "yes",
            "Convolutions read channels_last tensors, and nothing is copied to "
            f"another layout.{by}",
        )
    return facts.without_gain("No kernel copies between the layouts.")


CHANNELS_LAST = Question(
    name="channels-last",
    text="Are convolutions in channels_last?",
    judge=_judge,
    no_where="tensors are copied to another layout around convolutions",
    lab="convolution-settings",
)


class ChannelsLast:
    """Convolutions' filters, what optimizers keep of them, and the images."""

    name: ClassVar[str] = "channels-last"
    advice: ClassVar[str] = (
        "Write model.to(memory_format=torch.channels_last), and the same for images."
    )
    warm_ups: ClassVar[int] = 3
    cost: ClassVar[int] = 1
    what: ClassVar[str] = (
        "`torch.channels_last` for the filters of each `nn.Conv2d`, their gradients, "
        "their optimizer state, and images"
    )
    not_where: ClassVar[str] = "no `nn.Conv2d` ran, or the cell itself creates it"

    def why_not(self, cell: TriedCell) -> str | None:
        convolutions = cell.facts.convolutions
        if not convolutions:
            return "no torch.nn.Conv2d ran."
        if not any(map(cell.is_kept, convolutions)):
            return "the cell itself creates its modules: move that to an earlier cell."
        if all(_is_channels_last(convolution.weight) for convolution in convolutions):
            return "the filters are already in channels_last."
        return None

    @contextlib.contextmanager
    def applied(self, cell: TriedCell) -> Iterator[Applied]:
        """Lay everything out anew, in memory of its own; the old memory stays as is."""
        import torch

        moved = [
            (tensor, tensor.data)
            for tensor in _wanted(cell)
            if not _is_channels_last(tensor)
        ]
        hooks = [
            module.register_forward_pre_hook(_with_channels_last)
            for module in cell.facts.modules
        ]
        try:
            for tensor, _ in moved:
                tensor.data = tensor.data.contiguous(memory_format=torch.channels_last)
            yield Applied(cell.run)
        finally:
            for hook in hooks:
                hook.remove()
            for tensor, then in moved:
                tensor.data = then


def _wanted(cell: TriedCell) -> Iterator[torch.Tensor]:
    import torch

    filters = []
    for module in cell.modules:
        if isinstance(module, torch.nn.Conv2d):
            filters.append(module.weight)
    yield from filters
    for weight in filters:
        if weight.grad is not None:
            yield weight.grad
        for optimizer in cell.optimizers:
            for kept in optimizer.state.get(weight, {}).values():
                if isinstance(kept, torch.Tensor) and kept.shape == weight.shape:
                    yield kept
    for _, tensor in cell.tensors:
        is_image = tensor.untyped_storage().data_ptr() in cell.facts.images
        # a part of something larger can't be laid out by itself
        is_whole = tensor.numel() * tensor.element_size() == (
            tensor.untyped_storage().nbytes()
        )
        if is_image and is_whole and tensor.dim() == 4 and tensor.is_leaf:
            yield tensor


def _is_channels_last(tensor: torch.Tensor) -> bool:
    import torch

    return bool(tensor.is_contiguous(memory_format=torch.channels_last))


def _with_channels_last(
    module: torch.nn.Module, arguments: tuple[Any, ...]
) -> tuple[Any, ...]:
    import torch

    return tuple(
        argument.contiguous(memory_format=torch.channels_last)
        if isinstance(argument, torch.Tensor) and argument.dim() == 4
        else argument
        for argument in arguments
    )


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("channels-last",),
            what=(
                "kernels that permute axes around convolutions on tensor cores; "
                "depthwise convolutions in half precision by torch's generic kernel"
            ),
            time="predicted; for the second a bound",
            answers=CHANNELS_LAST,
            lab="convolution-settings",
        ),
    ),
    rule=layout,
    questions=(CHANNELS_LAST,),
    experiments=(ChannelsLast,),
    lays_out=True,
)

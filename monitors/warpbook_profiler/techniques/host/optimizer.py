"""An optimizer that updates its tensors one by one."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from warpbook_monitors.units import counted
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.code.cell_code import CellCode, bound_names
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.own_steps import own_steps
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question, at_line
from warpbook_profiler.events.columns import NONE, Columns, Int64s, distinct
from warpbook_profiler.facts.traffic import tensor_sizes
from warpbook_profiler.techniques.technique import (
    Applied,
    ChangeKind,
    Technique,
    TriedCell,
)

if TYPE_CHECKING:
    import torch

    #: a count of steps, and the one on the parameter's device that stands for it
    _Moved = tuple[torch.Tensor, torch.Tensor]

_Way = Literal["fused", "foreach"]
_STEP = re.compile(r"Optimizer\.step#(\w+)\.step")
#: kernels of a step that takes many tensors at once
_AT_ONCE = ("multi_tensor_apply", "FusedAdam", "FusedSgd", "fused_adam", "fused_sgd")
#: a step with fewer kernels has few tensors
_LEAST_KERNELS = 30
_LEAST_SHARE = 0.05
#: what updates a parameter in the end, once a step
_LAST = ("aten::addcdiv_", "aten::addcdiv")
#: tensors of a parameter's size that a step reads and writes; at least itself, its
#: gradient, and itself anew
_TENSORS, _LEAST_TENSORS = {"Adam": 7, "AdamW": 7, "NAdam": 7, "RAdam": 7}, 3
#: optimizers of torch that have `fused=True`
_FUSED = ("Adam", "AdamW", "SGD", "Adagrad")
_STEPS = "Optimizer.step#"
_ZERO_GRAD = "Optimizer.zero_grad#"
_MANY_AT_ONCE = re.compile(r"multi_tensor_apply|fused_?(adam|sgd)|FusedAdam", re.I)
#: norms and factors of clipping and of gradient scaling, which update no parameter
_CLIPS = re.compile(r"LpNormFunctor|BinaryOpScalarTensorFunctor|non_finite_check")
FUSED_OPTIMIZER = "fused-optimizer"


def optimizer(evidence: Evidence) -> Iterator[Proposal]:
    """Propose one kernel for all tensors of a step."""
    steps, name = _steps(evidence)
    if not len(steps):
        yield from own_steps(evidence, FUSED_OPTIMIZER)
        return
    events = _launched(evidence, steps)
    kernels = events[evidence.is_kernel[events]]
    one_by_one = kernels[~_at_once(evidence.gpu)[kernels]]
    if len(one_by_one) < _LEAST_KERNELS * len(steps):
        return
    host_ns = int(steps.duration_ns.sum())
    if evidence.share(host_ns) < _LEAST_SHARE:
        return
    ways = Ways(evidence)
    for thread in distinct(steps.track).tolist():
        mine = steps.where(steps.track == thread)
        ways.drop_host(int(thread), mine.start_ns, mine.end_ns, in_worst=True)
    # the update reads and writes its tensors in any case: one kernel of each step is
    # left, and takes the time of what is moved
    first = _first_of_steps(evidence, one_by_one, steps)
    ways.drop(np.setdiff1d(events, first))
    ways.resize(first, _update(evidence, events, name, len(first)))
    has_fused = name in _FUSED
    option = "fused=True" if has_fused else "foreach=True"
    yield Proposal(
        name=FUSED_OPTIMIZER,
        title=f"Update all tensors at once: {name}(..., {option}).",
        evidence=(
            f"{len(steps):,} step{'s' if len(steps) != 1 else ''} of {name} launch "
            f"{len(one_by_one):,} kernels, several for each tensor."
        ),
        ways=ways,
        is_bound=True,
        reason=(
            "What remains is the host's part of the fused step, which the trace does "
            "not show."
        ),
        operator=f"{name}.step",
        line=evidence.code.first_line("step"),
        code=_at_once_in(evidence.code, name, option),
    )


def _at_once_in(code: CellCode, name: str, option: str) -> str:
    """Write an optimizer that the cell makes, or has, with the option."""
    edit, made = SourceEdit(code), code.calls(name)
    if made:
        key, value = option.split("=")
        other = {"fused": "foreach", "foreach": "fused"}[key]
        for call in made:
            given = {key: value}
            if any(one.arg == other for one in call.node.keywords):
                given[other] = "None"
            edit.arguments(call.node, given)
        return edit.source()
    # `scaler.step(optimizer)` has another receiver, and an argument
    steps = code.calls("step")
    stepped = {call.receiver for call in steps}
    takes = any(call.node.args or call.node.keywords for call in steps)
    if takes or len(stepped) != 1 or not stepped.isdisjoint(bound_names(code.tree)):
        return ""
    # a step that counts on the host knows this way, too
    group, optimizer = edit.free_name("group"), stepped.pop()
    edit.at_start(
        f"for {group} in {optimizer}.param_groups:\n"
        f"    {group}.update(foreach=True, fused=False)"
    )
    return edit.source()


def _steps(evidence: Evidence) -> tuple[Columns, str]:
    """Give the steps of the optimizer that takes longest, and its name."""
    marks = evidence.operators.annotations
    names = [
        match.group(1) if (match := _STEP.match(text)) else "" for text in marks.names
    ]
    totals: dict[str, int] = {}
    for at, name in enumerate(names):
        if name:
            chosen = marks.name == at
            totals[name] = totals.get(name, 0) + int(marks.duration_ns[chosen].sum())
    if not totals:
        return marks.rows(np.zeros(0, np.int64)), ""
    longest = max(totals, key=lambda name: totals[name])
    is_it = np.array([name == longest for name in names])
    return marks.where(is_it[marks.name]), longest


def _update(evidence: Evidence, events: Int64s, name: str, steps: int) -> Span:
    """Give what the steps take that move each tensor once, by its last operator."""
    operators = evidence.operators
    calls = distinct(operators.direct[events])
    last = calls[operators.named(*_LAST)[calls]]
    moved = sum(
        max(tensor_sizes(operators.operands(call)) or [0]) for call in last.tolist()
    )
    least = evidence.takes("kernel", steps)
    if evidence.chip is None or not moved:
        return least
    moved *= _TENSORS.get(name, _LEAST_TENSORS)
    return evidence.chip.pass_over(moved / steps).times(steps)


def _launched(evidence: Evidence, steps: Columns) -> Int64s:
    """Give the events on the GPU that were launched within the steps."""
    return np.flatnonzero(_step_of(evidence, steps) != NONE)


def _step_of(evidence: Evidence, steps: Columns) -> Int64s:
    api, launch = evidence.calls.api, evidence.calls.launch
    at_ns = np.append(api.start_ns, 0)[launch]
    thread = np.append(api.track, 0)[launch]
    place = np.searchsorted(steps.start_ns, at_ns, side="right") - 1
    inside = (launch != NONE) & (place >= 0)
    inside &= at_ns < np.append(steps.end_ns, 0)[place]
    inside &= thread == np.append(steps.track, 0)[place]
    return np.where(inside, place, NONE)


def _first_of_steps(evidence: Evidence, kernels: Int64s, steps: Columns) -> Int64s:
    step = _step_of(evidence, steps)[kernels]
    return kernels[np.unique(step, return_index=True)[1]]


def _at_once(gpu: Columns) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    named = [any(part in name for part in _AT_ONCE) for name in gpu.names]
    return np.array(named or [False])[gpu.name]


def _judge(facts: Facts) -> Judgement:
    advised = facts.advised(AT_ONCE)
    if advised is not None:
        return advised
    steps = facts.annotations(_STEPS)
    if not steps:
        return Judgement("not applicable", "No optimizer step is in this window.")
    count = sum(row.times for row in steps)
    kernels = sum(row.work or 0 for row in steps)
    evidence = f"{counted(count, 'step')} launch {counted(kernels, 'kernel')}."
    names = [row.name for row in facts.profile.kernels]
    if any(_MANY_AT_ONCE.search(name) and not _CLIPS.search(name) for name in names):
        return Judgement("yes", f"{evidence} Each kernel updates many tensors.")
    return facts.without_gain(evidence)


def _judge_zeroing(facts: Facts) -> Judgement:
    passed = facts.code.keyword("set_to_none", "zero_grad")
    if passed is not None and passed[0] is False:
        return Judgement(
            "no",
            f"The code passes set_to_none=False{at_line(passed[1])}.",
            "Remove it: gradients are then dropped, and nothing is filled with zeros. "
            "Its gain is known only after a trial.",
        )
    rows = facts.annotations(_ZERO_GRAD)
    if not rows:
        return Judgement("not applicable", "No zero_grad is in this window.")
    if any(row.work is None for row in rows):
        return Judgement(
            "unknown",
            "The GPU's work for zero_grad was not recorded.",
            "Also record with ProfilerActivity.CUDA.",
        )
    work = sum(row.work or 0 for row in rows)
    if not work:
        return Judgement("yes", "zero_grad launches no work on the GPU.")
    return Judgement(
        "no",
        f"zero_grad launches {work:,} kernels and memsets.",
        "Call zero_grad(set_to_none=True), the default since PyTorch 2.0. Its gain is "
        "known only after a trial.",
    )


AT_ONCE = Question(
    name="fused-optimizer",
    text="Does the optimizer update all tensors at once?",
    judge=_judge,
    no_where="in training, an optimizer updates its tensors one by one",
    part="training",
)


ZEROING = Question(
    name="gradients-to-none",
    text="Are gradients dropped (zero_grad(set_to_none=True))?",
    judge=_judge_zeroing,
    no_where="in training, `zero_grad` fills gradients with zeros",
    part="training",
)


class FusedOptimizer:
    """`fused=True`, or `foreach=True` for those that know no other."""

    name: ClassVar[str] = FUSED_OPTIMIZER
    advice: ClassVar[str] = (
        "Create the optimizer with fused=True (foreach=True where it has no fused "
        "version)."
    )
    warm_ups: ClassVar[int] = 2
    cost: ClassVar[int] = 0
    what: ClassVar[str] = (
        "`fused=True`, or `foreach=True` where there is no fused version, of "
        "optimizers that made a step"
    )
    not_where: ClassVar[str] = "they do so already"

    def why_not(self, cell: TriedCell) -> str | None:
        optimizers = cell.facts.optimizers
        if not optimizers:
            return "no optimizer of torch made a step."
        if all(_better_way(optimizer) is None for optimizer in optimizers):
            return (
                "its optimizers already update all tensors at once, or have no such "
                "version."
            )
        return None

    @contextlib.contextmanager
    def applied(self, cell: TriedCell) -> Iterator[Applied]:
        """Turn it on; what an optimizer holds is put back after each run."""
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        counts: list[_Moved] = []
        for optimizer in cell.facts.optimizers:
            if cell.is_kept(optimizer):
                counts += _turn_on(optimizer)

        def publish() -> None:
            for before, moved in counts:
                before.copy_(moved)

        if all(map(cell.is_kept, cell.facts.optimizers)):
            yield Applied(cell.run, publish)
            return

        # those that the cell makes are turned on at their first step
        def before_step(optimizer: torch.optim.Optimizer, *_: Any) -> None:
            _turn_on(optimizer)

        hook = register_optimizer_step_pre_hook(before_step)
        try:
            yield Applied(cell.run, publish)
        finally:
            hook.remove()


def _better_way(optimizer: torch.optim.Optimizer) -> _Way | None:
    """Give what it could do instead of what it does."""
    known = inspect.signature(type(optimizer)).parameters
    groups = optimizer.param_groups
    parameters = [parameter for group in groups for parameter in group["params"]]
    is_plain = all(
        parameter.is_floating_point()
        and not parameter.is_complex()
        and not parameter.is_sparse
        for parameter in parameters
    )
    if any(group.get("differentiable") for group in groups) or not is_plain:
        return None
    if "fused" in known:
        is_on = all(group.get("fused") for group in groups)
        devices = {parameter.device.type for parameter in parameters}
        # what is not listed by every version of torch is not tried
        return None if is_on or not devices <= {"cuda", "cpu"} else "fused"
    if "foreach" in known:
        is_on = all(_is_foreach(group) for group in groups)
        return None if is_on else "foreach"
    return None


def _is_foreach(group: dict[str, Any]) -> bool:
    foreach = group.get("foreach")
    # unless told otherwise, torch does so on a GPU only
    on_gpu = all(parameter.is_cuda for parameter in group["params"])
    return on_gpu if foreach is None else bool(foreach)


def _turn_on(optimizer: torch.optim.Optimizer) -> list[_Moved]:
    """Have it update all at once; give the counts of steps that had to move."""
    import torch

    way = _better_way(optimizer)
    if way is None:
        return []
    for group in optimizer.param_groups:
        group["fused"] = way == "fused"
        group["foreach"] = way == "foreach"
    if way != "fused":
        return []
    # as its constructor does
    optimizer.__dict__["_step_supports_amp_scaling"] = True
    if hasattr(optimizer, "_need_device_dtype_check_for_fused"):
        optimizer.__dict__["_need_device_dtype_check_for_fused"] = True
    moved = []
    for parameter, kept in optimizer.state.items():
        step = kept.get("step")
        # a fused step counts on the device
        if isinstance(step, torch.Tensor) and step.device != parameter.device:
            kept["step"] = step.to(parameter.device)
            moved.append((step, kept["step"]))
    return moved


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=(FUSED_OPTIMIZER,),
            what=(
                "optimizers, of torch or the cell's own, that update tensors one by one"
            ),
            time="a bound",
            answers=AT_ONCE,
            lab="cuda-graphs",
        ),
    ),
    rule=optimizer,
    questions=(AT_ONCE, ZEROING),
    experiments=(FusedOptimizer,),
)

"""An optimizer that updates its tensors one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Columns, Int64s

_STEP = re.compile(r"Optimizer\.step#(\w+)\.step")
#: kernels of a step that takes many tensors at once
_AT_ONCE = ("multi_tensor_apply", "FusedAdam", "FusedSgd", "fused_adam", "fused_sgd")
#: a step with fewer kernels has few tensors
_LEAST_KERNELS = 30
_LEAST_SHARE = 0.05
#: optimizers of torch that have `fused=True`
_FUSED = ("Adam", "AdamW", "SGD", "Adagrad")


def optimizer(evidence: Evidence) -> Iterator[Proposal]:
    """Propose one kernel for all tensors of a step."""
    steps, name = _steps(evidence)
    if not len(steps):
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
    for thread in np.unique(steps.track).tolist():
        mine = steps.where(steps.track == thread)
        ways.drop_host(int(thread), mine.start_ns, mine.end_ns, in_worst=True)
    # the update reads and writes its tensors in any case: one kernel of each step is
    # left, and takes the time of what is moved
    first = _first_of_steps(evidence, one_by_one, steps)
    ways.drop(np.setdiff1d(events, first))
    ways.resize(first, Span(*(2_000.0 * len(first),) * 3))
    has_fused = name in _FUSED
    option = "fused=True" if has_fused else "foreach=True"
    made = evidence.code.calls(name)
    shown = made[0].text if made else f"torch.optim.{name}(parameters, ...)"
    # `scaler.step(optimizer)` has another receiver, and an argument
    stepped = [call for call in evidence.code.calls("step") if not call.node.args]
    own = next((c.receiver for c in stepped if c.receiver.isidentifier()), "optimizer")
    yield Proposal(
        name="fused-optimizer",
        title=f"Update all tensors at once: {name}(..., {option}).",
        evidence=(
            f"{len(steps):,} step{'s' if len(steps) != 1 else ''} of {name} launch "
            f"{len(one_by_one):,} kernels, some for each tensor."
        ),
        ways=ways,
        is_bound=True,
        reason=(
            "What is left is the host's part of the fused step, which the trace has "
            "not."
        ),
        operator=f"{name}.step",
        line=evidence.code.first_line("step"),
        sketch=f"# instead of {shown}\n{own} = torch.optim.{name}(..., {option})",
        topic="graphs",
    )


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

"""Many short kernels that the host launches one by one, more slowly than they run.

A CUDA graph launches them all with one call, and the GPU takes one right after the
other. What a graph can't hold stays where it is: waits for the GPU, and long pauses in
which the host does other work than launching.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import ClassVar

import numpy as np

from warpbook_monitors import units
from warpbook_monitors.units import counted
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.repeats import period_of
from warpbook_profiler.advice.translation.compiled_models import (
    compiled_as_graph,
    fused_loop,
)
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question, percent
from warpbook_profiler.events.columns import NONE, Bools, Int64s, distinct
from warpbook_profiler.facts.calls import GRAPH_LAUNCH, named
from warpbook_profiler.facts.kernels import communicates
from warpbook_profiler.techniques.gpu.library_chains import JAX_JIT
from warpbook_profiler.techniques.host.optimizer import FUSED_OPTIMIZER
from warpbook_profiler.techniques.technique import (
    Applied,
    ChangeKind,
    Technique,
    TriedCell,
)

#: fewer launches gain nothing to speak of
_LEAST_LAUNCHES = 50
#: nobody records more in one graph that no loop launches
_MOST_UNREPEATED = 5_000
#: a graph of one turn has more launches, one of all turns hardly more
_LEAST_TURN, _MOST_AT_ONCE = 8, 1_000
#: between two waits; a graph of fewer is no faster than they are
_LEAST_HELD = 3
#: of all launches, those without a wait in between, where waits are around a loop
_MOST_HELD = 0.95
#: of the bare run, the GPU is busy for less
_MOST_BUSY = 0.9
#: launched from operators of torch, else its compiler and graphs are no help
_LEAST_OF_TORCH = 0.5
#: of all launches, those that an optimizer's step makes have a change of their own
_MOST_OF_STEPS = 0.5
#: a longer pause between two calls is other work than launching, and a longer call
#: sets something up
_LEAST_PAUSE_NS, _MOST_PAUSE_NS, _PAUSE_RATIO = 300_000, 1_000_000, 20
#: what they give has sizes that only the GPU knows
DYNAMIC = (
    "aten::nonzero",
    "aten::masked_select",
    "aten::_unique2",
    "aten::unique_consecutive",
    "aten::unique_dim",
    "aten::repeat_interleave",
)
_LOOPS = (ast.For, ast.While, ast.ListComp)
_CAPTURE = re.compile(r"(cuda|cu|hip)StreamBeginCapture")
READS = ("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal")
#: so many kernels come from one launch in a graph alone
_PER_LAUNCH = 2
#: of the time, below which launching is no cause
_LEAST_LAUNCHING = 0.05


def launches(evidence: Evidence) -> Iterator[Proposal]:
    """Propose a CUDA graph for what is launched one by one."""
    program, operators = evidence.bare.program, evidence.operators
    pieces = program.pieces
    launched = np.flatnonzero(pieces.launch >= 0)
    if len(launched) < _LEAST_LAUNCHES or program.launching_lanes > 1:
        return
    if evidence.busy_ns > _MOST_BUSY * evidence.bare_run.time_ns:
        return
    # another maker's graphs are others
    if evidence.run.other_device:
        return
    # who records graphs has them already
    if named(evidence.calls.api, _CAPTURE).any():
        return
    # what GPUs say to one another has a time of its own
    if communicates(evidence.events, evidence.gpu).any():
        return
    of_torch = operators.direct != NONE
    if of_torch.mean() < _LEAST_OF_TORCH or operators.named(*DYNAMIC).any():
        return
    if _of_steps(evidence) > _MOST_OF_STEPS:
        return
    period = period_of(evidence)
    has_loop = any(isinstance(one, _LOOPS) for one in ast.walk(evidence.code.tree))
    if period is None and not has_loop and len(launched) > _MOST_UNREPEATED:
        return
    calls = distinct(pieces.launch[launched])
    first, last = int(calls[0]), int(calls[-1])
    waiting = _waiting(evidence, first, last)
    trains = any("Backward" in name for name in operators.table.names)
    reason = (
        "The host reads results in between, which a graph can't contain."
        if (waits := _are_between(calls, waiting)) and operators.named(*READS).any()
        else "The host waits for the GPU in between, which a graph can't contain."
        if waits
        else "The optimizer's step stays outside, or needs capturable=True."
        if trains
        else ""
    )
    # each turn of a loop is a graph, or all of it: at best, and what is short
    turns = len(launched) // period if period else 1
    if not reason:
        is_long = len(launched) > _MOST_AT_ONCE
        turns = min(turns, len(launched) // _LEAST_TURN) if is_long else 1
    begins = _replays(calls, turns, np.flatnonzero(waiting))
    at_best = begins if reason else begins[:1]
    if len(launched) < _LEAST_HELD * len(begins):
        return
    of_kernels = np.zeros(len(pieces), np.bool_)
    of_kernels[pieces.piece[evidence.is_kernel]] = True
    # what sets or copies memory is another engine's, which a graph has wait, too
    close = launched[(of_kernels & np.append(False, of_kernels[:-1]))[launched]]
    close = close[~np.isin(pieces.launch[close], begins)]
    ways = Ways(evidence)
    _drop_launching(evidence, ways, first, last, waiting)
    replay = evidence.takes("graph_launch")
    for edit, step_ns, first_ns in zip(
        ways.all, evidence.takes("graph_step"), replay, strict=True
    ):
        edit.close_up(launched if edit is ways.best else close, step_ns)
        edit.add_host(int(begins[0]), first_ns)
        # the same again is no surprise to the host
        again = at_best if edit is ways.best else begins
        edit.add_host(again[1:], min(first_ns, replay.usual_ns))
    idle = max(1 - evidence.share(evidence.busy_ns), 0.0)
    repeated = f", the same {period:,} repeatedly" if period else ""
    yield Proposal(
        name="cuda-graph",
        title="Launch the kernels as a CUDA graph.",
        evidence=(
            f"The host launches {len(launched):,} kernels, copies and memsets one by "
            f"one{repeated}; the GPU idles for {units.share(idle)} of the bare run."
        ),
        ways=ways,
        is_bound=bool(reason),
        reason=reason
        or "The shapes must stay the same, and inputs must stay at the same addresses.",
        line=evidence.line_at(int(operators.table.start_ns[0])),
        code=compiled_as_graph(evidence) or fused_loop(evidence.code, "torch.compile"),
    )


def _of_steps(evidence: Evidence) -> float:
    """Give the share of the GPU's events that optimizers' steps launch."""
    marks = evidence.operators.annotations
    is_step = [name.startswith("Optimizer.step#") for name in marks.names]
    marks = marks.where(np.array(is_step or [False])[marks.name])
    api, launch = evidence.calls.api, evidence.calls.launch
    if not len(marks) or not len(launch):
        return 0.0
    at_ns = np.append(api.start_ns, 0)[launch]
    place = np.searchsorted(marks.start_ns, at_ns, side="right") - 1
    inside = (place >= 0) & (at_ns < marks.end_ns[place]) & (launch != NONE)
    return float(inside.mean())


def _waiting(evidence: Evidence, first: int, last: int) -> Bools:
    """Choose the calls between two others that wait for the GPU."""
    program = evidence.bare.program
    is_wait: Bools = (program.waits.kind != 0) | evidence.calls.waits[program.host.row]
    is_wait[: first + 1] = False
    is_wait[last + 1 :] = False
    return is_wait


def _are_between(calls: Int64s, waiting: Bools) -> bool:
    """Tell whether waits part what is launched, and not what is around a loop."""
    place = np.searchsorted(calls, np.flatnonzero(waiting))
    longest = np.diff(place, prepend=0, append=len(calls)).max()
    return bool(longest < _MOST_HELD * len(calls))


def _drop_launching(
    evidence: Evidence, ways: Ways, first: int, last: int, waiting: Bools
) -> None:
    """Take away what the host does from the first launch to the last but for waits."""
    host, origin_ns = evidence.bare.program.host, evidence.run.start_ns
    gap_ns = host.gap_ns[first + 1 : last + 1]
    most_ns = np.clip(
        _PAUSE_RATIO * float(np.median(gap_ns)), _LEAST_PAUSE_NS, _MOST_PAUSE_NS
    )
    kept = waiting.copy()
    kept[1:] |= waiting[:-1]
    place = np.arange(len(host))
    inside = (place >= first) & (place <= last) & ~kept & (host.lane == 0)
    inside &= (host.gap_ns <= most_ns) | (place == first)
    inside &= host.duration_ns <= most_ns
    gone = np.flatnonzero(inside)
    begins = host.start_ns[gone] - np.where(gone == first, 0.0, host.gap_ns[gone])
    start_ns = begins.astype(np.int64) + origin_ns
    end_ns = host.end_ns[gone].astype(np.int64) + origin_ns
    # a call that takes no time is gone, too
    end_ns = np.maximum(end_ns, host.start_ns[gone].astype(np.int64) + origin_ns + 1)
    end_ns[:-1] = np.minimum(end_ns[:-1], np.maximum(start_ns[1:], start_ns[:-1]))
    ways.drop_host(host.threads[0][0], start_ns, end_ns, in_worst=True)
    positions = gone[~evidence.calls.waits[host.row[gone]]]
    for edit in (ways.best, ways.usual, ways.worst):
        edit.drop_calls(positions)


def _replays(calls: Int64s, turns: int, waiting: Int64s) -> Int64s:
    """Give the launches at which a graph would be launched."""
    place = np.linspace(0, len(calls), turns, endpoint=False).astype(np.int64)
    # what follows a wait is another launch
    after = np.searchsorted(calls, waiting, side="right")
    every = distinct(np.concatenate([place, after[after < len(calls)]]))
    begins: Int64s = calls[every]
    return begins


def _judge(facts: Facts) -> Judgement:
    launches = facts.metrics.launches
    kernels = facts.metrics.kernels
    named = any(GRAPH_LAUNCH.match(name) for name in facts.profile.names)
    # the lanes of a long window leave short calls out
    if named or kernels > _PER_LAUNCH * launches:
        return Judgement(
            "yes",
            f"CUDA graphs are launched: {counted(kernels, 'kernel')} from "
            f"{counted(launches, 'call')}.",
        )
    advised = facts.advised(CUDA_GRAPHS)
    if advised is not None:
        return advised
    idle = f"The GPU is busy for {percent(facts.bare_busy_share)} of the time"
    if facts.bare_busy_share >= _MOST_BUSY:
        return Judgement("not applicable", f"{idle}: it is not limited by launches.")
    if launches < _LEAST_LAUNCHES:
        few = counted(launches, "launch", "launches")
        return Judgement("not applicable", f"{idle}, with no more than {few}.")
    if facts.changes(FUSED_OPTIMIZER, JAX_JIT):
        return Judgement(
            "not applicable",
            f"{idle}, and another change in this list removes most launches.",
        )
    launching = facts.cause_share("launch-bound")
    if launching < _LEAST_LAUNCHING:
        return Judgement(
            "not applicable",
            f"{idle}, but launching explains only {percent(launching)} of it.",
        )
    dynamic = [name for name in DYNAMIC if name in facts.host_names]
    if dynamic:
        return Judgement(
            "not applicable",
            f"{idle}, but a graph can't contain {dynamic[0]}: only the GPU knows how "
            "large its result is.",
        )
    if facts.metrics.communication_ns:
        return Judgement(
            "unknown",
            f"{idle}. A graph around communication between GPUs is not predicted.",
            'Try torch.compile(mode="reduce-overhead") on the code in between.',
        )
    return facts.without_gain(f"{idle}, with {launches:,} launches.")


CUDA_GRAPHS = Question(
    name="cuda-graphs",
    text="Are short kernels launched together, as a CUDA graph?",
    judge=_judge,
    no_where="short kernels are launched one by one while the GPU idles",
    lab="cuda-graphs",
)


class CudaGraph:
    """Captured once, then replayed: the host launches one thing."""

    name: ClassVar[str] = "cuda-graph"
    advice: ClassVar[str] = (
        "Capture the body with torch.cuda.graph(), or use "
        "torch.compile(mode='reduce-overhead'); a replay runs no Python, so inputs "
        "must be copied into the captured tensors."
    )
    warm_ups: ClassVar[int] = 2
    cost: ClassVar[int] = 2
    what: ClassVar[str] = "the whole body, captured once and replayed"
    not_where: ClassVar[str] = (
        "the cell waits for the GPU, copies, or computes on the host"
    )

    def why_not(self, cell: TriedCell) -> str | None:
        facts = cell.facts
        if facts.why_no_gpu is not None:
            return facts.why_no_gpu
        if facts.waits:
            names = ", ".join(sorted(facts.waits))
            return f"the cell waits for the GPU ({names}), which a graph can't contain."
        if facts.copies:
            return (
                "the cell copies between host and GPU, which a captured graph leaves "
                "out."
            )
        if facts.on_host:
            names = ", ".join(sorted(facts.on_host)[:3])
            return f"the cell computes on the host ({names}), which a graph leaves out."
        return None

    def applied(self, cell: TriedCell) -> AbstractContextManager[Applied]:
        """Replay it; the first time it is captured."""
        return cell.as_graph()


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("cuda-graph",),
            what=(
                "50 or more launches by torch, one by one, while the GPU is busy for "
                "less than 90 % of the bare run; not where sizes depend on data, GPUs "
                "communicate or the run captures graphs"
            ),
            time=(
                "predicted; a bound where the host waits for the GPU in between, or in "
                "training"
            ),
            answers=CUDA_GRAPHS,
            lab="cuda-graphs",
        ),
    ),
    rule=launches,
    questions=(CUDA_GRAPHS,),
    experiments=(CudaGraph,),
)

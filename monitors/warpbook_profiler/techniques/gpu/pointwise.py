"""Chains of operators that pass over the same tensor, each through memory again."""

from __future__ import annotations

import contextlib
import importlib
import math
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.chip import Chip, Span
from warpbook_profiler.advice.code.fused_code import fused_code
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.flows import Flows, Moved
from warpbook_profiler.advice.kernel_runs import launched, runs
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question, percent
from warpbook_profiler.events.columns import Bools, Int64s
from warpbook_profiler.facts.traffic import only_passes
from warpbook_profiler.techniques.technique import (
    Applied,
    ChangeKind,
    Technique,
    TriedCell,
)

if TYPE_CHECKING:
    import torch

#: shorter kernels are launched more slowly than they run: that is another change
_LEAST_MEAN_NS = 8_000
#: what one fused kernel would hold; a longer chain becomes several
_MOST_MEMBERS = 32
#: of a chain, operators that give a new tensor
_LEAST_NEW = 2
#: of the reads that may be of the same tensor, those that go to memory
_READ_TWICE = 0.25
#: of what is read again, in part from a cache
_READ_AGAIN = 0.3
#: each begins a chain: two that follow one another are mostly of different tensors
_WHOLE = frozenset(
    "native_layer_norm native_group_norm native_batch_norm cudnn_batch_norm "
    "_fused_rms_norm _softmax _log_softmax".split()
)
#: how fast a compiled kernel draws its random numbers is not known
_RANDOM = frozenset("native_dropout normal uniform bernoulli exponential".split())
#: of the sizes around it, below which an operator on numbers of each row is small
_ROW_RATIO = 64
#: turns of a loop; and the same call over and over, which is on other tensors
_LEAST_TURNS, _LEAST_ALIKE = 3, 4
#: a window with more launches has its chains without them
_MOST_FILLED = 50_000
#: they begin a tensor, so nothing before them is read
_NEW = frozenset("zero fill normal uniform".split())
#: sizes of a hostile file are cut here
_MOST_ELEMENTS = 2.0**60
_OPTIMIZER = "Optimizer.step#"

_FUSED = re.compile(
    r"triton_|flash_?(attn_)?_?(fwd|bwd|fprop|bprop)|fmha|sdpa",
    re.I,
)
_POINTWISE = re.compile(r"elementwise_kernel|triton_(poi|red|per)_")
#: of the kernels' time, below which there is nothing to fuse
_LEAST_TO_FUSE = 0.05
#: of the run's time, from which launching one by one is what holds it back
_LEAST_LAUNCHING = 0.25


@dataclass(frozen=True)
class _Chain:
    """Kernels that follow one another over tensors of one size."""

    #: among the events on the GPU, and the operator of each
    events: list[int]
    operators: list[int]
    moved: Moved
    time_ns: int


def pointwise(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to fuse the chains into one kernel each."""
    chip, operators = evidence.chip, evidence.operators
    chains = _chains(evidence)
    if not chains:
        return
    ways = Ways(evidence)
    # beside the call of the first operator, which stays
    own_ns = evidence.takes("operator").usual_ns
    call = Span(*(max(ns - own_ns, 0.0) for ns in evidence.takes("compiled_call")))
    ways.join_operators([sorted({*chain.operators}) for chain in chains])
    first = np.array([chain.events[0] for chain in chains])
    # of a graph's kernels several may begin a chain
    launches, counts = np.unique(evidence.calls.launch[first], return_counts=True)
    for count in np.unique(counts).tolist():
        ways.add_host(launches[counts == count], call.times(count))
    if chip is not None:
        spans = {moved: _span(chip, moved) for moved in {one.moved for one in chains}}
        fused = [spans[chain.moved].at_most(chain.time_ns) for chain in chains]
        ways.resize_each(first, fused)
    time_ns = sum(chain.time_ns for chain in chains)
    kernels = sum(len(chain.events) for chain in chains)
    longest = max(chains, key=lambda chain: chain.time_ns)
    names = [operators.name(at).removeprefix("aten::") for at in longest.operators]
    members = {at for chain in chains for at in chain.operators}
    draws = any(
        _base(operators.table.names[name]) in _RANDOM
        for name in np.unique(operators.table.name[[*members]]).tolist()
    )
    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    line = evidence.line_at(int(operators.table.start_ns[longest.operators[0]]))
    source = fused_code(evidence.code, names, line, "torch.compile")
    yield Proposal(
        name="fuse",
        title="Fuse the chain into one kernel with torch.compile.",
        evidence=(
            f"{kernels:,} kernels pass over the same tensors one after the other "
            f"({shown}), which takes {units.share(evidence.share(time_ns))} of the "
            "bare run."
        ),
        ways=ways,
        is_bound=chip is None or draws,
        reason=(
            "This GPU's ceilings are not known."
            if chip is None
            else (
                "The gain depends on how fast the compiled kernel draws its random "
                "numbers."
            )
            if draws
            else ""
        ),
        operator=operators.name(longest.operators[0]),
        line=line if source is None else source.line,
        # compiled random numbers are others
        code="" if source is None or draws else source.code,
    )


def _span(chip: Chip, moved: Moved) -> Span:
    """Give how long one kernel takes in the place of a chain."""
    low, high = map(chip.pass_over, (moved.least_bytes, moved.most_bytes))
    # most of what is read twice is the result of another, or still in a cache
    usual_ns = low.usual_ns + _READ_TWICE * (high.usual_ns - low.usual_ns)
    usual_ns += chip.least_ns(_READ_AGAIN * moved.again_bytes)
    return Span(low.low_ns, usual_ns, high.high_ns)


def _chains(evidence: Evidence) -> list[_Chain]:
    operators, gpu = evidence.operators, evidence.gpu
    if not len(operators.table):
        return []
    passing, elements = _passing(evidence)
    direct = operators.direct
    # the last is that of kernels that no operator called for
    passes = np.append(passing & ~_in_optimizer(evidence), False)[direct]
    gives_new = np.append(_gives_new(evidence), 0)[direct]
    order = launched(evidence)
    size = np.append(elements, 0)[direct]
    size[order] = _of_rows_too(size[order].tolist())
    table, flows, chains = operators.table, Flows(operators), []
    is_whole = [_base(name) in _WHOLE for name in table.names] or [False]
    whole = np.array(is_whole)[table.name]
    cuts: dict[tuple[int, ...], list[slice]] = {}
    for run in runs(evidence, order, passes, 2, size):
        called = direct[run]
        kinds = tuple(flows.kind[called].tolist())
        if kinds not in cuts:
            cuts[kinds] = list(_cut(kinds, whole[called].tolist()))
        if not cuts[kinds]:
            continue
        events, by, adds = run.tolist(), called.tolist(), gives_new[run].tolist()
        took_ns = gpu.duration_ns[run].tolist()
        for part in cuts[kinds]:
            for places, moved in flows.chains(by[part], kinds[part]):
                at = [part.start + place for place in places]
                time_ns = sum(took_ns[one] for one in at)
                is_long = time_ns / len(at) >= _LEAST_MEAN_NS
                # what works in place may be on another tensor each time
                if is_long and sum(adds[one] for one in at) >= _LEAST_NEW:
                    chains.append(
                        _Chain(
                            [events[one] for one in at],
                            [by[one] for one in at],
                            moved,
                            time_ns,
                        )
                    )
    return chains


def _of_rows_too(size: list[int]) -> list[int]:
    """Give operators on a number of each row the size of those around them."""
    least = min((elements for elements in size if elements > 0), default=0)
    if len(size) > _MOST_FILLED or least > max(size, default=0) // _ROW_RATIO:
        return size
    filled, is_small = size.copy(), [False] * len(size)
    for at in range(1, len(size)):
        is_small[at] = 0 < size[at] <= filled[at - 1] // _ROW_RATIO
        if is_small[at]:
            filled[at] = filled[at - 1]
    # what nothing of that size follows is at the end of a chain, and no part of it
    after = [*size[1:], 0]
    for at in range(len(size) - 1, 0, -1):
        if is_small[at] and after[at] != filled[at]:
            filled[at] = size[at]
        after[at - 1] = filled[at]
    return filled


def _cut(kinds: Sequence[int], wholes: list[bool]) -> Iterator[slice]:
    """Cut a run where it is too long for one kernel, or begins with a new tensor.

    A turn of a loop does, as far as is known. What is cut to one kernel is no chain.
    """
    begins, seen, turns = [0], 0, _turns(kinds)
    for at, is_whole in enumerate(wholes):
        seen += is_whole
        if at in turns or at - begins[-1] >= _MOST_MEMBERS or seen > 1:
            begins.append(at)
            seen = 0 if seen <= 1 else 1
    for first, until in pairwise([*begins, len(kinds)]):
        if until - first > 1:
            yield slice(first, until)


def _turns(kinds: Sequence[int]) -> set[int]:
    """Find where the same operators with the same operands begin once more."""
    begins, at = set[int](), 0
    while at < len(kinds):
        longest = min(_MOST_MEMBERS // 2, (len(kinds) - at) // _LEAST_TURNS)
        for length in range(1, longest + 1):
            until = at + length
            while until < len(kinds) and kinds[until] == kinds[until - length]:
                until += 1
            if until - at >= max(_LEAST_TURNS * length, _LEAST_ALIKE):
                begins |= {*range(at, until, length)}
                at = until - 1
                break
        at += 1
    return begins


def _base(name: str) -> str:
    return name.removeprefix("aten::").rstrip("_")


def _passing(evidence: Evidence) -> tuple[Bools, Int64s]:
    """Choose the operators that pass over tensors; give the elements of the largest."""
    table = evidence.operators.table
    of_name = np.array([only_passes(name) for name in table.names] or [False])
    sizes = [
        max((math.prod(dims) for dims in operands.dims if dims), default=0)
        for operands in table.operands
    ]
    # the last is that of operators whose operands were not recorded
    known = np.minimum(np.array([*sizes, 0], np.float64), _MOST_ELEMENTS)
    elements = known[table.operand].astype(np.int64)
    return of_name[table.name] & (elements > 1), elements


def _gives_new(evidence: Evidence) -> Int64s:
    """Count 1 for each operator that gives a new tensor of what it reads."""
    table = evidence.operators.table
    names = [name.removeprefix("aten::") for name in table.names]
    fits = [not (name.endswith("_") or name.rstrip("_") in _NEW) for name in names]
    return np.array(fits or [False], np.int64)[table.name]


def _in_optimizer(evidence: Evidence) -> Bools:
    """Choose the operators of an optimizer's step, which has a change of its own."""
    marks = evidence.operators.annotations
    steps = np.array([name.startswith(_OPTIMIZER) for name in marks.names] or [False])
    marks = marks.where(steps[marks.name])
    begun_ns = evidence.operators.table.start_ns
    place = np.searchsorted(marks.start_ns, begun_ns, side="right") - 1
    ends_ns = np.append(marks.end_ns, np.iinfo(np.int64).min)
    inside: Bools = begun_ns < ends_ns[place]
    return inside & (place >= 0)


def _judge(facts: Facts) -> Judgement:
    advised = facts.advised(FUSION)
    if advised is not None:
        return advised
    rows = facts.profile.kernels
    fused = sum(row.share_ratio for row in rows if _FUSED.search(row.name))
    pointwise = sum(row.share_ratio for row in rows if _POINTWISE.search(row.name))
    if fused and pointwise < _LEAST_TO_FUSE:
        return Judgement(
            "yes",
            f"{percent(fused)} of the kernels' time is in fused kernels, and "
            f"{percent(pointwise)} in pointwise kernels that are not fused.",
        )
    evidence = f"Pointwise kernels take {percent(pointwise)} of the kernels' time."
    if pointwise < _LEAST_TO_FUSE:
        return Judgement("not applicable", evidence)
    if not facts.host_names:
        return Judgement(
            "unknown",
            f"{evidence} It is not known which operators launch them.",
            "Also record with ProfilerActivity.CPU.",
        )
    if facts.cause_share("launch-bound") >= _LEAST_LAUNCHING:
        return Judgement(
            "not applicable",
            f"{evidence} They are limited by being launched one by one.",
        )
    return facts.without_gain(evidence)


FUSION = Question(
    name="fusion",
    text="Are chains of operations fused?",
    judge=_judge,
    no_where=(
        "chains of pointwise kernels, attention written by hand, CuPy or JAX "
        "operations one by one"
    ),
    lab="fused-norm",
)


class Compile:
    """Each module that no other module called is replaced by its compiled form."""

    name: ClassVar[str] = "compile"
    advice: ClassVar[str] = "Write model = torch.compile(model) once, before the loop."
    warm_ups: ClassVar[int] = 3
    cost: ClassVar[int] = 3
    what: ClassVar[str] = "`torch.compile` of each module that no other module called"
    not_where: ClassVar[str] = (
        "there is no compiler, no module ran, or the cell itself creates it"
    )

    def __init__(self) -> None:
        """Compile nothing yet."""
        self._compiled: list[tuple[torch.nn.Module, Callable[..., Any]]] = []

    def why_not(self, cell: TriedCell) -> str | None:
        modules = cell.facts.modules
        if not modules:
            return (
                "no torch.nn.Module was called; a function is compiled by hand, as "
                "torch.compile(f)."
            )
        if not any(map(cell.is_kept, modules)):
            return "the cell itself creates its modules: move that to an earlier cell."
        if all(map(_is_compiled, modules)):
            return "its modules are already compiled."
        return _no_compiler(cell.facts.device)

    @contextlib.contextmanager
    def applied(self, cell: TriedCell) -> Iterator[Applied]:
        """Have calls of the modules go to what was compiled."""
        import torch

        if not self._compiled:
            # compiling `_call_impl`, as Module.compile() does, skips nn.Sequential
            self._compiled = [
                (module, torch.compile(module.forward))
                for module in cell.facts.modules
                if cell.is_kept(module) and not _is_compiled(module)
            ]
        before = [vars(module).get("forward") for module, _ in self._compiled]
        try:
            for module, compiled in self._compiled:
                vars(module)["forward"] = compiled
            yield Applied(cell.run)
        finally:
            for (module, _), then in zip(self._compiled, before, strict=True):
                if then is None:
                    # the class has it
                    vars(module).pop("forward", None)
                else:
                    vars(module)["forward"] = then


def _is_compiled(module: torch.nn.Module) -> bool:
    is_wrapper = type(module).__name__ == "OptimizedModule"
    return is_wrapper or getattr(module, "_compiled_call_impl", None) is not None


def _no_compiler(device: str) -> str | None:
    """Say which compiler is missing; None if there is one."""
    if device == "cuda":
        try:
            importlib.import_module("triton")
        except ImportError as problem:
            return f"torch.compile needs Triton, which can't be imported ({problem})."
    # Triton compiles its launcher, too
    if not any(map(shutil.which, ("c++", "g++", "clang++", "cc", "gcc", "clang"))):
        return "torch.compile needs a C++ compiler, and none is on PATH."
    return None


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("fuse",),
            what=(
                "chains of operators over one tensor, also with statistics of each row "
                "between them: `torch.compile`"
            ),
            time="predicted; a bound where random numbers are drawn",
            answers=FUSION,
            lab="roofline",
        ),
    ),
    rule=pointwise,
    questions=(FUSION,),
    experiments=(Compile,),
)

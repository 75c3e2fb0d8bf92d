"""Chains of operators that pass over the same tensor, each through memory again."""

from __future__ import annotations

import contextlib
import importlib
import re
import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.arithmetic import instructions
from warpbook_profiler.advice.chains import Chain, base_name, pass_chains
from warpbook_profiler.advice.chip import Chip, Span, longer
from warpbook_profiler.advice.code.fused_code import fused_code, values_read
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.flows import Moved
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.checklist.answers import Judgement
from warpbook_profiler.checklist.facts import Facts, Question, percent
from warpbook_profiler.events.columns import distinct
from warpbook_profiler.replay.host import Floats
from warpbook_profiler.techniques.technique import (
    Applied,
    ChangeKind,
    Technique,
    TriedCell,
)

if TYPE_CHECKING:
    import torch

#: of the reads that may be of the same tensor, those that go to memory
_READ_TWICE = 0.25
#: as many times what is moved at least, from which that decides
_UNSURE = 1.25
_TENSORS = "which of its operands are one tensor"
#: of what is read again, in part from a cache
_READ_AGAIN = 0.3
#: as many times what instructions take at their highest rate
_OF_ARITHMETIC = (0.5, 1.0, 2.0)
#: how fast a compiled kernel draws its random numbers is not known
_RANDOM = frozenset("native_dropout normal uniform bernoulli exponential".split())
_FUSED = re.compile(
    r"triton_|flash_?(attn_)?_?(fwd|bwd|fprop|bprop)|fmha|sdpa",
    re.I,
)
_POINTWISE = re.compile(r"elementwise_kernel|triton_(poi|red|per)_")
#: of the kernels' time, below which there is nothing to fuse
_LEAST_TO_FUSE = 0.05
#: of the run's time, from which launching one by one is what holds it back
_LEAST_LAUNCHING = 0.25


def pointwise(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to fuse the chains into one kernel each."""
    chip, operators = evidence.chip, evidence.operators
    chains = evidence.once(pass_chains)
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
    for count in distinct(counts).tolist():
        ways.add_host(launches[counts == count], call.times(count))
    moved = list(_known(evidence, chains))
    least, most = (sum(ends) for ends in zip(*(one[:2] for one in moved), strict=True))
    if chip is not None:
        spans = {one: _span(chip, one) for one in {*moved}}
        asked = instructions(operators)
        fused = [
            longer(spans[one], _computed(chip, asked, chain)).at_most(chain.time_ns)
            for one, chain in zip(moved, chains, strict=True)
        ]
        ways.resize_each(first, fused)
    time_ns = sum(chain.time_ns for chain in chains)
    kernels = sum(len(chain.events) for chain in chains)
    longest = max(chains, key=lambda chain: chain.time_ns)
    names = [operators.name(at).removeprefix("aten::") for at in longest.operators]
    members = {at for chain in chains for at in chain.operators}
    draws = any(
        base_name(operators.table.names[name]) in _RANDOM
        for name in distinct(operators.table.name[[*members]]).tolist()
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
        depends_on=_TENSORS if most > _UNSURE * least else "",
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


def _known(evidence: Evidence, chains: list[Chain]) -> Iterator[Moved]:
    """Give what each chain moves, as exactly as the source tells."""
    operators = evidence.operators
    known: dict[tuple[int | None, tuple[str, ...]], int | None] = {}
    for chain in chains:
        line = evidence.line_at(int(operators.table.start_ns[chain.operators[0]]))
        names = tuple(operators.name(at) for at in chain.operators)
        if (line, names) not in known:
            known[line, names] = values_read(evidence.code, names, line)
        values = known[line, names]
        yield chain.moved if values is None else chain.moved.of_values(values)


def _span(chip: Chip, moved: Moved) -> Span:
    """Give how long one kernel takes in the place of a chain."""
    low, high = map(chip.pass_over, (moved.least_bytes, moved.most_bytes))
    # most of what is read twice is the result of another, or still in a cache
    usual_ns = low.usual_ns + _READ_TWICE * (high.usual_ns - low.usual_ns)
    usual_ns += chip.least_ns(_READ_AGAIN * moved.again_bytes)
    return Span(low.low_ns, usual_ns, high.high_ns)


def _computed(chip: Chip, counts: Floats, chain: Chain) -> Span:
    """Give how long the arithmetic of a chain takes, which passes hide one by one."""
    peak = chip.peak_flops("float")
    count = float(counts[[*{*chain.operators}]].sum())
    # a multiplication and an addition are one instruction
    time_ns = 0.0 if peak is None else count / (peak / 2) * 1e9
    return Span(time_ns, time_ns, time_ns).each(*_OF_ARITHMETIC)


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
            time=(
                "predicted; a range where tensors of one size can't be told apart; a "
                "bound where random numbers are drawn"
            ),
            answers=FUSION,
            lab="roofline",
        ),
    ),
    rule=pointwise,
    questions=(FUSION,),
    experiments=(Compile,),
)

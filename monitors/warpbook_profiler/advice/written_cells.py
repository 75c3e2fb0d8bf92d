"""Recurrent cells whose gates the cell computes itself, step by step.

What tells them from other loops is how often a turn calls sigmoid and tanh, and that it
calls nothing else but products, sums and copies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Int64s

_SIGMOID, _TANH = "sigmoid", "tanh"
#: by a step's calls of sigmoid and of tanh; one may be of several gates
_KINDS = {(3, 2): "LSTM", (1, 2): "LSTM", (2, 1): "GRU"}
_PRODUCTS = frozenset("mm addmm mv addmv".split())
#: of a step, with inputs and state apart or joined, of all gates or of each
_COUNTS = frozenset((1, 2, 4, 6, 8))
_OTHERS = frozenset("add sub rsub mul addcmul lerp cat stack copy".split())
_LEAST_STEPS = 8
#: a window with more is judged by these
_MOST_CALLS = 200_000


class _Steps(NamedTuple):
    """A loop of steps."""

    kind: str
    turns: int
    #: operators that launch work, from the first gate of the first step
    first: Int64s
    rest: Int64s


def written_cells(evidence: Evidence) -> Iterator[Proposal]:
    """Propose cuDNN's network over the whole sequence."""
    operators = evidence.operators
    if operators.are_trained:
        return
    for steps in _loops(operators):
        ways = Ways(evidence)
        kept = operators.launched_within(steps.first)
        gone = operators.launched_within(steps.rest)
        ways.drop(gone)
        least_ns = evidence.takes("kernel", steps.turns).low_ns
        span = Span(least_ns, least_ns, least_ns)
        time_ns = evidence.time_ns(np.append(kept, gone))
        ways.resize(kept, span.at_most(time_ns))
        table, begun = operators.table, int(steps.first[0])
        since, until = table.end_ns[steps.first[-1:]], table.end_ns[steps.rest[-1:]]
        ways.drop_host(int(table.track[begun]), since, until)
        yield Proposal(
            name=f"whole-{steps.kind.lower()}",
            title=f"Use torch.nn.{steps.kind} over the whole sequence.",
            evidence=(
                f"A loop computes the gates of {steps.turns:,} steps, each with "
                f"{len(steps.first):,} kernels: {units.share(evidence.share(time_ns))} "
                "of the bare run on the GPU, and a launch for each kernel on the host."
            ),
            ways=ways,
            is_bound=True,
            reason=(
                "cuDNN's time depends on sizes and layers. It needs the inputs of all "
                "steps before the first step, and its own order of the gates' weights."
            ),
            operator=operators.name(begun),
            line=evidence.line_at(int(table.start_ns[begun])),
        )


def _loops(operators: Operators) -> Iterator[_Steps]:
    """Find loops between which something else is computed."""
    calls, table = operators.launching[:_MOST_CALLS], operators.table
    short = [name.removeprefix("aten::").rstrip("_") for name in table.names]
    names = [short[at] for at in table.name[calls].tolist()]
    if names.count(_TANH) < _LEAST_STEPS or names.count(_SIGMOID) < _LEAST_STEPS:
        return
    known = _PRODUCTS | _OTHERS | {_SIGMOID, _TANH}
    others = [at for at, name in enumerate(names) if name not in known]
    for before, after in zip([-1, *others], [*others, len(names)], strict=True):
        found = _steps(names[before + 1 : after], calls[before + 1 : after])
        if found is not None:
            yield found


def _steps(names: list[str], calls: Int64s) -> _Steps | None:
    """Read operators as steps that are all alike; None for any others."""
    gates = [at for at, name in enumerate(names) if name in (_SIGMOID, _TANH)]
    for (sigmoids, tanhs), kind in _KINDS.items():
        count, more = divmod(len(gates), sigmoids + tanhs)
        if count < _LEAST_STEPS or more:
            continue
        length = gates[sigmoids + tanhs] - gates[0]
        inside = names[gates[0] : gates[-1] + 1]
        one = Counter(inside[:length])
        is_it = (one[_SIGMOID], one[_TANH]) == (sigmoids, tanhs)
        if not is_it or inside[length:] != inside[:-length]:
            continue
        if sum(one[name] for name in _PRODUCTS) in _COUNTS:
            mine = calls[gates[0] : gates[-1] + 1]
            return _Steps(kind, count, mine[:length], mine[length:])
    return None

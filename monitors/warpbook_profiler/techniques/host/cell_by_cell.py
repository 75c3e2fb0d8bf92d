"""Cells of a recurrent network that a loop of Python calls step by step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.cell_code import CellCode
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.source_edit import SourceEdit
from warpbook_profiler.advice.value_flow import ValueFlow
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Int64s
from warpbook_profiler.facts.traffic import only_passes
from warpbook_profiler.techniques.gpu.pointwise import FUSION
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

#: by operator: the class of one step, and that of the whole sequence
_CELLS = {
    "aten::lstm_cell": ("LSTMCell", "LSTM"),
    "aten::gru_cell": ("GRUCell", "GRU"),
    "aten::rnn_tanh_cell": ("RNNCell", "RNN"),
    "aten::rnn_relu_cell": ("RNNCell", "RNN"),
}
_LEAST_STEPS = 8
_BACKWARD = "autograd::engine::evaluate_function: ThnnFused"


def cell_by_cell(evidence: Evidence) -> Iterator[Proposal]:
    """Propose cuDNN's network over the whole sequence."""
    for name, (cell, whole) in _CELLS.items():
        sequences = _sequences(evidence, name)
        if sequences:
            yield _proposal(evidence, sequences, cell, whole)


def _proposal(
    evidence: Evidence, sequences: list[Int64s], cell: str, whole: str
) -> Proposal:
    operators = evidence.operators
    table, ways = operators.table, Ways(evidence)
    calls = np.concatenate(sequences)
    first = np.array([steps[0] for steps in sequences])
    last = np.array([steps[-1] for steps in sequences])
    launched = operators.launched_within(calls)
    of_first = operators.launched_within(first)
    ways.drop(np.setdiff1d(launched, of_first))
    # one step of cuDNN's, where all weights stay on the chip
    least_ns = evidence.takes("kernel", len(calls)).low_ns
    span = Span(least_ns, least_ns, least_ns).at_most(evidence.time_ns(launched))
    ways.resize(of_first, span)
    for thread in np.unique(table.track[first]).tolist():
        # with what Python does between the steps
        mine = table.track[first] == thread
        ways.drop_host(int(thread), table.end_ns[first[mine]], table.end_ns[last[mine]])
    _drop_backward(evidence, ways)
    per_step = len(launched) / len(calls)
    line = _line(evidence.code, cell)
    return Proposal(
        name=f"whole-{whole.lower()}",
        title=f"Use torch.nn.{whole} over the whole sequence.",
        evidence=(
            f"{operators.name(int(calls[0]))} is called {len(calls):,} times, each "
            f"with {per_step:.0f} kernels of its own: "
            f"{units.share(evidence.share(evidence.time_ns(launched)))} of the bare "
            "run on the GPU, and a launch for each on the host."
        ),
        ways=ways,
        is_bound=True,
        reason=(
            "cuDNN's time depends on sizes and layers. It needs the inputs of all "
            "steps before the first one."
        ),
        operator=operators.name(int(calls[0])),
        line=line or evidence.line_at(int(operators.table.start_ns[calls[0]])),
        code=_whole(evidence.code, operators.name(int(calls[0])))
        if operators.takes_rows
        else "",
    )


def _sequences(evidence: Evidence, name: str) -> list[Int64s]:
    """Give the steps between which nothing but passes lies.

    A decoder makes the next input from the last output, by products and lookups.
    """
    operators = evidence.operators
    steps = np.flatnonzero(operators.named(name))
    if len(steps) < _LEAST_STEPS:
        return []
    table = operators.table
    launching = np.unique(operators.direct[operators.direct != NONE])
    makes = np.array([not _is_pass(name) for name in table.names])[table.name]
    makes &= ~operators.within(np.flatnonzero(operators.named(*_CELLS)))
    others = launching[makes[launching]]
    # a step is apart from the one before it where other work was launched in between
    before = np.searchsorted(table.start_ns[others], table.start_ns[steps])
    edges = np.flatnonzero(np.diff(before)) + 1
    return [some for some in np.split(steps, edges) if len(some) >= _LEAST_STEPS]


def _is_pass(name: str) -> bool:
    is_choice = name in ("aten::argmax", "aten::argmin")
    return name == "aten::cat" or (only_passes(name) and not is_choice)


def _drop_backward(evidence: Evidence, ways: Ways) -> None:
    """Take the steps' way back away, too: cuDNN has one for the whole sequence."""
    operators = evidence.operators
    table = operators.table
    names = [name for name in table.names if name.startswith(_BACKWARD)]
    steps = np.flatnonzero(operators.named(*names))
    if not len(steps):
        return
    inside = operators.outermost & (table.track == table.track[steps[0]])
    inside &= table.start_ns >= table.start_ns[steps[0]]
    inside &= table.start_ns <= table.start_ns[steps[-1]]
    ways.drop_operators(np.flatnonzero(inside))


def _line(code: CellCode, cell: str) -> int | None:
    """Give the line that calls the cell in a loop."""
    names = {
        part.id
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Assign)
        and any(
            isinstance(part, ast.Attribute | ast.Name)
            and getattr(part, "attr", getattr(part, "id", "")) == cell
            for part in ast.walk(node.value)
        )
        for part in node.targets
        if isinstance(part, ast.Name)
    }
    return code.first_line(*names, in_loop=True)


def _whole(code: CellCode, operator: str) -> str:
    """Write a loop that does nothing but its steps as one call over the sequence."""
    function = operator.removeprefix("aten::").removesuffix("_cell")
    for loop in ast.walk(code.tree):
        match loop:
            case ast.For(
                target=ast.Name(id=step),
                iter=ast.Name(id=sequence),
                body=[
                    ast.Assign(
                        targets=[state],
                        value=ast.Call(
                            func=ast.Name(id=cell),
                            args=[ast.Name(id=given), before],
                            keywords=[],
                        ),
                    ),
                    *kept,
                ],
                orelse=[],
            ) if given == step and ast.unparse(state).strip("()") == ast.unparse(
                before
            ).strip("()"):
                names = [part.id for part in ast.walk(state) if _is_name(part)]
                return _in_one(code, loop, (function, cell, sequence), names, kept)
    return ""


def _is_name(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)


def _in_one(
    code: CellCode,
    loop: ast.For,
    called: tuple[str, str, str],
    names: list[str],
    kept: list[ast.stmt],
) -> str:
    function, cell, sequence = called
    if isinstance(ValueFlow(code).value(loop.iter), ast.List | ast.ListComp):
        return ""
    edit = SourceEdit(code)
    result = edit.free_name("outputs")
    lists = []
    for statement in kept:
        match statement:
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(attr="append", value=ast.Name(id=gathered)),
                    args=[ast.Name(id=name)],
                )
            ) if name == names[0]:
                lists.append(f"{gathered} += {result}.unbind()")
            case _:
                return ""
    if len(names) != (2 if function == "lstm" else 1):
        return ""
    begins = ", ".join(f"{name}[None]" for name in names)
    begins = f"({begins})" if len(names) > 1 else begins
    # the cell's own weights: gradients go where they went
    weights = f"list({cell}.parameters()), {cell}.bias, 1, 0.0, {cell}.training"
    arguments = f"{sequence}, {begins}, {weights}, False, False"
    targets = ", ".join([result, *names])
    edit.before(loop, f"{targets} = {edit.torch}.{function}({arguments})")
    for line in lists:
        edit.before(loop, line)
    last = ", ".join(f"{name}[0]" for name in names)
    edit.before(loop, f"{', '.join(names)} = {last}")
    edit.replace(loop, f"{ast.unparse(loop.target)} = {sequence}[-1]")
    return edit.source()


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("whole-lstm", "whole-gru", "whole-rnn"),
            what="cells of a recurrent network called step by step",
            time="not below",
            answers=FUSION,
        ),
    ),
    rule=cell_by_cell,
    untried=BY_EDIT,
)

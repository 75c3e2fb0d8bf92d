"""Cells of a recurrent network that a loop of Python calls step by step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple, TypeGuard

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.code.cell_code import CellCode, bound_names, names_in
from warpbook_profiler.advice.code.row_counts import counts_rows
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.rewriting.turns import Turns, loops_of
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.advice.written_cells import written_cells
from warpbook_profiler.events.columns import NONE, Int64s, distinct
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
#: what keeps a step's output
_KEEPS = ("aten::copy_",)
#: axes of the steps, as a call of `unbind` has them
_AXES = {"": 0, "0": 0, "1": 1}
_BACKWARD = "autograd::engine::evaluate_function: ThnnFused"


class _Rows(NamedTuple):
    """What a loop goes through, and along which axis."""

    whole: ast.Name
    axis: int
    #: of a loop over a count: from where, and up to where
    start: ast.expr | None = None
    end: ast.expr | None = None

    @property
    def cut(self) -> str:
        """Write what leaves out rows that the loop does not take."""
        return "" if self.end is None else f"[{':, ' * self.axis}{self.span}]"

    @property
    def span(self) -> str:
        """Write from where to where a loop over a count goes."""
        start = "" if self.start is None else ast.unparse(self.start)
        return f"{start}:{'' if self.end is None else ast.unparse(self.end)}"


class _Steps(NamedTuple):
    """A loop of a cell's steps, and of what keeps their outputs."""

    loop: Turns
    cell: ast.expr
    rows: _Rows
    #: of the state
    names: list[str]
    kept: list[ast.stmt]


def cell_by_cell(evidence: Evidence) -> Iterator[Proposal]:
    """Propose cuDNN's network over the whole sequence."""
    for name, (cell, whole) in _CELLS.items():
        sequences = _sequences(evidence, name)
        if sequences:
            yield _proposal(evidence, sequences, cell, whole)
    yield from written_cells(evidence)


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
    for thread in distinct(table.track[first]).tolist():
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
            f"with {per_step:.0f} kernels: "
            f"{units.share(evidence.share(evidence.time_ns(launched)))} of the bare "
            "run on the GPU, and a launch for each kernel on the host."
        ),
        ways=ways,
        is_bound=True,
        reason=(
            "cuDNN's time depends on sizes and layers. It needs the inputs of all "
            "steps before the first step."
        ),
        operator=operators.name(int(calls[0])),
        line=line or evidence.line_at(int(operators.table.start_ns[calls[0]])),
        code=_whole(evidence, sequences),
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
    launching = distinct(operators.direct[operators.direct != NONE])
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


def _whole(evidence: Evidence, sequences: list[Int64s]) -> str:
    """Write a loop that does nothing but its steps as one call over the sequence."""
    operators, code = evidence.operators, evidence.code
    are_alone = all(_is_alone(evidence, calls) for calls in sequences)
    if not operators.takes_rows or not are_alone:
        return ""
    function = operators.name(int(sequences[0][0])).removeprefix("aten::")
    for loop in loops_of(code.tree):
        steps = _steps(loop)
        if steps is not None:
            return _in_one(code, steps, function.removesuffix("_cell"))
    return ""


def _is_alone(evidence: Evidence, calls: Int64s) -> bool:
    """Tell whether a step is a cell, and not a module that has one and more."""
    operators = evidence.operators
    launching = operators.launching
    inside = operators.within(calls)[launching]
    between = (launching > calls[0]) & (launching < calls[-1]) & ~inside
    return bool(operators.named(*_KEEPS)[launching[between]].all())


def _steps(loop: Turns) -> _Steps | None:
    match loop.body:
        case [
            ast.Assign(
                targets=[state],
                value=ast.Call(
                    func=ast.Name() | ast.Attribute() as cell,
                    args=[given, before],
                    keywords=[],
                ),
            ),
            *kept,
        ] if ast.unparse(state).strip("()") == ast.unparse(before).strip("()"):
            rows = _rows(loop, given)
            parts = state.elts if isinstance(state, ast.Tuple) else [state]
            names = [part.id for part in parts if _is_name(part)]
            if rows and len(names) == len(parts):
                return _Steps(loop, cell, rows, names, kept)
    return None


def _rows(loop: Turns, given: ast.expr) -> _Rows | None:
    """Read what a loop takes a row of in each turn; None where that is not sure."""
    item: ast.expr = loop.target
    match loop.iter, given:
        case (
            ast.Call(func=ast.Name(id="range"), args=[*start, end], keywords=[]),
            ast.Subscript(value=ast.Name() as whole, slice=place),
        ) if len(start) < 2:
            axis = {ast.unparse(item): 0, f"(:, {ast.unparse(item)})": 1}.get(
                ast.unparse(place)
            )
            return (
                None
                if axis is None
                else _Rows(whole, axis, start[0] if start else None, end)
            )
        case ast.Name() as whole, ast.Name():
            axis = 0
        case (
            ast.Call(func=ast.Attribute(attr="unbind", value=whole)) as call,
            ast.Name(),
        ):
            if ast.unparse(whole) == "torch" and call.args:
                whole, *rest = call.args
            else:
                rest = call.args
            places = [*rest, *(one.value for one in call.keywords)]
            axis = _AXES.get(" ".join(map(ast.unparse, places)), -1)
        case _:
            return None
    is_item = ast.unparse(item) == ast.unparse(given)
    if not is_item or axis < 0 or not isinstance(whole, ast.Name):
        return None
    return _Rows(whole, axis)


def _is_name(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name)


def _in_one(code: CellCode, steps: _Steps, function: str) -> str:
    loop, rows, names = steps.loop, steps.rows, steps.names
    flow, edit = ValueFlow(code), SourceEdit(code)
    of_list = isinstance(flow.value(rows.whole), ast.List | ast.ListComp)
    fixed = names_in(steps.cell) | names_in(rows.whole)
    # a hook may change a step's output
    is_hooked = bool(code.calls("register_forward_hook", "register_forward_pre_hook"))
    is_fixed = not (of_list or is_hooked or fixed & bound_names(loop.node))
    # rows of one memory, of which autograd lets none be changed
    is_fixed &= not any(_is_changed(code, steps, one) for one in steps.kept)
    if not is_fixed or _may_be_none(code, names):
        return ""
    if len(names) != (2 if function == "lstm" else 1):
        return ""
    if rows.end is not None and not counts_rows(
        flow, loop.node, (rows.start, rows.end), rows.whole.id, rows.axis
    ):
        return ""
    sequence, cell = rows.whole.id, edit.text(steps.cell)
    axis, result = rows.axis, edit.free_name("outputs")
    lists = [_kept(one, steps, result) for one in steps.kept]
    if not all(lists):
        return ""
    begins = ", ".join(f"{name}[None]" for name in names)
    begins = f"({begins})" if len(names) > 1 else begins
    # the cell's own weights: gradients go where they went
    weights = f"list({cell}.parameters()), {cell}.bias, 1, 0.0, {cell}.training"
    arguments = f"{sequence}{rows.cut}, {begins}, {weights}, False, {bool(axis)}"
    targets, torch = ", ".join([result, *names]), edit.torch
    # what is kept of the last step is the state's own memory
    own = f"{result}.select({axis}, -1)" if lists else f"{names[0]}[0]"
    last = ", ".join([own, *(f"{name}[0]" for name in names[1:])])
    lines = [
        # cuDNN would round to TF32 where the cell's products do not
        f"with {torch}.backends.cudnn.flags(",
        f"    enabled=True, allow_tf32={torch}.get_float32_matmul_precision() "
        '!= "highest"',
        "):",
        f"    {targets} = {torch}.{function}({arguments})",
        *lists,
        f"{', '.join(names)} = {last}",
    ]
    target, end = ast.unparse(loop.target), f"{sequence}.select({axis}, -1)"
    if rows.end is not None:
        end = f"{ast.unparse(rows.end)} - 1"
    if not isinstance(rows.end, ast.Constant):
        # of no steps there is no such call
        begin = "0" if rows.start is None else ast.unparse(rows.start)
        lines = [f"    {line}" for line in lines]
        lines.insert(0, f"if {sequence}.shape[{axis}] > {begin}:")
        lines += [] if loop.after else [f"    {target} = {end}"]
    edit.before(loop.node, "\n".join(lines))
    if loop.after or isinstance(rows.end, ast.Constant):
        edit.replace(loop.node, loop.after or f"{target} = {end}")
    else:
        edit.delete(loop.node)
    return edit.source()


def _kept(statement: ast.stmt, steps: _Steps, result: str) -> str:
    """Write for all steps what keeps the output of one; empty for anything else."""
    axis, state = steps.rows.axis, steps.names[0]
    match statement:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(attr="append", value=ast.Name(id=gathered)),
                args=[ast.Name(id=name)],
            )
        ) if name == state and gathered not in steps.names:
            return f"{gathered} += {result}.unbind({axis})"
        case ast.Assign(
            targets=[ast.Subscript(value=ast.Name(id=kept), slice=place)],
            value=ast.Name(id=name),
        ) if name == state and kept not in (*steps.names, steps.rows.whole.id):
            index, end = ast.unparse(steps.loop.target), steps.rows.end
            to = {index: 0, f"(:, {index})": 1}.get(ast.unparse(place))
            if end is not None and to is not None:
                turned = "" if to == axis else ".transpose(0, 1)"
                return f"{kept}[{':, ' * to}{steps.rows.span}] = {result}{turned}"
    return ""


def _is_changed(code: CellCode, steps: _Steps, kept: ast.stmt) -> bool:
    """Tell whether the cell changes outputs in place that it gathers in a list."""
    if not isinstance(kept, ast.Expr):
        return False
    names = {*steps.names, *(names_in(kept) - {ast.unparse(steps.loop.target)})}
    inside = set(ast.walk(steps.loop.node))
    for part in ast.walk(code.tree):
        match part:
            case ast.Call(func=ast.Attribute(attr=method, value=changed)) if (
                method.endswith("_")
            ):
                pass
            case ast.Subscript(value=changed, ctx=ast.Store()):
                pass
            case ast.AugAssign(target=changed):
                pass
            case _:
                continue
        if part not in inside and names_in(changed) & names:
            return True
    return False


def _may_be_none(code: CellCode, names: list[str]) -> bool:
    """Tell whether a state begins as None, which the cell takes for zeros."""
    return any(
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and {name.id for name in ast.walk(node) if _is_name(name)} & set(names)
        for node in ast.walk(code.tree)
    )


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("whole-lstm", "whole-gru", "whole-rnn"),
            what="cells of a recurrent network called, or written out, step by step",
            time="a bound",
            answers=FUSION,
        ),
    ),
    rule=cell_by_cell,
    untried=BY_EDIT,
)

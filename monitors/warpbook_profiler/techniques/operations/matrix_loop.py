"""Many small matrices, each of which is factored by a call of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from warpbook_monitors.units import duration_ns
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.loops import RowLoop, range_end, row_loops
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.translation.batched_loop import batched
from warpbook_profiler.advice.translation.mapped_rows import function_called, mapped
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Int64s, distinct
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_PREFIXES = ("aten::linalg_", "aten::_linalg_", "aten::cholesky")
#: functions of torch and torch.linalg that take a batch as they take one matrix
_NAMES = (
    "inv inverse pinv solve cholesky cholesky_ex cholesky_solve eigh eigvalsh eig "
    "eigvals svd svdvals qr lu_factor det slogdet logdet matrix_exp lstsq "
    "matrix_power solve_triangular"
).split()
#: they give several tensors
_SEVERAL = frozenset("cholesky_ex eigh eig svd qr lu_factor slogdet lstsq".split())
#: they pass over all elements
_NO_FACTORS = ("vector_norm", "norm", "cross", "vecdot")
#: fewer are no loop
_LEAST_CALLS = 8
#: larger ones fill the GPU one by one; of larger ones the library's eigenvalues and
#: singular values of a batch are one by one, too
_MOST_SIZE, _MOST_OF_EIGENVALUES = 512, 32
_OF_EIGENVALUES = ("eig", "svd")
#: between two of them, where no source tells that they are independent
_QUIET = frozenset(
    f"aten::{name}" for name in "select slice unbind copy_ stack cat empty".split()
)


def matrix_loop(evidence: Evidence) -> Iterator[Proposal]:
    """Propose one call with all matrices."""
    operators, code = evidence.operators, evidence.code
    calls = _calls(evidence)
    if len(calls) < _LEAST_CALLS:
        return
    loops = [loop for loop in row_loops(code) if _factors(code, loop)]
    is_named = bool(code.calls(*_NAMES))
    if not loops and (is_named or not _are_alone(evidence, calls)):
        return
    table, ways = operators.table, Ways(evidence)
    # with the copies in between, and what Python does there
    first, last = int(calls[0]), int(calls[-1])
    every = operators.launched_from(first, last)
    ways.drop(np.setdiff1d(every, operators.launched_within(calls[:1])))
    thread = int(table.track[first])
    ways.drop_host(thread, table.end_ns[calls[:1]], table.end_ns[calls[-1:]])
    name = operators.name(int(calls[0])).removeprefix("aten::")
    launched = operators.launched_within(calls)
    took_ns = int(table.end_ns[calls[-1]] - table.start_ns[calls[0]])
    yield Proposal(
        name="batch-linalg",
        title=f"Pass all matrices to {name} in one batch.",
        evidence=(
            f"{name} is called {len(calls):,} times with matrices of one size, each "
            f"with {len(launched) / len(calls):.0f} kernels and copies, in "
            f"{duration_ns(took_ns)} of the profiled run."
        ),
        ways=ways,
        is_bound=True,
        reason="The time of a batch depends on the library and on the batch's size.",
        operator=operators.name(int(calls[0])),
        line=loops[0].line
        if loops
        else evidence.line_at(int(table.start_ns[calls[0]])),
        code=_edited(evidence, loops) if operators.takes_rows else "",
    )


def _calls(evidence: Evidence) -> Int64s:
    """Return the outermost calls that factor, of the kind that is called most."""
    operators = evidence.operators
    names = [
        name
        for name in operators.table.names
        if name.startswith(_PREFIXES) and not name.endswith(_NO_FACTORS)
    ]
    calls = distinct(operators.outer_of(np.flatnonzero(operators.named(*names))))
    if not len(calls):
        return calls
    kind = operators.table.name[calls]
    most = np.bincount(kind).argmax()
    mine: Int64s = calls[kind == most]
    return mine if _is_small(evidence, mine) else mine[:0]


def _is_small(evidence: Evidence, calls: Int64s) -> bool:
    """Tell whether the matrices are small, and no batch already."""
    operators = evidence.operators
    inside = np.flatnonzero(operators.within(calls[:1]))
    ranks = [
        dims[-2:] if len(dims) == 2 else ()
        for at in inside.tolist()
        for dims in operators.operands(at).dims[:1]
        if len(dims) >= 2
    ]
    name = operators.name(int(calls[0]))
    is_of_eigenvalues = any(part in name for part in _OF_EIGENVALUES)
    most = _MOST_OF_EIGENVALUES if is_of_eigenvalues else _MOST_SIZE
    return all(0 < max(dims, default=0) <= most for dims in ranks[:1])


def _are_alone(evidence: Evidence, calls: Int64s) -> bool:
    """Tell whether nothing else is computed between the calls."""
    operators = evidence.operators
    outer = np.flatnonzero(operators.outermost)
    between = outer[(outer > calls[0]) & (outer < calls[-1])]
    others = np.setdiff1d(between, calls)
    return all(operators.name(at) in _QUIET for at in others.tolist())


def _factors(code: CellCode, loop: RowLoop) -> bool:
    """Tell whether a loop factors matrices, or calls a function that does."""
    function = function_called(loop.node, code)
    spans = [(loop.line, loop.last_line)]
    if function is not None:
        spans.append((function.lineno, function.end_lineno or 0))
    lines = [call.line for call in code.calls(*_NAMES)]
    return any(first <= line <= last for line in lines for first, last in spans)


def _edited(evidence: Evidence, loops: list[RowLoop]) -> str:
    """Write the call with all matrices, or all that the turns of a loop compute."""
    code = evidence.code
    edit, flow = SourceEdit(code), ValueFlow(code)
    for call in code.calls("stack"):
        if text := _of_list(call.node, edit, flow):
            edit.replace(call.node, text)
            return edit.source()
    for loop in code.tree.body:
        if isinstance(loop, ast.For) and (text := _of_loop(loop, edit, flow)):
            edit.replace(loop, text)
            return edit.source()
    texts = (batched(evidence, loop) for loop in loops)
    return next(filter(None, texts), "") or mapped(code)


def _of_list(node: ast.Call, edit: SourceEdit, flow: ValueFlow) -> str:
    match node:
        case ast.Call(
            func=ast.Attribute(attr="stack"),
            args=[ast.ListComp(elt=elt, generators=[made])],
            keywords=[],
        ) if isinstance(made.iter, ast.Name) and not made.ifs:
            return _called(elt, made.target, made.iter, edit, flow)
    return ""


def _of_loop(loop: ast.For, edit: SourceEdit, flow: ValueFlow) -> str:
    if loop.orelse:
        return ""
    place = ast.unparse(loop.target)
    match loop.body:
        case [
            ast.Expr(
                ast.Call(func=ast.Attribute(attr="append", value=kept), args=[one])
            )
        ] if isinstance(loop.iter, ast.Name):
            call = _called(one, loop.target, loop.iter, edit, flow)
            lines = f"{edit.text(kept)}.extend({call}.unbind(0))"
            return f"{lines}\n{place} = {loop.iter.id}[-1]" if call else ""
        case [ast.Assign(targets=[ast.Subscript(value=kept, slice=index)], value=one)]:
            call, end = (
                _called(one, loop.target, loop.iter, edit, flow),
                range_end(loop.iter),
            )
            if call and end and ast.unparse(index) == place:
                lines = f"{edit.text(kept)}[:{end}] = {call}"
                return f"{lines}\n{place} = {end} - 1"
    return ""


def _called(
    node: ast.expr,
    target: ast.expr,
    source: ast.expr,
    edit: SourceEdit,
    flow: ValueFlow,
) -> str:
    """Write a call of one matrix for all; empty where another thing is made of it."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ""
    if node.func.attr not in _NAMES or not isinstance(target, ast.Name):
        return ""
    is_of_torch = ast.unparse(node.func.value) in ("torch", "torch.linalg")
    if node.func.attr in _SEVERAL or not is_of_torch:
        return ""
    end, arguments = range_end(source), list[str]()
    for argument in node.args:
        taken = argument.value if isinstance(argument, ast.Subscript) else source
        if isinstance(flow.value(taken), ast.List | ast.ListComp):
            return ""
        if isinstance(argument, ast.Name) and argument.id == target.id and not end:
            arguments.append(edit.text(source))
        elif (
            isinstance(argument, ast.Subscript)
            and ast.unparse(argument.slice) == target.id
            and isinstance(argument.value, ast.Name)
            and end
        ):
            arguments.append(f"{argument.value.id}[:{end}]")
        else:
            return ""
    others = [one.value for one in node.keywords]
    if not all(isinstance(one, ast.Constant) for one in others) or not arguments:
        return ""
    given = [*arguments, *(ast.unparse(one) for one in node.keywords)]
    return f"{edit.text(node.func)}({', '.join(given)})"


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("batch-linalg",),
            what="small matrices that are factorized or solved one by one",
            time="a bound",
        ),
    ),
    rule=matrix_loop,
    untried=BY_EDIT,
)

"""One matrix that each turn of a loop factors, inverts or decomposes again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.code.cell_code import SIMPLE, Call, names_in, stored_names
from warpbook_profiler.advice.code.read_code import uses
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import VIEWS, ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

#: by a function of torch or torch.linalg, the operator that does its work
_FACTORS = {
    "solve": "aten::linalg_lu_factor_ex",
    "lu_factor": "aten::linalg_lu_factor_ex",
    "inv": "aten::linalg_inv_ex",
    "inverse": "aten::linalg_inv_ex",
    "cholesky": "aten::linalg_cholesky_ex",
    "eigh": "aten::_linalg_eigh",
    "svd": "aten::_linalg_svd",
    "pinv": "aten::linalg_pinv",
    "matrix_exp": "aten::linalg_matrix_exp",
}
_SOLVE, _SOLVES, _CHECKS = (
    "solve",
    "aten::linalg_lu_solve",
    "aten::_linalg_check_errors",
)
_MODULES = ("torch", "torch.linalg")
_PRODUCTS = frozenset("matmul mm mv".split())
_PARTS = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Attribute, ast.Subscript, ast.keyword)
#: what a matrix is written with, beside names, numbers and operators
_MAKERS = frozenset("eye diag diag_embed diagflat outer t transpose matmul mm".split())
_VIEWED = frozenset("T mT H device dtype".split())
_WRITTEN = (
    *(ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.keyword),
    *(ast.expr_context, ast.operator, ast.unaryop),
)
#: fewer are no loop worth a word
_LEAST_CALLS = 3


class _Again(NamedTuple):
    """A call of which each turn of a loop computes the same, or a part of it."""

    call: Call
    loop: ast.For | ast.While


def same_matrix(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to factor a matrix before the loop."""
    found = list(_found(evidence, ValueFlow(evidence.code)))
    if len(found) != 1:
        return
    (again,) = found
    operators, name = evidence.operators, again.call.name
    factored = np.flatnonzero(operators.named(_FACTORS[name]))
    matrices = {operators.operands(at).dims[:1] for at in factored.tolist()}
    if len(factored) < _LEAST_CALLS or len(matrices) > 1:
        return
    # what is left of each solution is two triangular ones
    removed = factored[1:] if name == _SOLVE else operators.outer_of(factored[1:])
    checks = np.flatnonzero(operators.named(_CHECKS))[1:]
    removed = np.union1d(removed, checks) if name == _SOLVE else removed
    ways = Ways(evidence)
    ways.drop_operators(removed)
    ways.stop_waiting(evidence.waits_within(removed))
    launched = operators.launched_within(factored)
    share = units.share(evidence.share(evidence.time_ns(launched)))
    yield Proposal(
        name="factor-once",
        title=(
            "Factor the matrix once before the loop, and solve with its factors."
            if name == _SOLVE
            else f"Call {name} once before the loop."
        ),
        evidence=(
            f"{again.call.text} takes the same matrix in each of {len(factored):,} "
            f"turns: {share} of the bare run on the GPU."
        ),
        ways=ways,
        operator=operators.name(int(factored[0])),
        line=again.call.line,
        code=_edited(evidence, again),
    )


def _found(evidence: Evidence, flow: ValueFlow) -> Iterator[_Again]:
    for call in evidence.code.calls(*_FACTORS, in_loop=True):
        match call.node.args:
            case [matrix, *_] if call.receiver in _MODULES and _is_plain(matrix):
                pass
            case _:
                continue
        # a solution has another right side in each turn
        names = needed = names_in(matrix) - {"torch"}
        if call.name != _SOLVE:
            needed = needed | names_in(call.node) - names_in(call.node.func)
        loop = None
        for above in flow.around(call.node):
            if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                break
            if isinstance(above, ast.For | ast.While):
                is_same = bool(names) and not needed & stored_names(above)
                is_same &= all(_is_as_before(flow, above, matrix, n) for n in names)
                loop = above if is_same else loop
                if not is_same:
                    break
        if loop is not None and not any(map(flow.is_written, names)):
            yield _Again(call, loop)


def _is_plain(matrix: ast.expr) -> bool:
    """Tell whether a matrix is a name, or arithmetic that has no effect."""
    functions = [one.func for one in ast.walk(matrix) if isinstance(one, ast.Call)]
    return all(
        isinstance(node, _WRITTEN)
        or (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute))
        or (
            isinstance(node, ast.Attribute)
            and node.attr in (_MAKERS if node in functions else _VIEWED)
        )
        for node in ast.walk(matrix)
    )


def _is_as_before(flow: ValueFlow, loop: ast.stmt, matrix: ast.expr, name: str) -> bool:
    """Tell whether a loop takes a name for a matrix, and else by operations alone."""
    if uses(loop, name) == uses(matrix, name):
        return True
    inside = [one for one in flow.reads(name) if loop in flow.around(one)]
    own = set(ast.walk(matrix))
    return not isinstance(matrix, ast.Name) and all(
        one in own or _is_operand(flow, one) for one in inside
    )


def _edited(evidence: Evidence, again: _Again) -> str:
    """Write the call, or what it does with its matrix, before the loop."""
    flow, node = ValueFlow(evidence.code), again.call.node
    if evidence.operators.are_trained or not _is_each_turn(flow, again):
        # a second backward pass finds nothing left of the one factorization
        return ""
    edit = SourceEdit(evidence.code)
    if again.call.name != _SOLVE:
        if not _is_only_read(flow, again):
            return ""
        made = edit.free_name(f"{again.call.name}_of_all")
        edit.before(again.loop, f"{made} = {edit.text(node)}")
        edit.replace(node, made)
        return edit.source()
    match node:
        case ast.Call(args=[matrix, right], keywords=[]) if not _are_batches(evidence):
            pass
        case _:
            return ""
    factors, pivots, side = map(edit.free_name, ("factors", "pivots", "right"))
    linalg, of = f"{edit.torch}.linalg", edit.text(matrix)
    edit.before(again.loop, f"{factors}, {pivots} = {linalg}.lu_factor({of})")
    # one side may be a vector, which only the solution of a system takes
    columns = f"({side} := {edit.text(right)}).reshape(len({factors}), -1)"
    solved = f"{linalg}.lu_solve({factors}, {pivots}, {columns})"
    edit.replace(node, f"{solved}.reshape({side}.shape)")
    return edit.source()


def _is_each_turn(flow: ValueFlow, again: _Again) -> bool:
    """Tell whether each turn surely makes a call, of a matrix that nothing changes."""
    for above in flow.around(again.call.node):
        if above is again.loop:
            # what is called for its effect may change the matrix
            effects = (one for one in ast.walk(above) if isinstance(one, ast.Expr))
            return not any(one.value in flow.opaque_calls for one in effects)
        if not isinstance(above, (*SIMPLE, ast.For, ast.While, *_PARTS)):
            return False
    return False


def _is_only_read(flow: ValueFlow, again: _Again) -> bool:
    """Tell whether turns take a result by operations, also by names not changed.

    Turns that keep it, in a list or a name, all keep the same one.
    """
    node = again.call.node
    match flow.statement(node):
        case ast.Assign(targets=[target], value=value) if value is node:
            targets = target.elts if isinstance(target, ast.Tuple) else [target]
            names = [one.id for one in targets if isinstance(one, ast.Name)]
            reads = [one for name in names for one in flow.reads(name)]
            return (
                len(names) == len(targets)
                and not any(map(flow.is_written, names))
                and all(
                    _is_operand(flow, one)
                    for one in reads
                    if again.loop in flow.around(one)
                )
            )
    return _is_operand(flow, node)


def _is_operand(flow: ValueFlow, node: ast.expr) -> bool:
    """Tell whether an operation takes a value, or a view of it, and gives a new one."""
    match flow.parent(node):
        case ast.BinOp():
            return True
        case ast.Attribute(attr=name) as of_it:
            above = flow.parent(of_it)
            if isinstance(above, ast.Call) and above.func is of_it:
                return name in _PRODUCTS
            return _is_operand(flow, of_it)
        case ast.Call(func=ast.Attribute(value=module, attr=name), keywords=options):
            is_new = not name.endswith("_") and name not in VIEWS
            is_new &= all(one.arg != "out" for one in options)
            return name in _PRODUCTS or (is_new and ast.unparse(module) in _MODULES)
    return False


def _are_batches(evidence: Evidence) -> bool:
    """Tell whether matrices or sides have more than two axes, or it is not known."""
    operators = evidence.operators
    solves = np.flatnonzero(operators.named(_SOLVES)).tolist()
    taken = [operators.operands(at).dims[:3] for at in solves]
    # between them are the pivots
    return {tuple(map(len, dims)) for dims in taken} != {(2, 1, 2)}


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("factor-once",),
            what="a loop that solves with, inverts or decomposes the same matrix again",
            time="predicted",
        ),
    ),
    rule=same_matrix,
    untried=BY_EDIT,
)

"""One matrix that each turn of a loop factors, inverts or decomposes again."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.code.cell_code import SIMPLE, Call, stored_names
from warpbook_profiler.advice.code.read_code import uses
from warpbook_profiler.advice.code.source_edit import SourceEdit, names_in
from warpbook_profiler.advice.code.value_flow import ValueFlow
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
            case [ast.Name(id=matrix), *_] if call.receiver in _MODULES:
                pass
            case _:
                continue
        # a solution has another right side in each turn
        needed = {matrix}
        if call.name != _SOLVE:
            needed |= names_in(call.node) - names_in(call.node.func)
        loop = None
        for above in flow.around(call.node):
            if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                break
            if isinstance(above, ast.For | ast.While):
                is_same = not needed & stored_names(above) and uses(above, matrix) == 1
                loop = above if is_same else loop
                if not is_same:
                    break
        if loop is not None and not flow.is_written(matrix):
            yield _Again(call, loop)


def _edited(evidence: Evidence, again: _Again) -> str:
    """Write the call, or what it does with its matrix, before the loop."""
    edit, flow, node = (
        SourceEdit(evidence.code),
        ValueFlow(evidence.code),
        again.call.node,
    )
    function = edit.text(node.func)
    if again.call.name != _SOLVE:
        match flow.statement(node):
            case ast.Assign(targets=[ast.Name(id=name)]) if flow.is_written(name):
                return ""
        made = edit.free_name(f"{again.call.name}_of_all")
        edit.before(again.loop, f"{made} = {edit.text(node)}")
        edit.replace(node, made)
        return edit.source()
    statement = flow.statement(node)
    match node:
        case ast.Call(args=[matrix, right], keywords=[]) if isinstance(
            statement, SIMPLE
        ) and not _are_batches(evidence):
            pass
        case _:
            return ""
    factors, pivots, side = map(edit.free_name, ("factors", "pivots", "right"))
    linalg, of = f"{function.split('.')[0]}.linalg", edit.text(matrix)
    edit.before(again.loop, f"{factors}, {pivots} = {linalg}.lu_factor({of})")
    edit.before(statement, f"{side} = {edit.text(right)}")
    # one side may be a vector, which only the solution of a system takes
    columns = f"{side}.reshape(len({of}), -1)"
    solved = f"{linalg}.lu_solve({factors}, {pivots}, {columns})"
    edit.replace(node, f"{solved}.reshape({side}.shape)")
    return edit.source()


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

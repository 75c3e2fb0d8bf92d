"""A loop over rows of tensors, written as one call of torch.vmap over all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_profiler.advice.code.cell_code import (
    CellCode,
    blocks,
    names_in,
    stored_names,
)
from warpbook_profiler.advice.code.loops import RowLoop, range_end
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import MODULES
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.repeats import repeats
from warpbook_profiler.advice.rewriting.turns import UnsureError
from warpbook_profiler.advice.translation.loop_rows import LoopRows
from warpbook_profiler.facts.traffic import only_passes

_LEAST_ROWS = 8
_SELECT = "aten::select"
#: its size depends on values: a mask's
_NONZERO = "aten::nonzero"
#: functions and methods that give the same of each row in a batch, beside those that
#: pass over each element
_OF_ROWS = frozenset(
    "inv inverse pinv solve cholesky cholesky_solve eigvalsh eigh svdvals det logdet "
    "slogdet matrix_exp solve_triangular matmul mm mv bmm dot linear softmax "
    "log_softmax sum mean prod amax amin argmax argmin norm vector_norm topk sort "
    "argsort logsumexp cumsum cumprod transpose permute unsqueeze squeeze flatten "
    "reshape view gather index_select diagonal diag trace gelu relu silu float double "
    "half bfloat16".split()
)
_DRAWS = frozenset("dropout bernoulli normal uniform exponential random".split())
_VIEWS = frozenset(("T", "mT", "H", "mH", "values", "indices"))


class _Kept(NamedTuple):
    """What a turn leaves, by a statement of the loop."""

    #: what is computed for it
    values: tuple[ast.expr, ...]
    #: the statement for all turns, with a place for each value
    written: str


def batched(evidence: Evidence, loop: RowLoop) -> str:
    """Write the cell with all rows of a loop at once; empty where it is not sure."""
    node = loop.node
    if not isinstance(node, ast.For) or node.orelse or not _in_block(evidence, node):
        return ""
    try:
        return _Batch(evidence, node).written()
    except UnsureError:
        return ""


def _in_block(evidence: Evidence, loop: ast.For) -> bool:
    return any(loop in block.statements for block in blocks(evidence.code.tree))


class _Batch:
    def __init__(self, evidence: Evidence, loop: ast.For) -> None:
        """Note what is gone through.

        Raises:
            UnsureError: it is no count.
        """
        self._evidence, self._loop = evidence, loop
        self._code: CellCode = evidence.code
        self._edit = SourceEdit(self._code)
        self._end = range_end(loop.iter)
        if not isinstance(loop.target, ast.Name) or not self._end:
            raise UnsureError
        self._index = loop.target.id
        self._stored = stored_names(loop) | _written_to(loop)
        flow = ValueFlow(self._code)
        self._rows = LoopRows(self._edit, flow, self._index, self._end, self._stored)

    def written(self) -> str:
        """Write the cell.

        Raises:
            UnsureError: a statement is not known to give the same.
        """
        steps, kept = list[ast.stmt](), list[_Kept]()
        for statement in self._loop.body:
            made = self._kept(statement)
            if made is not None:
                kept.append(made)
            elif kept or not _is_plain(statement):
                raise UnsureError
            else:
                steps.append(statement)
        values = [value for one in kept for value in one.values]
        if not values or not all(map(gives_rows, [*steps, *values])):
            raise UnsureError
        own = {name for one in steps for name in stored_names(one)}
        for part in (*steps, *values):
            if names_in(part) & (self._stored - own - {self._index}):
                raise UnsureError
        new_steps = [ast.unparse(self._rows.of_row(step)) for step in steps]
        new_values = [ast.unparse(self._rows.of_row(value)) for value in values]
        if not self._rows.names or not self._are_tensors():
            raise UnsureError
        edit, torch = self._edit, self._edit.torch
        function, result = edit.free_name("of_row"), edit.free_name("results")
        names, axes = self._rows.names, self._rows.axes
        given = f"{function}, in_dims={axes}" if any(axes) else function
        every = ", ".join(self._rows.wholes)
        results = [result]
        if len(values) > 1:
            results = [f"{result}[{at}]" for at in range(len(values))]
        lines = [
            f"def {function}({', '.join(names)}):",
            *(f"    {step}" for step in new_steps),
            f"    return {', '.join(new_values)}",
            f"{result} = {torch}.vmap({given})({every})",
        ]
        for one in kept:
            mine, results = results[: len(one.values)], results[len(one.values) :]
            lines.append(one.written.format(*mine))
        # what the last turn left
        last = str(int(self._end) - 1) if self._end.isdigit() else f"{self._end} - 1"
        lines.append(f"{self._index} = {last}")
        if steps and not self._is_over(own):
            lines += map(ast.unparse, steps)
        edit.before(self._loop, "\n".join(lines[:-1]))
        edit.replace(self._loop, lines[-1])
        return edit.source()

    def _is_over(self, names: set[str]) -> bool:
        """Tell whether nobody can read names after the loop: those of a function."""
        function = ValueFlow(self._code).function(self._loop)
        if function is None:
            return False
        inside = set(ast.walk(self._loop))
        return not any(
            isinstance(node, ast.Name) and node.id in names and node not in inside
            for node in ast.walk(function)
        ) and not any(
            isinstance(node, ast.Global | ast.Nonlocal) for node in ast.walk(function)
        )

    def _kept(self, statement: ast.stmt) -> _Kept | None:
        match statement:
            case ast.Expr(
                ast.Call(
                    func=ast.Attribute(attr="append", value=ast.Name(id=name)),
                    args=[value],
                    keywords=[],
                )
            ):
                return _Kept((value,), f"{name}.extend({{}}.unbind(0))")
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id=name), slice=ast.Name(id=at))],
                value=value,
            ) if at == self._index:
                return _Kept((value,), f"{name}[:{self._end}] = {{}}")
            case ast.Expr(
                ast.Call(
                    func=ast.Attribute(attr="index_add_", value=ast.Name(id=name)),
                    args=[ast.Constant(value=0), index, value],
                    keywords=[],
                )
            ):
                written = f"{name}.index_add_(0, {{}}.flatten(), {{}}.flatten(0, 1))"
                return _Kept((index, value), written)
        return None

    def _are_tensors(self) -> bool:
        """Tell whether each `x[i]` took a row of a tensor: a list does so unseen."""
        taken = [
            part
            for part in ast.walk(self._loop)
            if isinstance(part, ast.Subscript)
            for one in _places(part)
            if _is_scalar(one, self._index)
        ]
        operators = self._evidence.operators
        for repeat in repeats(operators, _LEAST_ROWS):
            first, last = int(repeat.one[0]), int(repeat.one[-1])
            turn = np.arange(first, last + 1)
            names = {operators.name(int(at)) for at in turn}
            selects = [
                at for at in repeat.one.tolist() if operators.name(at) == _SELECT
            ]
            if len(selects) == len(taken) and _NONZERO not in names:
                return True
        return False


def _places(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _is_scalar(node: ast.expr, index: str) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    return isinstance(node, ast.Name) and node.id == index


def _written_to(loop: ast.For) -> set[str]:
    """Return the names of what a loop fills."""
    names = set[str]()
    for part in ast.walk(loop):
        match part:
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                names.add(name)
            case ast.Call(func=ast.Attribute(attr=method, value=ast.Name(id=name))) if (
                method in ("append", "index_add_")
            ):
                names.add(name)
    return names


def _is_plain(statement: ast.stmt) -> bool:
    """Tell whether a statement sets names of its own."""
    match statement:
        case ast.Assign(targets=[ast.Name()]):
            return True
        case ast.Assign(targets=[ast.Tuple(elts=names)]):
            return all(isinstance(name, ast.Name) for name in names)
    return False


def gives_rows(tree: ast.AST) -> bool:
    """Tell whether all that code calls gives the same of each row in a batch."""
    return all(_is_of_rows(part) for part in _values(tree))


def _values(tree: ast.AST) -> Iterator[ast.AST]:
    for part in ast.walk(tree):
        if isinstance(part, ast.expr | ast.comprehension):
            yield part


def _is_of_rows(part: ast.AST) -> bool:
    match part:
        case ast.Call(func=ast.Attribute(attr=name, value=receiver)):
            is_module = ast.unparse(receiver).split(".")[0] in MODULES
            is_known = name in _OF_ROWS or only_passes(f"aten::{name}")
            return is_known and name not in _DRAWS and (is_module or name != "view")
        case ast.Attribute(attr=name, value=value):
            # a function of a module is called, a tensor's own look is a view
            is_module = ast.unparse(value).split(".")[0] in MODULES
            return (
                is_module
                or name in _VIEWS
                or name in _OF_ROWS
                or only_passes(f"aten::{name}")
            )
        case ast.Subscript() | ast.BinOp() | ast.UnaryOp() | ast.Compare():
            return True
        case ast.Name() | ast.Constant() | ast.Slice() | ast.Tuple():
            return True
    return False

"""Statements of a cell that compute, each run of them as one compiled function.

Functions of the cell that they call are copied into it, as each execution of the cell
defines them anew, and would have them compiled again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import (
    CellCode,
    bound_names,
    last_name,
    names_in,
    stored_names,
)
from warpbook_profiler.advice.code.fused_code import compiled_once, taken_names
from warpbook_profiler.advice.code.source_edit import SourceEdit

#: they wait, print, train or draw: nothing to compile, or nothing that would be equal
_APART = frozenset(
    "print item tolist cpu numpy cuda to backward step zero_grad append extend insert "
    "add_row write synchronize empty_cache manual_seed rand randn randint randperm "
    "rand_like randn_like dropout bernoulli normal_ uniform_ compile open exec eval "
    "from_numpy tensor as_tensor load save perf_counter time".split()
)
_LAZY = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)
_WORK = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.AugAssign)
#: what one kernel does in any case
_LEAST_WORK = 2


class _Part(NamedTuple):
    """Statements that follow one another, or an expression."""

    nodes: tuple[ast.stmt, ...] | tuple[ast.expr]


def fused_blocks(code: CellCode) -> Iterator[str]:
    """Write the cell with all that it computes in compiled functions."""
    text = _Fused(code).written()
    if text:
        yield text


class _Fused:
    def __init__(self, code: CellCode) -> None:
        self._code, self._edit = code, SourceEdit(code)
        #: that the cell defines, and no object or closure has
        self._functions = {
            node.name: node
            for node in code.tree.body
            if isinstance(node, ast.FunctionDef) and not node.decorator_list
        }
        self._copied = set[str]()

    def written(self) -> str:
        parts = list(self._parts(self._code.tree.body))
        # a function that a part calls is in that part's copy
        for name, function in self._functions.items():
            if name not in self._copied:
                parts += self._parts(function.body)
        for part in parts:
            self._write(part)
        return self._edit.source() if parts else ""

    def _parts(self, block: Sequence[ast.stmt]) -> Iterator[_Part]:
        run: list[ast.stmt] = []
        for statement in block:
            if self._is_plain(statement):
                run.append(statement)
                continue
            yield from self._worth(tuple(run))
            run = []
            yield from self._inside(statement)
        yield from self._worth(tuple(run))

    def _inside(self, statement: ast.stmt) -> Iterator[_Part]:
        if isinstance(statement, ast.FunctionDef) and statement in self._code.tree.body:
            return
        blocks = [getattr(statement, one, []) for one in ("body", "orelse")]
        if any(blocks):
            for block in blocks:
                yield from self._parts(block)
            return
        value = getattr(statement, "value", None)
        for node in self._values(value) if isinstance(value, ast.expr) else ():
            yield from self._worth((node,))

    def _values(self, value: ast.expr) -> Iterator[ast.expr]:
        """Give the largest expressions of a statement that may be compiled."""
        match value:
            case ast.ListComp(elt=inner) | ast.SetComp(elt=inner):
                yield from self._values(inner)
            case ast.GeneratorExp(elt=inner) | ast.DictComp(value=inner):
                yield from self._values(inner)
            case ast.Lambda(body=inner):
                yield from self._values(inner)
            case _ if self._is_compiled(value):
                yield value
            case _:
                for part in ast.iter_child_nodes(value):
                    one = part.value if isinstance(part, ast.keyword) else part
                    if isinstance(one, ast.expr):
                        yield from self._values(one)

    def _is_plain(self, statement: ast.stmt) -> bool:
        """Tell whether a statement sets names alone, and computes."""
        match statement:
            case ast.Assign(targets=[target], value=value):
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                is_local = all(isinstance(one, ast.Name) for one in names)
            case ast.AugAssign(target=target, value=value):
                is_local = isinstance(target, ast.Name)
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name)) as value):
                has_out = any(one.arg == "out" for one in value.keywords)
                is_local = has_out or (name.endswith("_") and name[:1] != "_")
            case _:
                return False
        return is_local and self._is_compiled(value)

    def _is_compiled(self, value: ast.expr) -> bool:
        for node in ast.walk(value):
            if isinstance(node, (*_LAZY, ast.Await, ast.Yield, ast.NamedExpr)):
                return False
            if isinstance(node, ast.Call):
                name = last_name(node.func)
                # a class makes an object, which is somebody else's
                if name in _APART or name[:1].isupper():
                    return False
                called = self._functions.get(name)
                if called is not None and not self._may_copy(called):
                    return False
        return True

    def _may_copy(self, function: ast.FunctionDef) -> bool:
        inside = (node for node in ast.walk(function) if isinstance(node, ast.Call))
        is_apart = any(last_name(one.func) in _APART for one in inside)
        return not is_apart and not any(
            isinstance(one, ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom)
            for one in ast.walk(function)
        )

    def _worth(self, nodes: tuple[ast.stmt, ...] | tuple[ast.expr]) -> Iterator[_Part]:
        """Give statements as a part if they do more than one kernel would."""
        called = self._called(nodes)
        work = [*nodes, *(self._functions[name] for name in called)]
        if sum(map(_works, work)) >= _LEAST_WORK:
            self._copied |= set(called)
            yield _Part(nodes)

    def _called(self, nodes: Sequence[ast.AST]) -> list[str]:
        """Give the cell's own functions that code comes to, in the cell's order."""
        found, left = set[str](), list(nodes)
        while left:
            new = names_in(left.pop()) & self._functions.keys() - found
            found |= new
            left += [self._functions[name] for name in new]
        return [name for name in self._functions if name in found]

    def _write(self, part: _Part) -> None:
        edit, nodes = self._edit, part.nodes
        called = self._called(nodes)
        functions = self._functions_of_others(nodes)
        names = taken_names(self._code.tree, nodes)
        given = [one for one in names if one not in (*called, *functions)]
        lines: list[str] = []
        for name in called:
            lines += ast.unparse(self._functions[name]).splitlines()
        last = nodes[-1]
        if isinstance(last, ast.expr):
            inner, results = [f"return {ast.unparse(last)}"], ""
        else:
            results = ", ".join(sorted(stored_names(ast.Module([*nodes], []))))
            inner = [line for one in nodes for line in ast.unparse(one).splitlines()]
            inner += [f"return {results}"] if results else []
        if not given:
            return
        arguments = ", ".join(given)
        name = compiled_once(
            edit,
            "fused",
            arguments,
            [f"    {one}" for one in inner],
            "torch.compile",
            lines,
        )
        edit.module("torch")
        call = f"{name}({arguments})"
        if isinstance(last, ast.expr):
            edit.replace(last, call)
            return
        first, *others = nodes
        edit.replace(first, f"{results} = {call}" if results else call)
        for one in others:
            if isinstance(one, ast.stmt):
                edit.delete(one)

    def _functions_of_others(self, nodes: Sequence[ast.AST]) -> set[str]:
        """Give names of other cells that code only calls."""
        called = {
            one.func.id
            for node in nodes
            for one in ast.walk(node)
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)
        }
        return called - bound_names(self._code.tree)


def _works(node: ast.AST) -> int:
    """Count what is computed, but for what other cells' functions do."""
    return sum(
        isinstance(one, _WORK)
        and not (isinstance(one, ast.Call) and isinstance(one.func, ast.Name))
        for one in ast.walk(node)
    )

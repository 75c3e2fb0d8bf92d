"""Calls in loops of functions that read results, as what these functions do."""

from __future__ import annotations

import ast
from collections.abc import Container
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import CellCode, stored_names
from warpbook_profiler.advice.code.source_edit import SourceEdit, bound_names
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.rewriting.turns import (
    loaded,
    rewritten,
    statement_of,
    whole_loops,
)

_PLAIN = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)


class _Straight(NamedTuple):
    """A function that does one statement after the other, and gives a value."""

    #: with what stands for each that a call leaves out; None where it may not
    arguments: dict[str, ast.expr | None]
    body: list[ast.stmt]
    value: ast.expr


def inlined(code: CellCode, wanted: Container[str]) -> str:
    """Write what functions do in place of calls in loops; may be empty.

    Args:
        code: the cell, which defines them.
        wanted: their names.
    """
    functions = {
        node.name: straight
        for node in code.tree.body
        if isinstance(node, ast.FunctionDef)
        and node.name in wanted
        and (straight := _straight(node)) is not None
    }
    edit, flow = SourceEdit(code), ValueFlow(code)
    for loop in whole_loops(code.tree) if functions else ():
        for node in ast.walk(loop):
            match node:
                case ast.Call(func=ast.Name(id=name)) if name in functions:
                    _inline(edit, flow, node, functions[name])
    return edit.source()


def _straight(node: ast.FunctionDef) -> _Straight | None:
    given, (*body, last) = node.args, node.body
    is_plain = not (given.vararg or given.kwarg or node.decorator_list)
    if not is_plain or any(isinstance(one, ast.Lambda) for one in ast.walk(node)):
        return None
    if not isinstance(last, ast.Return) or last.value is None:
        return None
    if not all(isinstance(one, _PLAIN) for one in body):
        return None
    names = [one.arg for one in (*given.posonlyargs, *given.args)]
    defaults = dict(zip(reversed(names), reversed(given.defaults), strict=False))
    arguments = {name: defaults.get(name) for name in names}
    for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        arguments[one.arg] = default
    return _Straight(arguments, body, last.value)


def _inline(
    edit: SourceEdit, flow: ValueFlow, call: ast.Call, function: _Straight
) -> None:
    """Put what a function does before the statement that calls it, if that is sure."""
    statement, scope = statement_of(flow, call), flow.function(call)
    given = dict(zip(function.arguments, call.args, strict=False))
    given |= {one.arg: one.value for one in call.keywords if one.arg}
    values = {name: given.get(name) or one for name, one in function.arguments.items()}
    is_called_so = len(given) == len(call.args) + len(call.keywords) and not any(
        isinstance(one, ast.Starred) for one in call.args
    )
    if statement is None or not is_called_so:
        return
    if given.keys() - values.keys() or None in values.values():
        return
    does = ast.Module([*function.body, ast.Expr(function.value)], [])
    stored, free = stored_names(does), loaded(does) - values.keys()
    if scope is not None and (free - stored) & bound_names(scope):
        return
    set_to = {
        name: one
        for name, one in values.items()
        if one and (name in stored or not isinstance(one, ast.Name | ast.Constant))
    }
    names = {one: edit.free_name(one) for one in sorted(stored | set_to.keys())}

    def renamed(node: ast.expr) -> ast.expr | None:
        if isinstance(node, ast.Name) and node.id in names:
            return ast.Name(names[node.id], node.ctx)
        return values.get(node.id) if isinstance(node, ast.Name) else None

    lines = [f"{names[name]} = {ast.unparse(one)}" for name, one in set_to.items()]
    lines += [rewritten(one, renamed) for one in function.body]
    if lines:
        edit.before(statement, "\n".join(lines))
    edit.replace(call, f"({rewritten(ast.Expr(function.value), renamed)})")

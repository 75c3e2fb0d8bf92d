"""Values of `map`, of `accumulate` and of generators, as comprehensions and loops."""

from __future__ import annotations

import ast
import copy
from collections.abc import Container

from warpbook_profiler.advice.code.cell_code import (
    CellCode,
    bound_names,
    last_name,
    walk,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.rewriting.turns import replacing, statement_of

#: functions of Python that are read here
_KNOWN = frozenset(("map", "list", "zip"))
_LISTS = frozenset(("map", "list"))
#: they have names of their own
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def with_comprehensions(code: CellCode, generators: Container[str]) -> str:
    """Write what goes over values, or lists them, as comprehensions; may be empty.

    Args:
        code: the cell.
        generators: names of functions that yield.
    """
    are_any = any(
        isinstance(one, ast.Starred) or (isinstance(one, ast.Name) and one.id in _LISTS)
        for one in walk(code.tree)
    )
    if not are_any or _KNOWN & bound_names(code.tree):
        return ""
    edit, flow, done = SourceEdit(code), ValueFlow(code), set[ast.AST]()
    for node in walk(code.tree):
        if not isinstance(node, ast.expr) or node in done:
            continue
        new = _running(edit, flow, node) or _listed(edit, node, generators)
        if new is None:
            made = _mapped(edit, node)
            new = None if made is None else ast.GeneratorExp(*made)
        if new is not None:
            done.update(walk(node))
            edit.replace(node, ast.unparse(ast.fix_missing_locations(new)))
    return edit.source()


def _listed(
    edit: SourceEdit, node: ast.expr, generators: Container[str]
) -> ast.expr | None:
    """Read `list(...)` and `[*...]` of values that are computed one by one."""
    match node:
        case ast.Call(func=ast.Name(id="list"), args=[given], keywords=[]):
            pass
        case ast.List(elts=[ast.Starred(value=given)], ctx=ast.Load()):
            pass
        case _:
            return None
    match given:
        case ast.GeneratorExp(elt=value, generators=clauses):
            return ast.ListComp(value, clauses)
        case ast.Call(func=ast.Name(id=name)) if name in generators:
            item = edit.free_name("item")
            clause = _clause(ast.Name(item, ast.Store()), given)
            return ast.ListComp(ast.Name(item, ast.Load()), [clause])
    made = _mapped(edit, given)
    return None if made is None else ast.ListComp(*made)


def _mapped(
    edit: SourceEdit, node: ast.expr
) -> tuple[ast.expr, list[ast.comprehension]] | None:
    """Give what a call of `map` computes in each turn, and its turns."""
    match node:
        case ast.Call(
            func=ast.Name(id="map"), args=[function, *given], keywords=[]
        ) if given and not any(isinstance(one, ast.Starred) for one in given):
            pass
        case _:
            return None
    inner = _mapped(edit, given[0]) if len(given) == 1 else None
    if inner is not None:
        # of what another `map` gives
        values, clauses = [inner[0]], inner[1]
    else:
        names = [edit.free_name("item") for _ in given]
        values = [ast.Name(name, ast.Load()) for name in names]
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        if len(given) == 1:
            clauses = [_clause(targets[0], given[0])]
        else:
            every = ast.Call(ast.Name("zip", ast.Load()), given, [])
            clauses = [_clause(ast.Tuple(targets, ast.Store()), every)]
    value = _called(function, values)
    return None if value is None else (value, clauses)


def _clause(target: ast.expr, over: ast.expr) -> ast.comprehension:
    return ast.comprehension(target, over, [], 0)


def _called(function: ast.expr, values: list[ast.expr]) -> ast.expr | None:
    """Write a call of what may be a lambda; None where its result may be another's."""
    match function:
        case ast.Lambda(
            args=ast.arguments(
                posonlyargs=[],
                args=names,
                vararg=None,
                kwonlyargs=[],
                kwarg=None,
                defaults=[],
            ),
            body=body,
        ) if len(names) == len(values):
            by = {one.arg: value for one, value in zip(names, values, strict=True)}
            # values that are computed are so once, and names are not of something else
            is_plain = all(isinstance(one, ast.Name | ast.Subscript) for one in values)
            if not is_plain or any(isinstance(one, _SCOPES) for one in walk(body)):
                return None
            new = ast.Expr(copy.deepcopy(body))
            replacing(
                new, lambda one: by.get(one.id) if isinstance(one, ast.Name) else None
            )
            return new.value
        case ast.Name():
            pass
        case ast.Attribute(value=ast.Name() | ast.Attribute()):
            pass
        case _:
            return None
    return ast.Call(function, values, [])


def _running(edit: SourceEdit, flow: ValueFlow, node: ast.expr) -> ast.expr | None:
    """Write `list(accumulate(...))` as a loop before its statement, and its list."""
    match node:
        case (
            ast.Call(func=ast.Name(id="list"), args=[ast.Call() as call], keywords=[])
            | ast.List(elts=[ast.Starred(value=ast.Call() as call)], ctx=ast.Load())
        ) if last_name(call.func) == "accumulate":
            pass
        case _:
            return None
    match call:
        case ast.Call(args=[over, function], keywords=[]):
            pass
        case ast.Call(args=[over], keywords=[ast.keyword(arg="func", value=function)]):
            pass
        case ast.Call(args=[over], keywords=[]):
            function = ast.parse("lambda one, other: one + other", mode="eval").body
        case _:
            return None
    statement = statement_of(flow, node)
    rows, made, row, last = map(edit.free_name, ("rows", "made", "row", "last"))
    new = _called(function, [ast.Name(one, ast.Load()) for one in (last, row)])
    if statement is None or new is None:
        return None
    edit.before(
        statement,
        f"{rows} = tuple({ast.unparse(over)})\n"
        f"{rows} = {edit.torch}.stack({rows}) if {rows} else {rows}\n"
        f"{made} = [*{rows}[:1]]\n"
        f"{last} = {made}[0] if {made} else None\n"
        f"for {row} in {rows}[1:]:\n"
        f"    {last} = {ast.unparse(new)}\n    {made}.append({last})",
    )
    return ast.Name(made, ast.Load())

"""Comprehensions as loops that fill a list or a dictionary."""

from __future__ import annotations

import ast
from collections.abc import Callable

from warpbook_profiler.advice.code.cell_code import CellCode, stored_names, walk
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.rewriting.turns import LAZY, rewritten, statement_of

#: they have names of their own, which a loop's turns would set
_HIDDEN = (*LAZY, ast.NamedExpr)
#: functions of Python that take all values of a generator at once
_TAKES_ALL = frozenset("tuple list set sum sorted".split())


def with_loops(code: CellCode, is_wanted: Callable[[ast.AST], bool]) -> str:
    """Write comprehensions, one of whose parts is wanted, as loops; may be empty."""
    edit, flow = SourceEdit(code), ValueFlow(code)
    for node in walk(code.tree):
        match node:
            case ast.ListComp() | ast.DictComp():
                made, whole = node, "{}"
            case ast.Call(
                func=ast.Name(id=name), args=[ast.GeneratorExp() as made], keywords=[]
            ) if name in _TAKES_ALL:
                whole = f"{name}({{}})"
            case _:
                continue
        statement = statement_of(flow, node)
        if statement is not None and any(map(is_wanted, walk(node))):
            every = edit.free_name("made")
            if loop := _filling(edit, made, every):
                edit.before(statement, loop)
                edit.replace(node, whole.format(every))
    return edit.source()


def _filling(
    edit: SourceEdit, made: ast.ListComp | ast.GeneratorExp | ast.DictComp, every: str
) -> str:
    """Write a loop that fills what is made, whose turns set names of their own."""
    (turns, *others) = made.generators
    keys = [made.key, made.value] if isinstance(made, ast.DictComp) else [made.elt]
    parts = [turns.target, *keys, *turns.ifs]
    inside = (one for part in parts for one in walk(part))
    if others or len(turns.ifs) > 1 or turns.is_async:
        return ""
    if any(isinstance(one, _HIDDEN) for one in inside):
        return ""
    own = stored_names(turns.target)
    names = {name: edit.free_name(f"{name}_of_turn") for name in own}

    def renamed(node: ast.expr) -> ast.expr | None:
        if isinstance(node, ast.Name) and node.id in names:
            return ast.Name(names[node.id], node.ctx)
        return None

    target, *values = (rewritten(ast.Expr(one), renamed) for one in parts)
    if isinstance(made, ast.DictComp):
        begun, (key, value, *tests) = "{}", values
        body = f"{every}[{key}] = {value}"
    else:
        begun, (value, *tests) = "[]", values
        body = f"{every}.append({value})"
    body = f"if {tests[0]}:\n        {body}" if tests else body
    over = ast.unparse(turns.iter)
    return f"{every} = {begun}\nfor {target} in {over}:\n    {body}"

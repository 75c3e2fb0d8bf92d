"""Statements in the forms that rewrites read: one name set by one expression.

`a, b = x[i], y[i]` is two statements, and what a turn takes of the turn before it, as
`sums[-1]` or `out[t - 1]`, has a name that is carried from turn to turn.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import CellCode, stored_names, walk
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.rewriting.turns import (
    loaded,
    rewritten,
    values_of,
    whole_loops,
)


def plain(code: CellCode) -> tuple[CellCode, dict[str, str]]:
    """Write a cell in these forms; not known where it is in them already.

    Its loops are the same. Beside it is, by each new name, what stores such values.
    """
    edit = SourceEdit(code)
    is_changed = any([_divided(edit, one) for one in walk(code.tree)])
    one = CellCode(edit.source()) if is_changed else code
    is_changed &= bool(one.source)
    for loop in whole_loops(one.tree):
        edit = SourceEdit(one)
        carried = isinstance(loop, ast.For) and _carried(edit, loop, one.tree)
        if carried:
            return CellCode(edit.source() or None), carried
    return CellCode(one.source if is_changed else None), {}


def _divided(edit: SourceEdit, node: ast.AST) -> bool:
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            pass
        case _:
            return False
    are_names = all(isinstance(one, ast.Name) for one in names)
    if not are_names or len(names) != len(values) or stored_names(node) & loaded(node):
        return False
    if any(isinstance(one, ast.Starred) for one in values):
        return False
    *lines, last = (
        f"{ast.unparse(name)} = {ast.unparse(value)}"
        for name, value in zip(names, values, strict=True)
    )
    edit.before(node, "\n".join(lines))
    edit.replace(node, last)
    return True


class _Stored(NamedTuple):
    """The statement of a turn that stores its result."""

    statement: ast.stmt
    value: ast.expr
    #: what holds the results of all turns
    name: str
    #: the result of the turn before, and of the one before the first
    before: str
    begin: str
    #: what is before and behind the name of what is stored
    stores: tuple[str, str]


def _carried(edit: SourceEdit, loop: ast.For, tree: ast.Module) -> dict[str, str]:
    """Give what the turn before has stored a name, if turns take no other results."""
    every = [part for one in loop.body for part in walk(one)]
    for one in filter(None, (_stored(it, loop, tree) for it in loop.body)):
        mine = [
            part
            for part in every
            if isinstance(part, ast.expr) and ast.unparse(part) == one.before
        ]
        own = [part for part in every if _is_name(part, one.name)]
        kept = [part for part in walk(one.statement) if _is_name(part, one.name)]
        at = loop.body.index(one.statement)
        later = [part for it in loop.body[at + 1 :] for part in walk(it)]
        inside = {*walk(one.value)}
        of_value = [part for part in mine if part in inside]
        # the name in what stores, in what is taken, and nowhere else
        others = len(own) - len(mine) - (len(kept) - len(of_value))
        if not mine or others or any(_is_name(part, one.name) for part in later):
            continue
        name = edit.free_name(f"last_{one.name}")
        edit.before(loop, f"{name} = {one.begin}")

        def instead(
            node: ast.expr, before: str = one.before, name: str = name
        ) -> ast.expr | None:
            is_it = ast.unparse(node) == before
            return ast.Name(name, ast.Load()) if is_it else None

        for part in mine:
            if part not in inside:
                edit.replace(part, name)
        text = rewritten(ast.Expr(one.value), instead)
        edit.before(one.statement, f"{name} = {text}")
        edit.replace(one.statement, name.join(one.stores))
        return {name: one.name}
    return {}


def _stored(statement: ast.stmt, loop: ast.For, tree: ast.Module) -> _Stored | None:
    """Read a statement as one that stores the result of a turn; None if it is none."""
    match statement:
        case ast.Expr(
            ast.Call(
                func=ast.Attribute(attr="append", value=ast.Name(id=name)), args=[value]
            )
        ) if any(
            isinstance(one, ast.List) and one.elts for one in values_of(tree)[name]
        ):
            # it has a first one
            last, stores = f"{name}[-1]", (f"{name}.append(", ")")
            return _Stored(statement, value, name, last, last, stores)
        case ast.Assign(
            targets=[ast.Subscript(value=ast.Name(id=name), slice=place) as target],
            value=value,
        ):
            pass
        case ast.AugAssign(
            target=ast.Subscript(value=ast.Name(id=name), slice=place) as target,
            op=op,
            value=more,
        ):
            own = ast.Subscript(target.value, place, ast.Load())
            value = ast.BinOp(own, op, more)
        case _:
            return None
    before, begin = _earlier(place, loop), _earlier(place, loop, is_first=True)
    if not before or not begin:
        return None
    stores = f"{ast.unparse(target)} = ", ""
    before, begin = (f"{name}[{one}]" for one in (before, begin))
    return _Stored(statement, value, name, before, begin, stores)


def _earlier(place: ast.expr, loop: ast.For, is_first: bool = False) -> str:
    """Write the place of the turn before, or that of the one before the first."""
    match loop.target, loop.iter:
        case ast.Name(id=count), ast.Call(func=ast.Name(id="range"), args=[_]):
            start = 0
        case (
            ast.Name(id=count),
            ast.Call(
                func=ast.Name(id="range"), args=[ast.Constant(value=int() as start), _]
            ),
        ):
            pass
        case _:
            return ""
    *axes, last = place.elts if isinstance(place, ast.Tuple) else [place]
    match last:
        case ast.Name(id=name) if name == count:
            by = -1
        case ast.BinOp(
            left=ast.Name(id=name), op=ast.Add(), right=ast.Constant(value=int() as add)
        ) if name == count:
            by = add - 1
        case _:
            return ""
    if any(ast.unparse(one) != ":" for one in axes) or start + by < 0:
        return ""
    at = f"{count} {'-' if by < 0 else '+'} {abs(by)}" if by else count
    return ", ".join([*(":" for _ in axes), str(start + by) if is_first else at])


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name

"""Loops of a cell's source that go through a tensor row by row.

A loop in which one turn needs what the turn before it gave is none of them, unless it
is a scan, and neither is one that trains.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.cell_code import CellCode, written

_TRAINS = frozenset("backward step zero_grad".split())
#: calls whose arguments are still gone through in order
_IN_ORDER = frozenset("enumerate zip reversed unbind".split())
_SCANS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("cumsum", "+"),
    ast.Mult: ("cumprod", "*"),
}
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp)


class RowLoop(NamedTuple):
    """A loop each turn of which takes a row."""

    line: int
    last_line: int
    #: what is gone through, "x"
    rows: str
    node: ast.For | ast.ListComp | ast.GeneratorExp


def row_loops(code: CellCode) -> Iterator[RowLoop]:
    """Find them in the order of the source."""
    for node in ast.walk(code.tree):
        if isinstance(node, ast.For):
            scan = scan_of(node)
            if scan is not None:
                yield RowLoop(node.lineno, node.end_lineno or 0, scan.rows, node)
            elif not _is_carried(node) and not _trains_or_ends(node):
                yield from _loop(node, node.target, node.iter, node.body)
        elif isinstance(node, _COMPREHENSIONS) and len(node.generators) == 1:
            made = node.generators[0]
            yield from _loop(node, made.target, made.iter, [node.elt])


def _loop(
    node: ast.For | ast.ListComp | ast.GeneratorExp,
    target: ast.expr,
    source: ast.expr,
    body: list[ast.stmt] | list[ast.expr],
) -> Iterator[RowLoop]:
    names = {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
    taken = _indexed(body, names) or _run_through(target, source)
    if taken is None:
        return
    yield RowLoop(node.lineno, node.end_lineno or node.lineno, taken[0], node)


class Scan(NamedTuple):
    """`acc = acc + x[i]; out[i] = acc`, and the like."""

    carried: str
    #: "x"
    rows: str
    out: ast.expr
    #: "cumsum", and what it is joined with the first value by
    function: str
    operator: str
    #: the carried value is another one after each turn
    is_new: bool


def scan_of(loop: ast.For) -> Scan | None:
    """Return what a loop adds up, if that is all it does."""
    names = {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
    match loop.body:
        case [
            ast.Assign(
                targets=[ast.Name(id=carried)],
                value=ast.BinOp(left=one, op=operation, right=other),
            ),
            ast.Assign(
                targets=[ast.Subscript(value=out, slice=ast.Name(id=place))],
                value=ast.Name(id=kept),
            ),
        ] if place in names and kept == carried:
            row = other if _is_named(one, carried) else one
            is_carried = _is_named(one, carried) or _is_named(other, carried)
        case [
            ast.AugAssign(target=ast.Name(id=carried), op=operation, value=row),
            ast.Assign(
                targets=[ast.Subscript(value=out, slice=ast.Name(id=place))],
                value=ast.Name(id=kept),
            ),
        ] if place in names and kept == carried:
            is_carried = True
        case _:
            return None
    statements: list[ast.stmt] = [ast.Expr(row)]
    taken = _indexed(statements, names)
    function, operator = _SCANS.get(type(operation), ("", ""))
    if not is_carried or taken is None or not function or taken[1] != written(row):
        return None
    is_new = isinstance(loop.body[0], ast.Assign)
    return Scan(carried, taken[0], out, function, operator, is_new)


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _indexed(
    body: list[ast.stmt] | list[ast.expr], names: set[str]
) -> tuple[str, str] | None:
    """Find `x[i]`, `x[i, …]` or `x[i:i+1]` that is read."""
    for statement in body:
        for part in ast.walk(statement):
            if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load):
                index = part.slice
                places = index.elts if isinstance(index, ast.Tuple) else [index]
                if any(_is_one(place, names) for place in places):
                    return written(part.value), written(part)
    return None


def _is_one(place: ast.expr, names: set[str]) -> bool:
    if isinstance(place, ast.Name):
        return place.id in names
    if not isinstance(place, ast.Slice) or not isinstance(place.lower, ast.Name):
        return False
    lower, upper = place.lower.id, place.upper
    return (
        lower in names
        and upper is not None
        and ast.unparse(upper).replace(" ", "") in (f"{lower}+1", f"1+{lower}")
    )


def _run_through(target: ast.expr, source: ast.expr) -> tuple[str, str] | None:
    """Find what `for row in x` goes through."""
    while isinstance(source, ast.Call):
        function = source.func
        name = function.attr if isinstance(function, ast.Attribute) else ""
        if isinstance(function, ast.Name):
            name = function.id
        if name not in _IN_ORDER:
            return None
        inner = source.args[0] if source.args else None
        if name == "unbind" and isinstance(function, ast.Attribute):
            inner = function.value
        if inner is None:
            return None
        source = inner
    if not isinstance(source, ast.Name | ast.Attribute | ast.Subscript):
        return None
    return written(source), written(target)


def _is_carried(loop: ast.For) -> bool:
    """Tell whether a turn may need what an earlier one gave."""
    given = {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
    known, stored, read_first = set(given), set(), set()
    for statement in loop.body:
        parts = list(ast.walk(statement))
        read = {
            part.id
            for part in parts
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
        }
        kept = {
            name.id
            for part in parts
            if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store)
            for name in [part.value]
            if isinstance(name, ast.Name)
        }
        read_in_place = {
            name.id
            for part in parts
            if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load)
            for name in [part.value]
            if isinstance(name, ast.Name)
        }
        if kept & read_in_place:
            return True
        read_first |= read - known
        if not isinstance(statement, ast.AugAssign):
            now = {
                part.id
                for part in parts
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
            }
            stored |= now - given
            known |= now
    return bool(stored & read_first)


def _trains_or_ends(loop: ast.For) -> bool:
    return any(
        isinstance(part, ast.Break | ast.While)
        or (
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Attribute)
            and part.func.attr in _TRAINS
        )
        for part in ast.walk(loop)
    )

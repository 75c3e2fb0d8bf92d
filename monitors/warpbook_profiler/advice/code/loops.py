"""Loops of a cell's source that go through a tensor row by row.

A loop in which one turn needs what the turn before it gave is none of them, and neither
is one that trains.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import (
    CellCode,
    stored_names,
    walk,
    written,
)

_TRAINS = frozenset("backward step zero_grad".split())
#: calls whose arguments are still gone through in order
_IN_ORDER = frozenset("enumerate zip reversed unbind".split())
#: of mappings, which give their values
_OF_MAPPINGS = frozenset("items values".split())
_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp)


class RowLoop(NamedTuple):
    """A loop each turn of which takes a row."""

    line: int
    last_line: int
    #: what is gone through, "x"
    rows: str
    #: a `while` is one over a range, without what counts in it
    node: ast.For | ast.ListComp | ast.GeneratorExp
    is_counted: bool = False


def row_loops(code: CellCode) -> Iterator[RowLoop]:
    """Find them in the order of the source."""
    for node in walk(code.tree):
        if isinstance(node, ast.For):
            if not _is_carried(node) and not _trains_or_ends(node):
                yield from _loop(node, node.target, node.iter, node.body)
        elif isinstance(node, ast.While) and (loop := counted(node)) is not None:
            if not _is_carried(loop) and not _trains_or_ends(loop):
                for one in _loop(loop, loop.target, loop.iter, loop.body):
                    yield one._replace(is_counted=True)
        elif isinstance(node, _COMPREHENSIONS) and len(node.generators) == 1:
            made = node.generators[0]
            yield from _loop(node, made.target, made.iter, [node.elt])


def counted(node: ast.While) -> ast.For | None:
    """Read `while i < n: …; i += 1` as a loop over a range; None for any other."""
    match node.test, node.body[-1]:
        case (
            ast.Compare(
                left=ast.Name(id=name), ops=[ast.Lt() | ast.NotEq()], comparators=[end]
            ),
            ast.AugAssign(
                target=ast.Name(id=counter),
                op=ast.Add(),
                value=ast.Constant(value=1),
            ),
        ) if name == counter:
            body = node.body[:-1]
        case _:
            return None
    stored = stored_names(ast.Module(body, []))
    read = {part.id for part in walk(end) if isinstance(part, ast.Name)}
    if name in stored or stored & read:
        return None
    over = ast.parse(f"range({name}, {ast.unparse(end)})", mode="eval").body
    made = ast.For(ast.Name(name, ast.Store()), over, body or [ast.Pass()], [])
    return ast.copy_location(made, node)


def _loop(
    node: ast.For | ast.ListComp | ast.GeneratorExp,
    target: ast.expr,
    source: ast.expr,
    body: list[ast.stmt] | list[ast.expr],
) -> Iterator[RowLoop]:
    names = {part.id for part in walk(target) if isinstance(part, ast.Name)}
    taken = _indexed(body, names) or _run_through(source)
    if taken is None:
        return
    yield RowLoop(node.lineno, node.end_lineno or node.lineno, taken, node)


def _indexed(body: list[ast.stmt] | list[ast.expr], names: set[str]) -> str | None:
    """Find `x[i]`, `x[i, …]` or `x[i:i+1]` that is read."""
    for statement in body:
        for part in walk(statement):
            if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Load):
                index = part.slice
                places = index.elts if isinstance(index, ast.Tuple) else [index]
                if any(_is_one(place, names) for place in places):
                    return written(part.value)
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


def _run_through(source: ast.expr) -> str | None:
    """Find what `for row in x` goes through."""
    while isinstance(source, ast.Call):
        function = source.func
        name = function.attr if isinstance(function, ast.Attribute) else ""
        if isinstance(function, ast.Attribute) and name in _OF_MAPPINGS:
            source = function.value
            continue
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
    return written(source)


def _is_carried(loop: ast.For) -> bool:
    """Tell whether a turn may need what an earlier one gave."""
    given = {part.id for part in walk(loop.target) if isinstance(part, ast.Name)}
    known, stored, read_first = set(given), set(), set()
    for statement in loop.body:
        parts = list(walk(statement))
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
        for part in walk(loop)
    )


def range_end(node: ast.expr) -> str:
    """Return the end of `range(n)`; "" for any other."""
    match node:
        case ast.Call(
            func=ast.Name(id="range"), args=[ast.Name() | ast.Constant() as end]
        ):
            return ast.unparse(end)
        case ast.Call(
            func=ast.Name(id="range"),
            args=[ast.Call(func=ast.Name(id="len"), args=[ast.Name()]) as end],
        ):
            return ast.unparse(end)
    return ""

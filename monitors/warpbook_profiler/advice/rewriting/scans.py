"""Loops in which turns need one another only by a running sum, product or extreme."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import CellCode, walk
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import BINARY
from warpbook_profiler.advice.rewriting.plain_forms import plain
from warpbook_profiler.advice.rewriting.turns import (
    LAZY,
    Turns,
    UnsureError,
    loaded,
    loops_of,
    rewritten,
    whole_loops,
)


class Scan(NamedTuple):
    """What torch calls the results of joining values one after the other."""

    #: all of them, the last one
    running: str
    last: str
    #: Python's, if it has one
    sign: str = ""
    #: torch gives the places of all results, too
    has_indices: bool = False


#: by what joins two values
SCANS = {
    "add": Scan("cumsum", "sum", "+"),
    "mul": Scan("cumprod", "prod", "*"),
    "maximum": Scan("cummax", "amax", has_indices=True),
    "minimum": Scan("cummin", "amin", has_indices=True),
    "logaddexp": Scan("logcumsumexp", "logsumexp"),
}
#: of parts of a tensor: its second axis as its first, and back
_BY_COLUMN = ".transpose(0, 1)"


class Running(NamedTuple):
    """A loop of running values, and the cell without it."""

    #: of the cell as it is
    loop: ast.For | ast.While
    #: of running values that turns read, or what keeps them
    names: tuple[str, ...]
    #: torch's function, "cummax"
    function: str
    code: str


def running(code: CellCode) -> Iterator[Running]:
    """Find loops over rows that operations over all rows, and scans, stand for."""
    loops = [*whole_loops(code.tree)]
    for one, stored in ((code, dict[str, str]()), plain(code)):
        places: list[ast.stmt] = [*whole_loops(one.tree)]
        for turns in loops_of(one.tree):
            scan = _Scan(one, turns)
            try:
                text = scan.written()
            except UnsureError:
                continue
            if text:
                names = tuple(stored.get(name, name) for name in scan.scanned)
                (function, *_) = scan.scanned.values()
                yield Running(loops[places.index(turns.node)], names, function, text)


def scans(code: CellCode) -> Iterator[str]:
    """Write loops over rows as operations over all rows, with scans between them."""
    return (one.code for one in running(code))


class _Scan:
    def __init__(self, code: CellCode, turns: Turns) -> None:
        self._turns, self._edit = turns, SourceEdit(code)
        #: of all turns: by the text of what one turn has
        self._every: dict[str, str] = {}
        self._lines: list[str] = []
        #: by name, what it is after the last turn
        self._last: dict[str, str] = {}
        #: by each running value that is kept, torch's function
        self.scanned: dict[str, str] = {}
        self._stored = turns.changed - _own_rows(turns)
        #: what has its rows of all turns by now
        self._filled = set[str]()

    def written(self) -> str:
        turns, edit = self._turns, self._edit
        carried = turns.carried
        if not carried or not all(
            isinstance(one, ast.Assign | ast.AugAssign | ast.Expr) for one in turns.body
        ):
            return ""
        for at, statement in enumerate(turns.body):
            update = _update(statement, carried)
            others = [one for place, one in enumerate(turns.body) if place != at]
            match statement:
                case _ if update is not None:
                    self._joined(*update, others, turns.body[:at])
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
                    name not in carried
                ):
                    every = edit.free_name(f"every_{name}")
                    self._lines.append(f"{every} = {self._of_all(value)}")
                    self._every[name] = every
                    self._last[name] = f"{every}[-1]"
                case ast.Assign(
                    targets=[ast.Subscript(value=ast.Name() as out, slice=place)],
                    value=value,
                ) if turns.cut and loaded(place) & turns.given:
                    text, into = self._of_all(value), self._rows(out.id, place)
                    self._filled.add(out.id)
                    if not into.startswith(f"{out.id}["):
                        raise UnsureError
                    if into.endswith(_BY_COLUMN):
                        text = f"({text}){_BY_COLUMN}"
                    self._lines.append(f"{into.removesuffix(_BY_COLUMN)} = {text}")
                case ast.Expr(
                    ast.Call(
                        func=ast.Attribute(attr="append", value=ast.Name(id=kept)),
                        args=[value],
                    )
                ):
                    text = self._of_all(value)
                    self._lines.append(f"{kept}.extend(({text}).unbind(0))")
                    if isinstance(value, ast.Name) and value.id in self._last:
                        # the list ends with what the name is then
                        self._last[value.id] = f"{kept}[-1]"
                case _:
                    return ""
        if not self.scanned:
            # sums alone are no scan
            return ""
        last = (f"{name} = {value}" for name, value in self._last.items())
        lines = [*self._lines, *last]
        if not turns.after:
            lines.append(self._end())
        # without a turn nothing is set, and there is no last row
        lines = [f"if {turns.how_many}:", *(f"    {line}" for line in lines)]
        lines += filter(None, [turns.after])
        edit.before(turns.node, "\n".join(lines))
        edit.delete(turns.node)
        return edit.source()

    def _joined(
        self,
        name: str,
        kind: str,
        value: ast.expr,
        others: list[ast.stmt],
        before: list[ast.stmt],
    ) -> None:
        """Write a running value; where no turn reads it, only the last one."""
        if any(name in loaded(one) for one in before):
            raise UnsureError
        scan, torch = SCANS[kind], self._edit.torch
        every = self._of_all(value)
        is_read = any(name in loaded(one) for one in others)
        if is_read:
            joined = f"{torch}.{scan.running}({every}, 0)"
            joined += ".values" * scan.has_indices
        else:
            joined = f"({every}).{scan.last}(0)"
        text = f"{torch}.{kind}({name}, {joined})"
        if scan.sign:
            text = f"{name} {scan.sign} {joined}"
        if not is_read:
            self._lines.append(f"{name} = {text}")
            return
        self.scanned[name] = scan.running
        kept = self._edit.free_name(f"every_{name}")
        self._lines.append(f"{kept} = {text}")
        self._every[name] = kept
        self._last[name] = f"{kept}[-1]"

    def _of_all(self, value: ast.expr) -> str:
        """Write what a turn computes for all turns."""
        given: dict[str, str] = {}
        edit, names, rows_of = self._edit, self._turns.given, self._turns.rows

        def row(text: str, every: str) -> ast.Name:
            stem = text if text.isidentifier() else "row"
            name = next((one for one, of in given.items() if of == every), "")
            if not name:
                name = edit.free_name(f"{stem}_of_turn")
                given[name] = every
            return ast.Name(name, ast.Load())

        def instead(node: ast.expr) -> ast.expr | None:
            if isinstance(node, LAZY) and loaded(node) & names:
                raise UnsureError
            match node:
                case ast.Name(id=name) if name in self._every:
                    return row(name, self._every[name])
                case ast.Subscript(value=ast.Name(id=rows), slice=place) if (
                    loaded(place) & names
                    and self._turns.cut
                    and rows not in self._stored | self._filled
                ):
                    return row("row", self._rows(rows, place))
                case ast.Name(id=name) if name in names:
                    if name not in rows_of or self._stored & loaded(
                        ast.parse(rows_of[name])
                    ):
                        raise UnsureError
                    return row(name, rows_of[name])
                case ast.Name(id=name) if name in self._stored:
                    raise UnsureError
            return None

        text = rewritten(ast.Expr(value), instead)
        if not given:
            raise UnsureError
        if text in given:
            return given[text]
        function = f"lambda {', '.join(given)}: {text}"
        return f"{edit.torch}.vmap({function})({', '.join(given.values())})"

    def _rows(self, rows: str, place: ast.expr) -> str:
        """Write the rows that all turns take, `x[1:n]` of `x[i]`."""
        match place:
            case ast.Tuple(elts=[ast.Slice(None, None, None), column]):
                cut = self._cut(column)
                if not cut:
                    raise UnsureError
                return f"{rows}[:, {cut}]{_BY_COLUMN}"
            case ast.BinOp() if not self._cut(place):
                # some are the last ones
                torch, over = self._edit.torch, ast.unparse(self._turns.iter)
                row = f"{rows}[{ast.unparse(place)}]"
                target = ast.unparse(self._turns.target)
                return f"{torch}.stack([{row} for {target} in {over}])"
        return f"{rows}[{self._cut(place)}]"

    def _cut(self, place: ast.expr) -> str:
        """Write the places of all turns, `1:n` of `i`; empty where some are negative.

        Raises:
            UnsureError: they do not follow one another.
        """
        target, (start, end) = ast.unparse(self._turns.target), self._turns.limits
        match place:
            case ast.Name(id=name) if name == target:
                return f"{start}:{end}"
            case ast.BinOp(
                left=ast.Name(id=name),
                op=ast.Add() | ast.Sub() as op,
                right=ast.Constant(value=int() as by),
            ) if name == target:
                sign = "+" if isinstance(op, ast.Add) else "-"
                is_negative = (self._turns.least or 0) + int(f"{sign}{by}") < 0
                between = f"{start or 0} {sign} {by}:{end} {sign} {by}"
                return "" if is_negative else between
        raise UnsureError

    def _end(self) -> str:
        turns = self._turns
        last = [f"{rows}[-1]" for rows in turns.rows.values()]
        return (
            f"{ast.unparse(turns.target)} = "
            f"{', '.join(last) or f'{ast.unparse(turns.iter)}[-1]'}"
        )


def _own_rows(turns: Turns) -> set[str]:
    """Return the names of tensors of which turns read and write their own row alone."""
    own = ast.unparse(turns.target)
    places, names = dict[str, set[str]](), dict[str, int]()
    for part in (part for one in turns.body for part in walk(one)):
        match part:
            case ast.Subscript(value=ast.Name(id=name), slice=place):
                places.setdefault(name, set()).add(ast.unparse(place))
                names[name] = names.get(name, 0) - 1
            case ast.Name(id=name):
                names[name] = names.get(name, 0) + 1
    return {name for name, at in places.items() if at == {own} and not names[name]}


def _update(statement: ast.stmt, carried: set[str]) -> tuple[str, str, ast.expr] | None:
    """Return which name a turn joins with which value, and how."""
    match statement:
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
            kind, sides = BINARY.get(type(op), ""), [value]
        case ast.Assign(
            targets=[ast.Name(id=name)], value=ast.BinOp(left=left, op=op, right=right)
        ):
            kind, sides = BINARY.get(type(op), ""), [left, right]
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(
                func=ast.Attribute(attr=kind, value=module), args=[left, right]
            ),
        ) if ast.unparse(module) == "torch":
            sides = [left, right]
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(func=ast.Attribute(attr=kind, value=left), args=[right]),
        ):
            sides = [left, right]
        case _:
            return None
    values = [one for one in sides if ast.unparse(one) != name]
    if kind not in SCANS or name not in carried or len(values) != 1:
        return None
    is_own = name in loaded(values[0])
    return None if is_own else (name, kind, values[0])

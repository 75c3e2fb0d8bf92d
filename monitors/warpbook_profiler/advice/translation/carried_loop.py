"""A loop that carries products and sums through rows, written for all rows at once.

What a turn multiplies or adds to a carried value depends on its rows alone, so a scan
gives that value before each turn; what turns compute of it is then independent.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import (
    Block,
    CellCode,
    blocks,
    names_in,
    stored_names,
)
from warpbook_profiler.advice.code.read_code import uses
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import BINARY
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.rewriting.scans import SCANS, Running
from warpbook_profiler.advice.rewriting.turns import UnsureError
from warpbook_profiler.advice.translation.batched_loop import gives_rows
from warpbook_profiler.advice.translation.loop_rows import LoopRows

#: what makes a tensor of its own
_NEW = frozenset("zeros ones full clone rand randn tensor".split())


class _Update(NamedTuple):
    """`name = name + value` or `name = name * value`."""

    name: str
    operator: ast.operator
    value: ast.expr
    in_place: bool


def carried_loop(code: CellCode) -> Running | None:
    """Find the first such loop that can be written for all rows."""
    flow = ValueFlow(code)
    for block in blocks(code.tree):
        for statement in block.statements:
            if isinstance(statement, ast.For):
                try:
                    return _Carries(code, flow, block, statement).written()
                except UnsureError:
                    continue
    return None


class _Carries:
    def __init__(
        self, code: CellCode, flow: ValueFlow, block: Block, loop: ast.For
    ) -> None:
        self._block, self._loop = block, loop
        match loop:
            case ast.For(
                target=ast.Name(id=index),
                iter=ast.Call(func=ast.Name(id="range"), args=[end], keywords=[]),
                orelse=[],
            ):
                self._index, self._end = index, ast.unparse(end)
            case _:
                raise UnsureError
        self._stored = stored_names(loop)
        if names_in(end) & self._stored:
            raise UnsureError
        self._edit = SourceEdit(code)
        self._rows = LoopRows(self._edit, flow, self._index, self._end, self._stored)

    def written(self) -> Running:
        """Write the cell.

        Raises:
            UnsureError: a statement is not known to give the same.
        """
        body = self._loop.body
        carried = self._carried()
        updates = {
            name: update
            for one in body
            if (update := self._update(one)) is not None
            for name in [update.name]
            if name in carried
        }
        if updates.keys() != carried or not all(map(self._is_begun, updates.values())):
            raise UnsureError
        scans = [name for name in updates if self._is_read(name)]
        sums = [name for name in updates if name not in scans]
        if not scans or not sums:
            raise UnsureError
        if any(not isinstance(updates[name].operator, ast.Add) for name in sums):
            raise UnsureError
        temporary = self._temporary(carried, set(sums))
        edit, torch = self._edit, self._edit.torch
        of_row, of_turn = edit.free_name("of_row"), edit.free_name("of_turn")
        factors, turn = list[str](), list[str]()
        parts = {name: edit.free_name(f"{name}_part") for name in updates}
        for one in body:
            update = self._update(one)
            if update is None or update.name not in updates:
                (name,) = stored_names(one)
                line = ast.unparse(self._rows.of_row(one))
                turn.append(line)
                if name not in temporary:
                    factors.append(line)
                continue
            value = ast.unparse(self._rows.of_row(update.value))
            name = update.name
            if name in sums:
                turn.append(f"{parts[name]} = {value}")
                continue
            if names_in(update.value) & (temporary | carried):
                raise UnsureError
            factors.append(f"{parts[name]} = {value}")
            turn.append(ast.unparse(self._rows.of_row(one)))
        rows, axes, wholes = self._rows.names, self._rows.axes, self._rows.wholes
        if not rows:
            raise UnsureError
        all_factors = edit.free_name("factors")
        lines = [
            f"def {of_row}({', '.join(rows)}):",
            *(f"    {line}" for line in factors),
            f"    return {', '.join(parts[name] for name in scans)},",
            f"{all_factors} = {torch}.vmap({of_row}, in_dims={axes})"
            f"({', '.join(wholes)})",
        ]
        before, last = list[str](), list[str]()
        for at, name in enumerate(scans):
            function, _, sign, _ = SCANS[BINARY[type(updates[name].operator)]]
            begin = "ones_like" if sign == "*" else "zeros_like"
            after = edit.free_name(f"{name}_after")
            before.append(edit.free_name(f"{name}_before"))
            last.append(f"{name} = {after}[-1].clone()")
            lines += [
                f"{after} = {torch}.vmap(lambda one: {name} {sign} one)"
                f"({all_factors}[{at}].{function}(0))",
                f"{before[-1]} = {torch}.cat([{name} {sign} {torch}.{begin}"
                f"({after}[:1]), {after}[:-1]])",
            ]
        results = edit.free_name("results")
        turned = (*[0] * len(scans), *axes)
        lines += [
            f"def {of_turn}({', '.join([*scans, *rows])}):",
            *(f"    {line}" for line in turn),
            f"    return {', '.join(parts[name] for name in sums)},",
            f"{results} = {torch}.vmap({of_turn}, in_dims={turned})"
            f"({', '.join([*before, *wholes])})",
            *(
                f"{name} = {name} + {results}[{at}].sum(0)"
                for at, name in enumerate(sums)
            ),
            *last,
        ]
        function = SCANS[BINARY[type(updates[scans[0]].operator)]].running
        edit.before(self._loop, "\n".join(lines))
        edit.replace(self._loop, f"{self._index} = {self._end} - 1")
        source = edit.source()
        if not source:
            raise UnsureError
        return Running(self._loop, tuple(scans), function, source)

    def _carried(self) -> set[str]:
        """Give the names that a turn reads as the one before it left them."""
        known, carried = {self._index}, set[str]()
        for one in self._loop.body:
            match one:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    read = names_in(value)
                case ast.AugAssign(target=ast.Name(id=name), value=value):
                    read = {name, *names_in(value)}
                case _:
                    raise UnsureError
            if not gives_rows(value):
                raise UnsureError
            carried |= (read & self._stored) - known
            if name in known - {self._index}:
                # a name for several values
                raise UnsureError
            known.add(name)
        return carried

    def _update(self, statement: ast.stmt) -> _Update | None:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.BinOp(
                    left=left, op=ast.Add() | ast.Mult() as op, right=right
                ),
            ):
                for own, value in ((left, right), (right, left)):
                    if ast.unparse(own) == name and name not in names_in(value):
                        return _Update(name, op, value, in_place=False)
            case ast.AugAssign(
                target=ast.Name(id=name), op=ast.Add() | ast.Mult() as op, value=value
            ) if name not in names_in(value):
                return _Update(name, op, value, in_place=True)
        return None

    def _is_begun(self, update: _Update) -> bool:
        """Tell whether a value begins as one of its own, if it is changed in place."""
        if not update.in_place:
            return True
        statements = self._block.statements
        before = statements[: statements.index(self._loop)]
        values = [
            value
            for one in before
            if isinstance(one, ast.Assign)
            for target, value in _pairs(one.targets[0], one.value)
            if ast.unparse(target) == update.name
        ]
        # and no other name may hold it
        is_alone = sum(uses(one, update.name) for one in before) == len(values)
        return is_alone and bool(values) and _is_new(values[-1])

    def _is_read(self, name: str) -> bool:
        """Tell whether a turn reads a carried value beside its update."""
        return any(
            name in names_in(update.value if update is not None else one)
            for one in self._loop.body
            for update in [self._update(one)]
            if update is None or update.name != name
        )

    def _temporary(self, carried: set[str], sums: set[str]) -> set[str]:
        """Give the names whose values depend on what is carried."""
        depend = set[str]()
        for one in self._loop.body:
            (name,) = stored_names(one)
            if name in carried:
                continue
            read = names_in(one) - {name}
            if read & sums:
                raise UnsureError
            if read & (carried | depend):
                depend.add(name)
        return depend


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


def _is_new(value: ast.expr) -> bool:
    """Tell whether nothing else has the memory of a value."""
    match value:
        case ast.Constant():
            return True
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name.removeprefix("new_").removesuffix("_like") in _NEW
    return False

"""A loop over lists of tensors, as the same arithmetic on the lists.

Names that a turn sets are lists of all turns. Numbers stay numbers. What torch has no
function on lists for stays a loop of its own, in the order of the source. Lists that
are made by a clause, appended to or summed up are made at once.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import CellCode, NameOrder, stored_names
from warpbook_profiler.advice.code.each_turn import Each, each, each_of, is_plain
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.rewriting.turns import (
    UnsureError,
    counters,
    loaded,
    statement_of,
)
from warpbook_profiler.advice.translation.list_values import (
    IN_PLACE_OPERATORS,
    METHODS,
    ListValue,
    ListValues,
)


class _Written(NamedTuple):
    """A loop or a clause, and what stands before it and in its place."""

    statement: ast.stmt
    node: ast.stmt | ast.expr
    before: str
    instead: str
    #: it changes tensors, or what holds them
    is_update: bool


_Loop = ast.For | ast.ListComp | ast.GeneratorExp | ast.DictComp


def foreach(code: CellCode) -> Iterator[str]:
    """Write loops over tensors that only compute with each as calls on lists.

    First all of them are written so, then each alone.
    """
    loops = [node for node, _ in _written(code)]
    if len(loops) > 1:
        yield _edited(code, loops)
    for node in loops:
        yield _edited(code, [node])


def updating_loops(code: CellCode) -> Iterator[ast.AST]:
    """Give the loops over tensors that one call on lists may update."""
    return (node for node, one in _written(code) if one.is_update)


def _written(code: CellCode) -> Iterator[tuple[_Loop, _Written]]:
    """Give the loops, none of which is within another one."""
    flow, inside = ValueFlow(code), set[ast.AST]()
    for node in ast.walk(code.tree):
        if isinstance(node, _Loop) and node not in inside:
            one = _of(SourceEdit(code), flow, node)
            if one is not None:
                inside |= {*ast.walk(one.node)}
                yield node, one


def _edited(code: CellCode, loops: list[_Loop]) -> str:
    edit, flow = SourceEdit(code), ValueFlow(code)
    for node in loops:
        one = _of(edit, flow, node)
        if one is not None:
            edit.before(one.statement, one.before)
            edit.replace(one.node, one.instead)
    return edit.source()


def _of(edit: SourceEdit, flow: ValueFlow, node: _Loop) -> _Written | None:
    try:
        if isinstance(node, ast.For):
            turn = each(edit, node)
            return None if turn is None else _Lists(edit, node, turn).of_loop(node)
        clause, *others = node.generators
        statement = statement_of(flow, node)
        if others or clause.is_async or statement is None:
            return None
        lists = _Lists(edit, clause, each_of(edit, clause))
        return lists.of_clause(statement, node, flow.parent(node))
    except UnsureError:
        return None


class _Lists(ListValues):
    def __init__(
        self, edit: SourceEdit, loop: ast.For | ast.comprehension, turn: Each
    ) -> None:
        super().__init__(edit, counters(loop.target, loop.iter))
        self._turn = turn
        parts = [one for statement in turn.body for one in ast.walk(statement)]
        self._parts = [one for one in parts if isinstance(one, ast.expr)]
        self._reads = Counter(one.id for one in parts if isinstance(one, ast.Name))
        #: what the loop goes over, and parts of that
        self._over = {*map(ast.unparse, ast.walk(loop.iter))}
        turns = edit.free_name("turns")
        target = ast.unparse(loop.target)
        given = target.strip("()") if isinstance(loop.target, ast.Tuple) else target
        every = turn.gives(f"({given})")
        if not turn.tests:
            every = f"list({edit.text(loop.iter)})"
        self._first = f"{turns} = {every}"
        self._turns, self._target = turns, target
        # of each name a list
        for name in sorted(turn.names):
            every = edit.free_name(f"every_{name}")
            self.lines.append(f"{every} = [{name} for {target} in {turns}]")
            self.every[name] = every

    def of_loop(self, loop: ast.For) -> _Written | None:
        """Write a loop.

        Raises:
            UnsureError: one turn's may need what another's did, or it is not known.
        """
        turn, turns, target = self._turn, self._turns, self._target
        body = ast.Module(turn.body, [])
        carried = (NameOrder(body).read_first & stored_names(body)) - turn.names
        if carried - {name for one in turn.body if (name := self._summed(one))}:
            # a turn needs the one before it
            return None
        for statement in turn.body:
            self._take(statement)
        if not self.calls:
            return None
        kept = (stored_names(body) - turn.names) & {*self.every}
        lines = [f"{name} = {self.every[name]}[-1]" for name in sorted(kept)]
        # what a loop leaves out is among what it gives, too
        over = self._edit.text(loop.iter) if turn.tests else f"{turns}[-1:]"
        lines = [self._first, f"if {turns}:", *_indented([*self.lines, *lines])]
        last = f"for {target} in {over}: pass"
        return _Written(loop, loop, "\n".join(lines), last, self.is_update)

    def of_clause(
        self,
        statement: ast.stmt,
        node: ast.ListComp | ast.GeneratorExp | ast.DictComp,
        above: ast.AST | None,
    ) -> _Written | None:
        """Write what a clause makes, or the sum of it.

        Raises:
            UnsureError: it is not known.
        """
        value = self.value(node.value if isinstance(node, ast.DictComp) else node.elt)
        if not self.calls or not value.is_list or value.has_numbers:
            return None
        made = self._edit.free_name("made")
        lines = _indented([*self.lines, f"{made} = list({value.text})"])
        lines = [self._first, f"{made} = []", f"if {self._turns}:", *lines]
        whole: ast.expr = node
        instead = f"({made})"
        match node, above:
            case ast.DictComp(key=key), _:
                keys = f"[{ast.unparse(key)} for {self._target} in {self._turns}]"
                instead = f"dict(zip({keys}, {made}))"
            case _, ast.Call(func=ast.Name(id="sum"), args=[_]) as whole:
                instead = f"({self._sum(made)} if {made} else 0)"
        return _Written(statement, whole, "\n".join(lines), instead, False)

    def _summed(self, statement: ast.stmt) -> str:
        """Return the name that turns add to and do nothing else with; may be empty."""
        match statement:
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add()):
                is_alone = self._reads[name] == 1
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.BinOp(left=ast.Name(id=again), op=ast.Add()),
            ) if name == again:
                is_alone = self._reads[name] == 2
            case _:
                return ""
        return name if is_alone and name not in self._turn.names else ""

    def _sum(self, values: str) -> str:
        return f"{self._edit.torch}.stack({values}).sum(0)"

    def _take(self, statement: ast.stmt) -> None:
        """Write a statement for all turns.

        Raises:
            UnsureError: one turn's may need what another's did, or it is not known.
        """
        match statement:
            case (
                ast.AugAssign(value=value)
                | ast.Assign(value=ast.BinOp(op=ast.Add(), right=value))
            ) if name := self._summed(statement):
                made = self.value(value)
                if not made.is_list or made.has_numbers:
                    raise UnsureError
                sign = "+=" if isinstance(statement, ast.AugAssign) else f"= {name} +"
                self.lines.append(f"{name} {sign} {self._sum(made.text)}")
            case ast.Expr(
                ast.Call(
                    func=ast.Attribute(attr="append", value=ast.Name(id=name)),
                    args=[value],
                    keywords=[],
                )
            ) if self._reads[name] == 1 and name not in self.every:
                made = self.value(value)
                if not made.is_list:
                    raise UnsureError
                self.lines.append(f"{name}.extend({made.text})")
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._set({name: value})
            case ast.Assign(
                targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)
            ) if len(names) == len(values) and all(
                isinstance(one, ast.Name) for one in names
            ):
                self._set(dict(zip(map(ast.unparse, names), values, strict=True)))
            case ast.AugAssign(target=target, op=op, value=value):
                method = IN_PLACE_OPERATORS.get(type(op), "")
                whole = self.value(ast.parse(ast.unparse(target), mode="eval").body)
                if not whole.is_list or not method:
                    raise UnsureError
                self.lines.append(self.in_place(whole, f"{method}_", [value], []))
            case ast.Expr(
                ast.Call(func=ast.Attribute(value=ast.expr(), attr=name)) as call
            ) if name.endswith("_") and name.removesuffix("_") in METHODS:
                self.value(call)
            case ast.Assign(
                targets=[ast.Attribute() | ast.Subscript() as target], value=value
            ):
                self._store(target, self.value(value))
            case ast.With(items=items, body=body) if not any(
                item.optional_vars for item in items
            ):
                outside, self.lines = self.lines, []
                for one in body:
                    self._take(one)
                lines = _indented(self.lines)
                head = ", ".join(map(ast.unparse, items))
                self.lines = [*outside, f"with {head}:", *lines]
            case _:
                raise UnsureError

    def _set(self, values: dict[str, ast.expr]) -> None:
        made = {name: self.value(value) for name, value in values.items()}
        for name, one in made.items():
            if one.is_list:
                every = self._edit.free_name(f"every_{name}")
                self.lines.append(f"{every} = {one.text}")
                self.every[name] = every
            elif len(made) == 1 and name not in self.every and is_plain(values[name]):
                self.lines.append(f"{name} = {one.text}")
            else:
                raise UnsureError

    def _store(self, target: ast.Attribute | ast.Subscript, made: ListValue) -> None:
        """Write that each turn's value is put where the turn has it."""
        body = [*map(ast.unparse, self._parts)]
        # what is never read was no tensor before
        self.is_update |= body.count(ast.unparse(target)) > 1
        if isinstance(target, ast.Attribute):
            self.is_update |= target.attr == "data"
        else:
            self.is_update |= ast.unparse(target.value) in self._over
            if body.count(ast.unparse(target.value)) > body.count(ast.unparse(target)):
                # a turn may read what another one stores
                raise UnsureError
        names = sorted(loaded(target) & self.every.keys())
        lists, one = [self.every[name] for name in names], self._edit.free_name("one")
        if not names:
            raise UnsureError
        if made.is_list:
            names, lists = [*names, one], [*lists, made.text]
        over = f"zip({', '.join(lists)})" if len(lists) > 1 else lists[0]
        value = one if made.is_list else made.text
        store = f"{ast.unparse(target)} = {value}"
        self.lines.append(f"for {', '.join(names)} in {over}: {store}")


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]

"""Turns of a loop: what each is given, and what it leaves for the next ones."""

from __future__ import annotations

import ast
import copy
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import (
    SIMPLE,
    NameOrder,
    leaves,
    parts_of,
    stored_names,
    walk,
)
from warpbook_profiler.advice.code.loops import counted
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.rewriting.host_copies import HELPERS as COPIES

#: functions that edits define
_NAMES = "in_batches joined own chosen_of number_of replayed stepping"
HELPERS = frozenset(_NAMES.split()) | COPIES
#: what Python may not come to
LAZY = (
    *(ast.BoolOp, ast.IfExp, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


class UnsureError(Exception):
    """A loop can't be written otherwise, or that is not sure."""


def statement_of(flow: ValueFlow, node: ast.expr) -> ast.stmt | None:
    """Return the simple statement that comes to an expression whenever it runs."""
    for above in flow.around(node):
        if isinstance(above, ast.stmt):
            return above if isinstance(above, SIMPLE) else None
        if isinstance(above, LAZY):
            return None
    return None


def counters(target: ast.expr, over: ast.expr) -> set[str]:
    """Return the names of what a loop goes over that count its turns."""
    match target, over:
        case ast.Tuple(elts=[first, *_]), ast.Call(func=ast.Name(id="enumerate")):
            return stored_names(first)
        case _, ast.Call(func=ast.Name(id="range")):
            return stored_names(target)
    return set()


class Turns(NamedTuple):
    """A loop that ends when what it goes over does."""

    node: ast.stmt
    target: ast.expr
    iter: ast.expr
    body: list[ast.stmt]
    #: sets what a counter holds after the loop; may be empty
    after: str = ""
    #: the least number of a loop over a count; None where that is not written down
    least: int | None = None

    @property
    def given(self) -> set[str]:
        """Return the names that each turn is given."""
        return stored_names(self.target)

    @property
    def rows(self) -> dict[str, str]:
        """Write by each name that turns are given what it is a row of, in each turn.

        Returns:
            Nothing where they are given anything else, too.
        """
        found: dict[str, ast.expr] = {}
        match self.target, self.iter:
            case ast.Name(id=name), ast.Name() | ast.Subscript():
                found[name] = self.iter
            case ast.Tuple(elts=names), ast.Call(func=ast.Name("zip"), args=given):
                found = dict(zip(map(ast.unparse, names), given, strict=False))
                if len(found) != len(given) or len(found) != len(names):
                    return {}
            case _:
                return {}
        are_plain = all(map(_is_part, found.values()))
        return {name: ast.unparse(one) for name, one in found.items() if are_plain}

    @property
    def how_many(self) -> str:
        """Write how many turns there are; empty where that is not known before."""
        match self.iter:
            case ast.Call(func=ast.Name(id="range")):
                return f"len({ast.unparse(self.iter)})"
        return next((f"len({one})" for one in self.rows.values()), "")

    @property
    def limits(self) -> tuple[str, str]:
        """Write from where to where a loop over a count goes, as a slice has it.

        Returns:
            Empty strings for any other loop, and for one that may begin below zero.
        """
        match self.iter:
            case ast.Call(func=ast.Name(id="range"), args=[end], keywords=[]):
                return "", ast.unparse(end)
            case ast.Call(func=ast.Name(id="range"), args=[start, end], keywords=[]):
                if self.least is not None and self.least >= 0:
                    return ast.unparse(start), ast.unparse(end)
        return "", ""

    @property
    def cut(self) -> str:
        """Write which rows a loop over a count takes; empty for any other."""
        start, end = self.limits
        return f"[{start}:{end}]" if end else ""

    @property
    def changed(self) -> set[str]:
        """Return the names that turns set, or whose values they fill or add to."""
        return stored_names(ast.Module(self.body, [])) | filled(self.body)

    @property
    def keeps(self) -> bool:
        """Tell whether a turn may give something to the next one by an attribute."""
        adds = any(
            isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Attribute)
            for one in self.body
            for part in walk(one)
        )
        stored = attributes(self.body, ast.Store)
        return adds or bool(stored & attributes(self.body, ast.Load))

    @property
    def carried(self) -> set[str]:
        """Return the names by which a turn gives something to the next one."""
        body = ast.Module(self.body, [])
        return (NameOrder(body).read_first & stored_names(body)) - self.given


def whole_loops(tree: ast.AST) -> Iterator[ast.For | ast.While]:
    """Find the loops of a source that nothing leaves, but those of earlier edits."""
    for node in parts_of(tree):
        if isinstance(node, ast.FunctionDef) and node.name in HELPERS:
            continue
        if isinstance(node, ast.For | ast.While) and not node.orelse:
            if not leaves(node):
                yield node
        yield from whole_loops(node)


def loops_of(tree: ast.Module) -> Iterator[Turns]:
    """Find the loops whose turns are known before they begin."""
    for node in whole_loops(tree):
        if isinstance(node, ast.For):
            least: int | None = 0
            match node.iter:
                case ast.Call(func=ast.Name(id="range"), args=[start, _, *_]):
                    least = _least(start, tree)
            does = [one for one in node.body if not isinstance(one, ast.Pass)]
            body = does or node.body
            yield Turns(node, node.target, node.iter, body, least=least)
        else:
            turns = _counted(node, tree)
            if turns is not None:
                yield turns


def _counted(node: ast.While, tree: ast.Module) -> Turns | None:
    made = counted(node)
    match made.target if made else None, made.iter if made else None:
        case ast.Name(id=name) as target, ast.Call(args=[_, end]) as over if made:
            after = f"{name} = max({name}, {ast.unparse(end)})"
            least = _least(target, tree)
            return Turns(node, target, over, made.body, after, least)
    return None


def _least(start: ast.expr, tree: ast.Module) -> int | None:
    """Return the least number that is written down for a count, which only grows."""
    match start:
        case ast.Constant(value=int() as number):
            return number
        case ast.Name(id=name):
            numbers = list[int]()
            for value in values_of(tree)[name]:
                match value:
                    case ast.Constant(value=int() as number):
                        numbers.append(number)
                    case ast.BinOp(
                        left=ast.Name(id=before),
                        op=ast.Add(),
                        right=ast.Constant(value=int()),
                    ) if before == name:
                        pass
                    case _:
                        return None
            return min(numbers, default=None)
    return None


def _is_part(node: ast.expr) -> bool:
    """Tell whether an expression is a name, or rows that are cut out of one."""
    match node:
        case ast.Subscript(value=ast.Name(), slice=ast.Slice()):
            return not any(isinstance(one, ast.Call) for one in walk(node))
    return isinstance(node, ast.Name)


def values_of(tree: ast.AST) -> defaultdict[str, list[ast.expr | None]]:
    """Give what each name is set to; None for what is no single expression."""
    found: defaultdict[str, list[ast.expr | None]] = defaultdict(list)
    known = set[ast.AST]()
    for part in walk(tree):
        pairs: list[tuple[ast.expr, ast.expr]] = []
        match part:
            case ast.Assign(
                targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=all_)
            ):
                pairs = [*zip(names, all_, strict=False)]
            case ast.Assign(targets=targets, value=value):
                pairs = [(one, value) for one in targets]
            case ast.AugAssign(target=ast.Name(id=name) as one, op=op, value=value):
                before = ast.Name(name, ast.Load())
                pairs = [(one, ast.BinOp(before, op, value))]
        for target, value in pairs:
            if isinstance(target, ast.Name):
                found[target.id].append(value)
                known.add(target)
    for part in walk(tree):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            if part not in known:
                found[part.id].append(None)
    return found


def attributes(body: Sequence[ast.stmt], context: type[ast.expr_context]) -> set[str]:
    """Return the names of attributes that code reads, or sets."""
    return {
        node.attr
        for one in body
        for node in walk(one)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, context)
    }


def loaded(tree: ast.AST) -> set[str]:
    """Return the names that code reads."""
    return {
        node.id
        for node in walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }


def filled(body: list[ast.stmt]) -> set[str]:
    """Return the names of what turns fill or add to."""
    names = set[str]()
    for statement in body:
        match statement:
            case ast.Expr(ast.Call(func=ast.Attribute(value=held))):
                # an attribute of an object may be no container
                names.add("" if isinstance(held, ast.Attribute) else _held(held))
            case ast.Assign(targets=[ast.Subscript(value=held)]):
                names.add(_held(held))
            case ast.AugAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.AugAssign(target=ast.Subscript(value=held)):
                names.add(_held(held))
    return names - {""}


def _held(node: ast.expr) -> str:
    """Give the name of what is a part of something, `found` of `found["x"]`."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


class _Replacing(ast.NodeTransformer):
    def __init__(self, instead: Callable[[ast.expr], ast.expr | None]) -> None:
        self._instead = instead

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr):
            new = self._instead(node)
            if new is not None:
                return new
        visited: ast.AST = super().visit(node)
        return visited


def replacing(tree: ast.stmt, instead: Callable[[ast.expr], ast.expr | None]) -> None:
    """Put other expressions in place of some, from the outside inwards."""
    _Replacing(instead).visit(tree)


def rewritten(tree: ast.stmt, instead: Callable[[ast.expr], ast.expr | None]) -> str:
    """Write code with other expressions in place of some, from the outside inwards."""
    new = copy.deepcopy(tree)
    replacing(new, instead)
    return ast.unparse(new)

"""Loops of the source that a change is about, and what of the trace is theirs."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from warpbook_profiler.advice.code.cell_code import (
    CellCode,
    NameOrder,
    last_name,
    names_in,
    parts_of,
    stored_names,
    walk,
)
from warpbook_profiler.advice.code.torch_code import opaque_calls, steps
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.repeats import Repeat
from warpbook_profiler.advice.rewriting.called_code import copied_code

_Loop = ast.For | ast.While
#: methods that a call of an object comes to
_IMPLICIT = frozenset(("forward", "__call__"))
#: of functions that call others
_MOST_ROUNDS = 4


class FoundLoops:
    """Loops and clauses of the cell, or of what it calls."""

    def __init__(
        self, evidence: Evidence, find: Callable[[CellCode], Iterable[ast.AST]]
    ) -> None:
        """Look for them.

        Args:
            evidence: the window.
            find: gives those that a change is about.
        """
        self._evidence = evidence
        copied = copied_code(evidence.code.source, evidence.run.called)
        #: lines of the trace are the cell's
        self._is_cell = evidence.code.source == evidence.run.source
        cell, copies = _Found(evidence.code, find, {}), None
        if copied.code.is_known:
            copies = _Found(copied.code, find, copied.originals)
        both = [one for one in (cell, copies) if one is not None]
        self._are_any = any(one.loops for one in both)
        calls = cell.calls(set[str]().union(*(one.leading for one in both)))
        self._lines = [
            (node.lineno, node.end_lineno or node.lineno)
            for node in (*cell.loops, *calls)
            if isinstance(node, ast.stmt | ast.expr)
        ]
        #: how many operators a turn of another loop may call at most
        self._others = max((count for one in both for count in one.others()), default=0)

    def hold(self, repeat: Repeat) -> bool:
        """Tell whether it is they that call operators again and again.

        Where no lines are known, there must be no other loop that may do so.
        """
        if not self._are_any:
            return False
        operators = self._evidence.operators
        # the first turn may begin with what stands before the loop
        begun_ns = int(operators.table.start_ns[repeat.rest[0]])
        line = self._evidence.line_at(begun_ns) if self._is_cell else None
        if line is not None:
            return any(first <= line <= last for first, last in self._lines)
        events = operators.launched_from(int(repeat.one[0]), int(repeat.one[-1]))
        turn = np.unique(operators.outer_of(operators.direct[events]))
        return self._others < len(turn)


class _Found:
    """Loops that were found in a source, and the functions that lead to them."""

    def __init__(
        self,
        code: CellCode,
        find: Callable[[CellCode], Iterable[ast.AST]],
        originals: dict[str, str],
    ) -> None:
        self._tree, self._originals = code.tree, originals
        self.loops = [*find(code)]
        self._inside = {part for one in self.loops for part in _code_of(one)}
        self._opaque = set(opaque_calls(code.tree))
        #: names of functions and methods, as the cell calls them
        self.leading = set[str]()
        functions = [
            (self._original(one.name), {*_code_of(one)})
            for one in walk(code.tree)
            if isinstance(one, ast.FunctionDef)
        ]
        for _ in range(_MOST_ROUNDS):
            inside = self._inside.union(self.calls(self.leading))
            self.leading |= {name for name, parts in functions if parts & inside}

    def _original(self, name: str) -> str:
        return self._originals.get(name, name).rpartition(".")[2]

    def calls(self, names: set[str]) -> Iterator[ast.Call]:
        """Give the calls of functions and methods with these names."""
        for node in walk(self._tree):
            if isinstance(node, ast.Call):
                is_called = self._original(last_name(node.func)) in names
                if is_called or (names & _IMPLICIT and node in self._opaque):
                    yield node

    def others(self) -> Iterator[float]:
        """Count what a turn calls in each loop beside them that carries something."""
        mine = self._inside.union(self.calls(self.leading))
        for loop in walk(self._tree):
            if isinstance(loop, _Loop) and _carries(loop):
                if mine.isdisjoint(_code_of(loop)):
                    yield _count(loop)


def _code_of(node: ast.AST) -> Iterator[ast.AST]:
    """Give what is at one place of a source; an operator is one node for all places."""
    return (one for one in walk(node) if isinstance(one, ast.stmt | ast.expr))


def _count(loop: _Loop) -> float:
    """Count the operators that a turn may call."""
    nodes = [part for one in loop.body for part in walk(one)]
    called = [
        step
        for one in nodes
        if not isinstance(one, ast.expr)
        for part in parts_of(one)
        if isinstance(part, ast.expr)
        for step in steps(part)
    ]
    if any(one.is_opaque for one in called):
        return float("inf")
    return len(called) + sum(isinstance(one, ast.AugAssign) for one in nodes)


def _carries(loop: _Loop) -> bool:
    """Tell whether a turn may take what another one left."""
    body = ast.Module(loop.body, [])
    given = stored_names(loop.target) if isinstance(loop, ast.For) else set[str]()
    order, stored = NameOrder(body), stored_names(body)
    if order.read_first & stored - given:
        return True
    own = given | stored
    nodes = [*walk(body)]
    #: by what they are parts of
    parts = defaultdict[str, set[str]](set)
    for one in nodes:
        if isinstance(one, ast.Subscript):
            parts[ast.unparse(one.value)].add(ast.unparse(one))
    for one in nodes:
        match one:
            case ast.Call(func=ast.Attribute(value=value, attr=name)):
                is_left = name.endswith("_") and not names_in(value) & own
            case ast.Attribute() | ast.Subscript() if isinstance(one.ctx, ast.Store):
                is_left = not names_in(one) & own or (
                    isinstance(one, ast.Subscript)
                    and len(parts[ast.unparse(one.value)]) > 1
                )
            case _:
                continue
        if is_left:
            return True
    return False

"""What the statements of a learner's Python read, bind and change, by their lines."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

_JUMPS = (ast.Return, ast.Continue, ast.Break, ast.Raise)
#: `with` has what is within it done otherwise, as by another stream or type
_DECIDES = (ast.If, ast.While, ast.For, ast.Match, ast.With)
_SILENT = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Global)
#: methods that change what they are called on, beside those that end with `_`
_CHANGING = frozenset(
    "append add update extend insert setdefault remove discard clear sort".split()
)


@dataclass
class Statement:
    """Of a compound statement only its head."""

    number: int
    reads: set[str] = field(default_factory=set)
    #: names that it gives a value
    binds: set[str] = field(default_factory=set)
    #: names of objects that it may change
    changes: set[str] = field(default_factory=set)
    #: names of what it sets an attribute or an element of
    settings: set[str] = field(default_factory=set)
    #: numbers of the statements that decide whether it is done
    deciders: tuple[int, ...] = ()
    is_silent: bool = False
    #: of a statement that decides: names that what is within it binds or changes
    within: set[str] = field(default_factory=set)


def statements_of(source: str) -> dict[int, Statement]:
    """Give the statement of each line; those that share a line are one.

    Raises:
        SyntaxError: it is no Python.
    """
    found: dict[int, Statement] = {}
    _Reader(found).body(ast.parse(source).body, ())
    return found


class _Reader:
    def __init__(self, found: dict[int, Statement]) -> None:
        self._found, self._count = found, 0

    def body(self, nodes: list[ast.stmt], deciders: tuple[int, ...]) -> None:
        for node in nodes:
            statement = self._head(node, deciders)
            inside = deciders
            if isinstance(node, _DECIDES):
                inside = (*deciders, statement.number)
            elif isinstance(node, ast.FunctionDef):
                inside = ()
            for part in _bodies(node):
                self.body(part, inside)
            if isinstance(node, _DECIDES):
                for part in _bodies(node):
                    for each in _own(part):
                        held = Statement(0)
                        for head in _heads(each):
                            _note(head, held)
                        statement.within |= held.binds | held.changes
            jumps = isinstance(node, ast.If | ast.Match) and any(
                isinstance(each, _JUMPS)
                for part in _bodies(node)
                for each in _own(part)
            )
            if jumps:
                # what comes behind is done only where it does not jump
                deciders = (*deciders, statement.number)

    def _head(self, node: ast.stmt, deciders: tuple[int, ...]) -> Statement:
        statement = Statement(self._count, deciders=deciders)
        self._count += 1
        statement.is_silent = isinstance(node, _SILENT)
        for part in _heads(node):
            _note(part, statement)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            # nobody takes what it gives, so it does something to what it is given
            call = node.value
            for each in (call.func, *call.args, *(k.value for k in call.keywords)):
                statement.changes |= _base(each)
        first, last = node.lineno, node.end_lineno or node.lineno
        bodies = _bodies(node)
        if bodies and bodies[0]:
            last = max(first, bodies[0][0].lineno - 1)
        lines = set(range(first, last + 1))
        if isinstance(node, ast.Match):
            lines = {node.lineno} | {
                line
                for case in node.cases
                for line in range(
                    case.pattern.lineno, (case.pattern.end_lineno or 0) + 1
                )
            }
        for line in lines:
            known = self._found.get(line)
            if known is None or known.is_silent:
                self._found[line] = statement
            elif not statement.is_silent:
                known.reads |= statement.reads
                known.changes |= statement.changes | statement.binds
                known.settings |= statement.settings
        return statement


def _heads(node: ast.stmt) -> list[ast.AST]:
    """Give what is evaluated of a statement itself, not of its body."""
    if isinstance(node, _SILENT):
        return []
    if isinstance(node, ast.If | ast.While):
        return [node.test]
    if isinstance(node, ast.For):
        return [node.target, node.iter]
    if isinstance(node, ast.With):
        return list(node.items)
    if isinstance(node, ast.Match):
        return [node.subject, *(each.pattern for each in node.cases)]
    if isinstance(node, ast.Try):
        return []
    return [node]


def _bodies(node: ast.stmt) -> list[list[ast.stmt]]:
    if isinstance(node, ast.Match):
        return [each.body for each in node.cases]
    found = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
    found += [each.body for each in getattr(node, "handlers", ())]
    return [each for each in found if isinstance(each, list) and each]


def _own(nodes: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Give statements with all within them, but not those of functions."""
    for node in nodes:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            for part in _bodies(node):
                yield from _own(part)


def _note(part: ast.AST, statement: Statement) -> None:
    for node in ast.walk(part):
        if isinstance(node, ast.Name):
            (
                statement.reads if isinstance(node.ctx, ast.Load) else statement.binds
            ).add(node.id)
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            statement.binds.add(node.name)
        elif isinstance(node, ast.Attribute | ast.Subscript):
            if isinstance(node.ctx, ast.Store):
                statement.changes |= _base(node)
                statement.settings |= _base(node)
        elif isinstance(node, ast.AugAssign):
            statement.reads |= _base(node.target)
            statement.changes |= _base(node.target)
        elif isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else ""
            if isinstance(called, ast.Name) and called.id == "setattr" and node.args:
                statement.settings |= _base(node.args[0])
            changes = name.endswith("_") and not name.endswith("__")
            if isinstance(called, ast.Attribute) and (changes or name in _CHANGING):
                statement.changes |= _base(called.value)
            for keyword in node.keywords:
                if keyword.arg == "out":
                    statement.changes |= _base(keyword.value)


def _base(node: ast.AST) -> set[str]:
    """Name what an expression is a part of."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.NamedExpr):
        node = node.target
    return {node.id} if isinstance(node, ast.Name) else set()

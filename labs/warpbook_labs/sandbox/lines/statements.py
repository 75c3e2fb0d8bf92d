"""What the statements of a learner's Python read, bind and change, by their lines."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from warpbook_labs.sandbox.lines.expressions import base_names, note

_JUMPS = (ast.Return, ast.Continue, ast.Break, ast.Raise)
#: `with` has what is within it done otherwise, as by another stream or type
_DECIDES = (ast.If, ast.While, ast.For, ast.Match, ast.With)
_SILENT = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Global)
_PATHS = (ast.Name, ast.Attribute, ast.Subscript)
#: how far a condition is, in statements that compute
_STEPS_TO_CONDITION = 2
#: how often a loop goes round is farther, except from a sum
_STEPS_TO_LOOP = 3
#: what `with` sets holds for each statement within it
_STEPS_TO_WITH = 0.5
#: a sum hangs on how often its loop goes round
_STEPS_TO_ROUNDS = 1
#: what is done only where an early return was not taken
_STEPS_TO_GUARD = 4


@dataclass
class Statement:
    """Of a compound statement only its head."""

    number: int
    #: its first
    line: int = 0
    #: names that it computes with
    reads: set[str] = field(default_factory=set)
    #: of these, names of which it reads the whole, and not a part that `parts` has
    whole: set[str] = field(default_factory=set)
    #: names that decide where it reads or writes, and whether: pointers, masks, indices
    places: set[str] = field(default_factory=set)
    #: names that it gives a value
    binds: set[str] = field(default_factory=set)
    #: names of objects that it may change
    changes: set[str] = field(default_factory=set)
    #: parts of objects that it may change, such as `self.held[key]`
    changed_parts: list[ast.expr] = field(default_factory=list)
    #: parts of objects that it reads, each of a name
    parts: list[ast.expr] = field(default_factory=list)
    #: names of what it sets an attribute or an element of
    settings: set[str] = field(default_factory=set)
    #: numbers of the statements that decide whether it is done, and how far these are
    deciders: dict[int, float] = field(default_factory=dict)
    is_silent: bool = False
    #: a loop over what it is given
    is_loop: bool = False
    #: of a statement that decides: names that what is within it binds or changes
    within: set[str] = field(default_factory=set)
    #: it only gives another name to what there is
    is_alias: bool = False
    #: the one name that it does nothing but give a value
    assigned: str = ""
    #: the lines of a dict display's values
    value_lines: tuple[int, ...] = ()
    #: of `a, b = c, d`: by each name that it binds, what that is computed of
    by_name: dict[str, Statement] = field(default_factory=dict)
    #: of one over several lines, those of its first and its last operand
    ends: tuple[int, ...] = ()

    def join(self, other: Statement) -> None:
        """Take what another statement on the same line does."""
        self.reads |= other.reads
        self.whole |= other.whole
        self.places |= other.places
        self.changes |= other.changes | other.binds
        self.settings |= other.settings
        self.parts += other.parts
        self.changed_parts += other.changed_parts
        self.is_alias = self.is_alias and other.is_alias
        self.by_name = {}
        self.assigned = ""


def statements_of(source: str) -> dict[int, Statement]:
    """Give the statement of each line; those that share a line are one.

    Raises:
        SyntaxError: it is no Python.
    """
    statements: dict[int, Statement] = {}
    _Reader(statements).body(ast.parse(source).body, {})
    return statements


class _Reader:
    def __init__(self, statements: dict[int, Statement]) -> None:
        self._statements, self._count = statements, 0

    def body(self, nodes: list[ast.stmt], deciders: dict[int, float]) -> None:
        for node in nodes:
            statement = self._head(node, deciders)
            inside = deciders
            if isinstance(node, _DECIDES):
                steps: float = _STEPS_TO_CONDITION
                if isinstance(node, ast.With):
                    steps = _STEPS_TO_WITH
                elif isinstance(node, ast.For):
                    steps = _STEPS_TO_LOOP
                inside = {**deciders, statement.number: steps}
            elif isinstance(node, ast.FunctionDef):
                inside = {}
            for part in _bodies(node):
                self.body(part, inside)
            if isinstance(node, _DECIDES):
                for part in _bodies(node):
                    for inner in _own(part):
                        held = Statement(0)
                        for head in _heads(inner):
                            note(head, held)
                        statement.within |= held.binds | held.changes
            jumps = isinstance(node, ast.If | ast.Match) and any(
                isinstance(inner, _JUMPS)
                for part in _bodies(node)
                for inner in _own(part)
            )
            if jumps:
                # what comes behind is done only where it does not jump
                deciders = {**deciders, statement.number: _STEPS_TO_GUARD}

    def _head(self, node: ast.stmt, deciders: dict[int, float]) -> Statement:
        if isinstance(node, ast.AugAssign):
            deciders = {
                number: min(steps, _STEPS_TO_ROUNDS)
                if steps in (_STEPS_TO_CONDITION, _STEPS_TO_LOOP)
                else steps
                for number, steps in deciders.items()
            }
        statement = Statement(self._count, node.lineno, deciders=deciders)
        self._count += 1
        statement.is_silent = isinstance(node, _SILENT)
        statement.is_loop = isinstance(node, ast.For)
        for part in _heads(node):
            note(part, statement)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            # nobody takes what it gives, so it does something to what it is given
            call = node.value
            for expression in (
                call.func,
                *call.args,
                *(k.value for k in call.keywords),
            ):
                statement.changes |= base_names(expression)
        _note_kind(node, statement)
        lines = _lines(node)
        statement.ends = _ends(node, lines)
        for line in lines:
            known = self._statements.get(line)
            if known is None or known.is_silent:
                self._statements[line] = statement
            elif not statement.is_silent:
                known.join(statement)
        return statement


def _note_kind(node: ast.stmt, statement: Statement) -> None:
    """Note what a statement does to names, beside computing."""
    if isinstance(node, ast.For):
        statement.is_alias = isinstance(node.iter, _PATHS)
    if not isinstance(node, ast.Assign):
        return
    statement.is_alias = isinstance(node.value, _PATHS)
    for name, value in _side_by_side(node):
        statement.by_name[name] = Statement(statement.number, statement.line)
        note(value, statement.by_name[name])
    if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        statement.assigned = node.targets[0].id
        if isinstance(node.value, ast.Dict) and None not in node.value.keys:
            statement.value_lines = tuple(
                element.lineno for element in node.value.values
            )


def _side_by_side(node: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    """Give the names that one statement binds to values of their own."""
    target, value = node.targets[0], node.value
    if len(node.targets) > 1 or not (
        isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
    ):
        return
    if len(target.elts) == len(value.elts):
        for to, of in zip(target.elts, value.elts, strict=True):
            if isinstance(to, ast.Name) and not isinstance(of, ast.Starred):
                yield to.id, of


def _ends(node: ast.stmt, lines: set[int]) -> tuple[int, ...]:
    if isinstance(node, ast.Match):
        # each line is of a case
        return tuple(lines)
    value = getattr(node, "value", None)
    heads = [value] if isinstance(value, ast.expr) else _heads(node)
    parts = [line for head in heads for line in _operand_lines(head)]
    return (min(parts, default=node.lineno), max(parts, default=node.lineno))


def _operand_lines(node: ast.AST) -> Iterator[int]:
    """Give the lines of what an expression computes with, not of what it calls."""
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Call):
        called = any(isinstance(inner, ast.Call) for inner in ast.walk(node.func))
        parts = [*([node.func] if called else []), *node.args, *node.keywords]
    parts = [part for part in parts if not isinstance(part, ast.expr_context)]
    if not parts and isinstance(node, ast.expr):
        yield node.lineno
    for part in parts:
        yield from _operand_lines(part)


def _lines(node: ast.stmt) -> set[int]:
    first, last = node.lineno, node.end_lineno or node.lineno
    bodies = _bodies(node)
    if bodies and bodies[0]:
        last = max(first, bodies[0][0].lineno - 1)
    if isinstance(node, ast.Match):
        patterns = [case.pattern for case in node.cases]
        return {node.lineno} | {
            line
            for pattern in patterns
            for line in range(pattern.lineno, (pattern.end_lineno or 0) + 1)
        }
    return set(range(first, last + 1))


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
        return [node.subject, *(case.pattern for case in node.cases)]
    if isinstance(node, ast.Try):
        return []
    return [node]


def _bodies(node: ast.stmt) -> list[list[ast.stmt]]:
    if isinstance(node, ast.Match):
        return [case.body for case in node.cases]
    bodies = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
    bodies += [handler.body for handler in getattr(node, "handlers", ())]
    return [body for body in bodies if isinstance(body, list) and body]


def _own(nodes: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Give statements with all within them, but not those of functions."""
    for node in nodes:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            for part in _bodies(node):
                yield from _own(part)

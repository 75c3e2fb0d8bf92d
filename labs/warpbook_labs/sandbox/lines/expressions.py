"""What an expression of a learner's Python reads and changes: names, parts, places."""

from __future__ import annotations

import ast
from typing import Protocol

#: methods that change what they are called on, beside those that end with `_`
_CHANGING = frozenset(
    "append add update extend insert setdefault remove discard clear sort".split()
)
#: of Triton: the first argument is the place, and the mask comes behind the value
_LOAD, _STORES = "load", ("store", "atomic_")
_MASK = "mask"


class Noted(Protocol):
    """What a statement does, as it is noted."""

    reads: set[str]
    whole: set[str]
    places: set[str]
    binds: set[str]
    changes: set[str]
    settings: set[str]
    parts: list[ast.expr]
    changed_parts: list[ast.expr]


def note(part: ast.AST, into: Noted) -> None:
    """Note what a part of a statement does."""
    _Notes(into).visit(part)


def base_names(node: ast.AST) -> set[str]:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.NamedExpr):
        node = node.target
    return {node.id} if isinstance(node, ast.Name) else set()


class _Notes(ast.NodeVisitor):
    def __init__(self, into: Noted) -> None:
        self._into = into
        #: names are read into these
        self._values: tuple[set[str], ...] = (into.reads, into.whole)
        self._sets: tuple[set[str], ...] = self._values

    def _visit_as(self, sets: tuple[set[str], ...], *nodes: ast.AST) -> None:
        before, self._sets = self._sets, sets
        for node in nodes:
            self.visit(node)
        self._sets = before

    def _visit_place(self, *nodes: ast.AST) -> None:
        self._visit_as((self._into.places,), *nodes)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            for names in self._sets:
                names.add(node.id)
        else:
            self._into.binds.add(node.id)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.name:
            self._into.binds.add(node.name)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        if node.name:
            self._into.binds.add(node.name)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._part(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._part(node)
        if isinstance(node.ctx, ast.Load):
            self.visit(node.slice)
        else:
            self._visit_place(node.slice)

    def _part(self, node: ast.Attribute | ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Store):
            self._into.changes |= base_names(node)
            self._into.settings |= base_names(node)
            self._into.changed_parts.append(node)
        base: ast.expr = node
        while isinstance(base, ast.Attribute | ast.Subscript):
            if isinstance(base, ast.Subscript) and base is not node:
                self.visit(base.slice)
            base = base.value
        is_value = self._sets is self._values
        if isinstance(base, ast.Name) and is_value:
            # of an object that is known, no more than this part of it is read
            self._into.reads.add(base.id)
            self._into.parts.append(node)
        else:
            self.visit(base)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node)

    def _comprehension(self, node: ast.AST) -> None:
        """Leave out the names that it has for itself; others may be called the same."""
        known = [(names, set(names)) for names in (*self._sets, self._into.binds)]
        own = {
            target.id
            for part in ast.walk(node)
            if isinstance(part, ast.comprehension)
            for target in ast.walk(part.target)
            if isinstance(target, ast.Name)
        }
        parts = len(self._into.parts)
        self.generic_visit(node)
        for names, before in known:
            names -= own - before
        self._into.parts[parts:] = [
            part for part in self._into.parts[parts:] if not base_names(part) & own
        ]

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._into.reads |= base_names(node.target)
        if isinstance(node.target, ast.Name):
            self._into.whole.add(node.target.id)
        self._into.changes |= base_names(node.target)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else ""
        if isinstance(called, ast.Name) and called.id == "setattr" and node.args:
            self._into.settings |= base_names(node.args[0])
        if isinstance(called, ast.Attribute) and _is_changing(name):
            self._into.changes |= base_names(called.value)
            self._into.changed_parts.append(called.value)
            self._visit_changed(called.value)
        else:
            self.visit(called)
        self._visit_arguments(name, node)

    def _visit_changed(self, changed: ast.expr) -> None:
        """Of what is changed in place, an index decides where."""
        if isinstance(changed, ast.Subscript):
            self._part(changed)
            self._visit_place(changed.slice)
        else:
            self.visit(changed)

    def _visit_arguments(self, name: str, node: ast.Call) -> None:
        positional = list(node.args)
        if name == _LOAD and positional:
            both = (*self._values, self._into.places)
            self._visit_as(both, positional[0])
            self._visit_place(*positional[1:2])
            positional = positional[2:]
        elif name.startswith(_STORES) and positional:
            self._visit_place(positional[0], *positional[2:3])
            positional = positional[1:2]
        for argument in positional:
            self.visit(argument)
        for keyword in node.keywords:
            if keyword.arg == "out":
                self._into.changes |= base_names(keyword.value)
            if keyword.arg == _MASK:
                self._visit_place(keyword.value)
            else:
                self.visit(keyword.value)


def _is_changing(name: str) -> bool:
    return name in _CHANGING or name.endswith("_") and not name.endswith("__")

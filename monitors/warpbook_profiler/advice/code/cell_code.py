"""A cell's source as a syntax tree, asked for what a rule needs of it.

The source is only parsed, never run. One that can't be parsed answers nothing.
"""

from __future__ import annotations

import ast
import builtins
import collections
import contextlib
import copy
import functools
import itertools
import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

#: a longer source is not looked at
MOST_CHARACTERS = 200_000
#: nor is one nested deeper, as writing it would take too many calls within calls
_MOST_LEVELS = 100
#: nor one with a longer number, which Python does not write in decimal
_MOST_BITS = 10_000
#: of a piece of code in a sketch
_MOST_SKETCH = 80
#: a line of IPython's own, a magic or a shell command, which is no Python
_MAGIC = re.compile(r"^([ \t]*)[%!].*$", re.M)
_BUILTINS = frozenset(dir(builtins))
#: of Python, often imported by name; what they are called with is no model's input
STANDARD = _BUILTINS.union(
    *map(dir, (collections, contextlib, copy, functools, itertools))
)
#: fields of nodes that hold no node, or a context
_PLAIN = frozenset("arg attr ctx id kind type_comment".split())
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp)

_LEAVING = (
    *(ast.Break, ast.Continue, ast.Return, ast.Raise),
    *(ast.Yield, ast.YieldFrom, ast.Await),
)

#: statements that hold no others
SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)


class Block(NamedTuple):
    """Statements that follow one another."""

    statements: list[ast.stmt]
    #: the innermost around them
    function: ast.FunctionDef | ast.AsyncFunctionDef | None


class Call(NamedTuple):
    """A call in the source."""

    #: its last name: "item" of `loss.item()`, "cat" of `torch.cat(...)`
    name: str
    line: int
    in_loop: bool
    node: ast.Call

    @property
    def text(self) -> str:
        """Give the call as it may be printed."""
        return written(self.node)

    @property
    def receiver(self) -> str:
        """Give what is before the last dot, "loss" of `loss.item()`; may be empty."""
        function = self.node.func
        return written(function.value) if isinstance(function, ast.Attribute) else ""


class Constant(NamedTuple):
    """A constant that is assigned, and where it stands."""

    #: "torch.backends.cudnn.benchmark"
    target: str
    value: object
    line: int
    node: ast.Constant


_SCOPES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


class CellCode:
    """What is asked of a cell's source."""

    def __init__(self, source: str | None) -> None:
        self._tree: ast.Module | None = None
        self.source = source or ""
        if source is None or len(source) > MOST_CHARACTERS:
            return
        try:
            tree = ast.parse(_MAGIC.sub(r"\1pass", source))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        if _is_moderate(tree):
            self._tree = tree

    @property
    def is_known(self) -> bool:
        """Tell whether there is anything to ask."""
        return self._tree is not None

    @property
    def tree(self) -> ast.Module:
        """Give the syntax tree; an empty one where the source is not known."""
        return self._tree or ast.Module(body=[], type_ignores=[])

    @cached_property
    def uses(self) -> collections.Counter[str]:
        """Count how often the source reads or sets each name."""
        return collections.Counter(
            node.id for node in walk(self.tree) if isinstance(node, ast.Name)
        )

    @cached_property
    def order(self) -> NameOrder:
        """Tell whether the source sets or reads each name first."""
        return NameOrder(self.tree)

    @cached_property
    def _calls(self) -> tuple[Call, ...]:
        return () if self._tree is None else tuple(_calls(self._tree))

    def calls(self, *names: str, in_loop: bool | None = None) -> tuple[Call, ...]:
        """Give the calls of functions or methods with these last names, in order."""
        return tuple(
            call
            for call in self._calls
            if call.name in names and in_loop in (None, call.in_loop)
        )

    def model_call(self) -> Call | None:
        """Give the call of a model or function of the cell's own, one in a loop first.

        Of `criterion(model(x), y)` it is the inner one.
        """
        # of a `with`, and what a loop goes over
        managers = {
            part
            for node in walk(self.tree)
            for part in (
                *(item.context_expr for item in getattr(node, "items", ())),
                getattr(node, "iter", None),
            )
        }
        own = [
            call
            for call in self._calls
            if isinstance(call.node.func, ast.Name)
            and call.node.args
            and call.node not in managers
            and call.name not in STANDARD
            # a class, as DataLoader
            and not call.name[0].isupper()
        ]
        nodes = {call.node for call in own}
        inner = [call for call in own if nodes.isdisjoint(_inside(call.node))]
        return next((call for call in inner if call.in_loop), next(iter(inner), None))

    def first_line(self, *names: str, in_loop: bool | None = None) -> int | None:
        """Give the line of the first such call."""
        return next((call.line for call in self.calls(*names, in_loop=in_loop)), None)

    def constants(self) -> tuple[Constant, ...]:
        """Give what is set to a constant, `a.b = True` or `d["c"] = "1"`."""
        return tuple(
            Constant(ast.unparse(target), node.value.value, node.lineno, node.value)
            for node in walk(self.tree)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
        )


def _is_moderate(tree: ast.AST) -> bool:
    """Tell whether a tree is not nested too deep, and holds no too long number."""
    level, levels = [tree], 0
    while level and levels <= _MOST_LEVELS:
        for node in level:
            value = node.value if isinstance(node, ast.Constant) else None
            if isinstance(value, int) and value.bit_length() > _MOST_BITS:
                return False
        level, levels = [part for node in level for part in parts_of(node)], levels + 1
    return not level


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """Names of the fields of a kind of node that may hold others."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        self[kind] = names = tuple(one for one in kind._fields if one not in _PLAIN)
        return names


_FIELDS = _Fields()


def parts_of(node: ast.AST) -> list[ast.AST]:
    """Give the nodes right below one, but for contexts (`ast.Load`)."""
    parts: list[ast.AST] = []
    for name in _FIELDS[type(node)]:
        part = getattr(node, name, None)
        if isinstance(part, ast.AST):
            parts.append(part)
        elif isinstance(part, list):
            for one in part:
                if isinstance(one, ast.AST):
                    parts.append(one)
    return parts


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Give a node and all below it as `ast.walk` does, in a third of its time."""
    nodes = [node]
    for one in nodes:
        nodes += parts_of(one)
        yield one


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    return (part for part in walk(node) if part is not node)


def blocks(tree: ast.Module) -> Iterator[Block]:
    """Give all blocks of a source."""
    stack = [Block(tree.body, None)]
    while stack:
        block = stack.pop()
        yield block
        for statement in block.statements:
            function = block.function
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                function = statement
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(statement, name, None)
                if inner:
                    stack.append(Block(inner, function))


def written(node: ast.AST) -> str:
    """Write a piece of code in one line, cut where it is long."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _MOST_SKETCH else text[: _MOST_SKETCH - 1] + "…"


def replaced(statement: ast.stmt, part: ast.expr, text: str) -> str:
    """Write a statement with another expression in place of a part of it."""
    memo: dict[int, ast.AST] = {}
    changed = copy.deepcopy(statement, memo)
    gone, instead = memo[id(part)], ast.parse(text, mode="eval").body
    for node in walk(changed):
        for field, value in ast.iter_fields(node):
            if value is gone:
                setattr(node, field, instead)
            elif isinstance(value, list) and gone in value:
                value[value.index(gone)] = instead
    return ast.unparse(changed)


def stored_names(tree: ast.AST) -> set[str]:
    """Give the names that code sets."""
    return {
        node.id
        for node in walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def leaves(tree: ast.AST) -> bool:
    """Tell whether code may leave its block before its end."""
    return any(isinstance(one, _LEAVING) for one in walk(tree))


def only_deleted_names(tree: ast.AST) -> set[str]:
    """Give the names that code deletes and does not set."""
    names = [node for node in walk(tree) if isinstance(node, ast.Name)]
    deleted = {one.id for one in names if isinstance(one.ctx, ast.Del)}
    return deleted - stored_names(tree)


def bound_names(tree: ast.AST) -> set[str]:
    """Return the names that code binds, in functions too."""
    names = set()
    for node in walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                names.add(name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                names.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                names.add(name)
            case ast.alias():
                names.add((node.asname or node.name).split(".")[0])
    return names


def names_in(tree: ast.AST) -> set[str]:
    """Return the names that code reads or binds."""
    read = {node.id for node in walk(tree) if isinstance(node, ast.Name)}
    return read | bound_names(tree)


class NameOrder:
    """Whether code sets a name before it reads it, or reads it first."""

    def __init__(self, *parts: ast.AST) -> None:
        self.read_first: set[str] = set()
        self.set_first: set[str] = set()
        #: of functions
        self._local: set[str] = set()
        for part in parts:
            self._visit(part)

    @property
    def own(self) -> set[str]:
        """Give the names that nothing before the code set for it."""
        return (self.set_first | self._local) - self.read_first

    def _visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name):
            self._note(node.id, isinstance(node.ctx, ast.Load))
            return
        if isinstance(node, _SCOPES):
            self._visit_scope(node)
            return
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self._note(node.target.id, True)
        # values are computed before names are set to them
        value = getattr(node, "value", getattr(node, "iter", None))
        if isinstance(value, ast.AST):
            self._visit(value)
        for part in parts_of(node):
            if part is not value:
                self._visit(part)

    def _note(self, name: str, is_read: bool) -> None:
        first, others = self.read_first, self.set_first
        if not is_read:
            first, others = others, first
        if name not in others:
            first.add(name)

    def _visit_scope(self, node: ast.AST) -> None:
        generators = getattr(node, "generators", [])
        inner = NameOrder(*generators, *parts_of(node))
        arguments = {one.arg for one in walk(node) if isinstance(one, ast.arg)}
        self.read_first |= inner.read_first - arguments - self.set_first
        if not generators:
            self._local |= inner.own


def _calls(tree: ast.Module) -> Iterator[Call]:
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, in_loop = stack.pop()
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            if name:
                yield Call(name, node.lineno, in_loop, node)
        inside = in_loop or isinstance(node, _LOOPS)
        stack.extend((part, inside) for part in reversed(parts_of(node)))


def last_name(function: ast.expr) -> str:
    """Give the last name of what is called, "cat" of `torch.cat`."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""

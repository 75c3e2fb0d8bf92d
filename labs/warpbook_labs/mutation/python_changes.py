"""Mistakes in Python that need its syntax tree: host code, plans and Triton."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from warpbook_labs.mutation.edits import Change
from warpbook_labs.mutation.token_changes import rule_changes, token_changes

_OPPOSITE = {ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"}
_ORDERING = re.compile(r"sync|wait|barrier|fence|record")
_PLACES_OF_MASKS = {"load": 1, "store": 2}


def python_changes(source: str) -> Iterator[Change]:
    """Yield mistakes of a source in Python, its launch rule too.

    Raises:
        SyntaxError: it is no Python.
    """
    yield from rule_changes(source)
    yield from token_changes(source, ".py")
    tree = _Tree(source)
    for node in ast.walk(ast.parse(source)):
        yield from tree.expression(node)
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                yield from tree.left_out(node, statements)


class _Tree:
    def __init__(self, source: str) -> None:
        self._source, self._lines = source, source.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def expression(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                if new := _OPPOSITE.get(type(op)):
                    begin, end = self._span(left)[1], self._span(right)[0]
                    yield Change("comparison", begin, end, f" {new} ")
            case ast.If(test=test) | ast.IfExp(test=test):
                yield self._new("condition", test, "True")
                yield self._new("condition", test, "False")
            case ast.BoolOp(op=op, values=values):
                for value in values:
                    yield self._new("condition", value, str(isinstance(op, ast.And)))
            case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
                yield self._new("mask", node, f"({self._text(left)})")
                yield self._new("mask", node, f"({self._text(right)})")
            case ast.keyword(arg="mask" | "other", value=value):
                yield self._new("mask", value, "None")
            case ast.Slice(upper=ast.expr() as upper) if self._text(
                upper
            ).isidentifier():
                yield self._new("tail", upper, f"{self._text(upper)} - 1")
            case ast.Call(func=ast.Name("range"), args=[*_, stop]) if (
                len(node.args) < 3
            ):
                yield self._new("tail", stop, f"{self._text(stop)} - 1")
            case ast.Call(func=ast.Attribute(attr=name), args=arguments):
                place = _PLACES_OF_MASKS.get(name, len(arguments))
                for mask in arguments[place : place + 1]:
                    yield self._new("mask", mask, "None")

    def left_out(self, parent: ast.AST, body: Sequence[ast.AST]) -> Iterator[Change]:
        """Yield changes that leave a statement of a body out."""
        known: set[str] = set()
        in_branch = isinstance(parent, (ast.If, ast.For, ast.While))
        for statement in body:
            match statement:
                case ast.Expr(ast.Call(func=called)):
                    is_ordering = _ORDERING.search(self._text(called))
                    operator = "barrier" if is_ordering else "statement"
                    yield self._new(operator, statement, "pass")
                case ast.AugAssign() | ast.Continue() | ast.Break() | ast.Raise():
                    yield self._new("statement", statement, "pass")
                case ast.Return() if in_branch:
                    yield self._new("statement", statement, "pass")
                case ast.Assign(targets=[ast.Attribute()]):
                    yield self._new("state", statement, "pass")
                case ast.Assign(targets=[ast.Subscript()]):
                    yield self._new("statement", statement, "pass")
                case ast.Assign(targets=[ast.Name(name)]):
                    # a name without a value is no subtle mistake
                    if in_branch or name in known:
                        yield self._new("statement", statement, "pass")
                    known.add(name)
                case ast.With(items=[ast.withitem(place, None)]):
                    begin, end = self._span(statement)[0], self._span(place)[1]
                    yield Change("context", begin, end, "if True")

    def _new(self, operator: str, node: ast.expr | ast.stmt, new: str) -> Change:
        return Change(operator, *self._span(node), new)

    def _text(self, node: ast.expr) -> str:
        begin, end = self._span(node)
        return self._source[begin:end]

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        return (
            self._at(node.lineno, node.col_offset),
            self._at(node.end_lineno or 1, node.end_col_offset or 0),
        )

    def _at(self, line: int, column: int) -> int:
        """Return the offset of a place, of which the tree counts UTF-8's bytes."""
        before = self._lines[line - 1].encode()[:column]
        return self._starts[line - 1] + len(before.decode())

"""Attention by hand in a cell's source: what it calls its tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.cell_code import CellCode, written

_PRODUCTS = ("matmul", "bmm")
_TURNS = ("transpose", "swapaxes", "swapdims")
#: names that lead from one to the next are followed no further
_MOST_STEPS = 8


class AttentionCode(NamedTuple):
    """`result = softmax(query @ key.mT) @ value`, as the cell writes it."""

    result: str
    query: str
    key: str
    value: str
    #: what is left out of the softmax; empty without a `masked_fill`
    left_out: str


def attention_code(code: CellCode) -> AttentionCode | None:
    """Find the first attention in a source; None without one."""
    values = _values(code.tree)
    for statement in ast.walk(code.tree):
        if not isinstance(statement, ast.Assign):
            continue
        for weights, value in _products(statement.value):
            inside = list(_reached(weights, values))
            if not any(_name(node) == "softmax" for node in inside):
                continue
            for node in inside:
                for query, key in _products(node):
                    return AttentionCode(
                        written(statement.targets[0]),
                        written(query),
                        _turned_back(key),
                        written(value),
                        _left_out(inside),
                    )
    return None


def _values(tree: ast.Module) -> dict[str, list[ast.expr]]:
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    values.setdefault(target.id, []).append(node.value)
    return values


def _reached(root: ast.expr, values: dict[str, list[ast.expr]]) -> Iterator[ast.expr]:
    """Give the expressions within one, and within what its names were set to."""
    steps, seen = [root], set[str]()
    for _ in range(_MOST_STEPS):
        following: list[ast.expr] = []
        for step in steps:
            for node in ast.walk(step):
                if isinstance(node, ast.Name) and node.id not in seen:
                    seen.add(node.id)
                    following += values.get(node.id, [])
                elif isinstance(node, ast.expr):
                    yield node
        steps = following


def _products(root: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Give what is multiplied with what, the outermost product first."""
    for node in ast.walk(root):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield node.left, node.right
        elif isinstance(node, ast.Call) and _name(node) in _PRODUCTS:
            function, arguments = node.func, list(node.args)
            if len(arguments) == 1 and isinstance(function, ast.Attribute):
                arguments.insert(0, function.value)
            if len(arguments) == 2:
                yield arguments[0], arguments[1]


def _name(node: ast.expr) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _turned_back(key: ast.expr) -> str:
    """Write the keys as they were before their last two axes were exchanged."""
    if isinstance(key, ast.Attribute) and key.attr in ("mT", "T"):
        return written(key.value)
    if isinstance(key, ast.Call) and isinstance(key.func, ast.Attribute):
        axes = sorted(written(argument) for argument in key.args)
        if key.func.attr in _TURNS and axes == ["-1", "-2"]:
            return written(key.func.value)
    # which axes they are depends on sizes: turned once more they are right anyway
    text = written(key)
    is_simple = isinstance(key, ast.Name | ast.Call | ast.Attribute | ast.Subscript)
    return f"{text if is_simple else f'({text})'}.mT"


def _left_out(inside: list[ast.expr]) -> str:
    for node in inside:
        if isinstance(node, ast.Call) and _name(node).startswith("masked_fill"):
            if node.args:
                text = written(node.args[0])
                return text if isinstance(node.args[0], ast.Name) else f"({text})"
    return ""

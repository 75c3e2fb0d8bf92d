"""A softmax that is written by hand, as a call of torch's."""

from __future__ import annotations

import ast
from itertools import pairwise

from warpbook_profiler.advice.code.cell_code import CellCode, blocks, walk
from warpbook_profiler.advice.code.operations import Operation, operation
from warpbook_profiler.advice.code.source_edit import SourceEdit

_LARGEST = ("max", "amax")


def with_softmax(code: CellCode) -> CellCode:
    """Write `e = exp(s - s.amax(…))` and then `e / e.sum(…)` as `softmax(s, …)`."""
    edit, is_changed = SourceEdit(code), False
    for block in blocks(code.tree):
        for exponents, divides in pairwise(block.statements):
            match exponents:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    pass
                case _:
                    continue
            found = operation(value)
            shares = [part for part in walk(divides) if _is_share(part, name)]
            if found is None or found.name != "exp" or len(shares) != 1:
                continue
            (share,) = shares
            scores, axes = _scores(found.operands[0]), _axes(share)
            if not isinstance(share, ast.expr) or not axes:
                continue
            softmax = f"{edit.torch}.softmax({ast.unparse(scores)}, dim={axes})"
            edit.replace(share, softmax)
            edit.delete(exponents)
            is_changed = True
    text = edit.source() if is_changed else ""
    return CellCode(text) if text else code


def _is_share(node: ast.AST, name: str) -> bool:
    """Tell whether it is `e / e.sum(…)`."""
    match node:
        case ast.BinOp(left=ast.Name(id=one), op=ast.Div(), right=right):
            pass
        case _:
            return False
    match operation(right):
        case Operation("sum", [ast.Name(id=other), *_]):
            return one == other == name
    return False


def _axes(share: ast.AST) -> str:
    """Write the axes of the sum; empty where it has none."""
    found = operation(share.right) if isinstance(share, ast.BinOp) else None
    if found is None:
        return ""
    told = [*found.operands[1:2], *map(found.keywords.get, ("dim", "axis"))]
    return next((ast.unparse(one) for one in told if one is not None), "")


def _scores(node: ast.expr) -> ast.expr:
    """Return what exponents are of, without its largest."""
    match operation(node):
        case Operation("sub", [scores, largest]):
            pass
        case _:
            return node
    match largest:
        case ast.Attribute(attr="values", value=value) | ast.Subscript(value=value):
            largest = value
    match operation(largest):
        case Operation(name, [of, *_]) if name in _LARGEST:
            return scores if ast.dump(of) == ast.dump(scores) else node
    return node

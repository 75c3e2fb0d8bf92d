"""What attention by hand leaves out of its scores, as masks of a fused call."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from warpbook_profiler.advice.code.operations import Operation, operation

#: they give the elements that they are given, of another shape or dtype
_SAME = frozenset("to type type_as bool float view reshape unsqueeze expand".split())
_NOT = ("logical_not", "bitwise_not")
_ONES = ("ones", "new_ones", "full")
#: names of a mask that are looked up
_MOST_NAMES = 4
_INFINITE = frozenset(
    ("-float('inf')", "float('-inf')", "-math.inf", "-torch.inf", "-np.inf")
)
#: of scores, from which on none has a weight beside others
_VERY_SMALL = -1e4


def is_causal(mask: ast.expr, is_kept: bool, before: Sequence[ast.stmt]) -> bool:
    """Tell whether a mask leaves out what comes later, and nothing else.

    Args:
        mask: where it is true (a bias: where it is not 0), or what sets that.
        is_kept: scores are kept there, else left out.
        before: statements that may set its names.
    """
    for _ in range(_MOST_NAMES):
        mask, is_kept = _inner(mask, is_kept)
        if not isinstance(mask, ast.Name):
            break
        values = [_set(one, mask.id) for one in before]
        known = [one for one in values if one is not None]
        if len(known) != 1:
            return False
        (mask,) = known
    match mask, operation(mask):
        case _, Operation("tril", [ones], keywords) if not keywords:
            return is_kept and _is_ones(ones)
        case _, Operation("triu", [ones, ast.Constant(value=1)], keywords) if (
            not keywords
        ):
            return not is_kept and _is_ones(ones)
        case _, Operation("triu", [ones], {"diagonal": ast.Constant(value=1)}):
            return not is_kept and _is_ones(ones)
        case ast.Compare(left=left, ops=[op], comparators=[right]), _:
            if isinstance(op, ast.Lt | ast.LtE):
                left, right = right, left
            is_equal = isinstance(op, ast.GtE | ast.LtE)
            if not isinstance(op, ast.Gt | ast.Lt | ast.GtE | ast.LtE):
                return False
            # rows >= columns are kept, columns > rows are not
            rows, columns = (left, right) if is_kept else (right, left)
            return is_equal == is_kept and _are_places(rows, columns, before)
    return False


def is_lowest(value: ast.expr, before: Sequence[ast.stmt], is_sure: bool) -> bool:
    """Tell whether scores of this value get no weight.

    Args:
        value: what is filled in.
        before: statements that may set its name.
        is_sure: it is infinite whatever the other scores are.
    """
    if isinstance(value, ast.Name) and not is_sure:
        known = [one for at in before if (one := _set(at, value.id)) is not None]
        value = known[-1] if known else value
    text = ast.unparse(value)
    if text in _INFINITE:
        return True
    try:
        number = float(ast.literal_eval(value))
    except (ValueError, TypeError, SyntaxError):
        return not is_sure and ".min" in text and "finfo" in text
    return not is_sure and number <= _VERY_SMALL


def _inner(mask: ast.expr, is_kept: bool) -> tuple[ast.expr, bool]:
    """Return what a mask is made of by its negation, its shape or its dtype."""
    while True:
        match mask, operation(mask):
            case ast.UnaryOp(op=ast.Invert(), operand=inner), _:
                is_kept = not is_kept
            case (
                ast.Compare(left=inner, ops=[op], comparators=[ast.Constant(value=to)]),
                _,
            ) if isinstance(op, ast.Eq | ast.NotEq):
                is_kept ^= isinstance(op, ast.Eq) != bool(to)
            case _, Operation(name, [inner]) if name in _NOT:
                is_kept = not is_kept
            case _, Operation(name, [inner, *_]) if name in _SAME:
                pass
            case ast.Subscript(value=inner, slice=index), _ if (
                # None and ":" alone
                not any(isinstance(one, ast.Name | ast.Call) for one in ast.walk(index))
            ):
                pass
            case _:
                return mask, is_kept
        mask = inner


def _is_ones(node: ast.expr) -> bool:
    """Tell whether a matrix has the same in each element."""
    while (found := operation(node)) and found.name in _SAME and found.operands:
        node = found.operands[0]
    match node:
        case ast.Call(func=ast.Attribute(attr=name), args=sizes):
            return name in _ONES and len(sizes) >= 1
    return False


def _are_places(rows: ast.expr, columns: ast.expr, before: Sequence[ast.stmt]) -> bool:
    """Tell whether both are the same `arange`, as a column and as a row."""
    row, column = _place(rows), _place(columns)
    if row is None or column is None or row[1] != "column" or column[1] == "column":
        return False
    if ast.dump(row[0]) != ast.dump(column[0]):
        return False
    node = row[0]
    values = [node]
    if isinstance(node, ast.Name):
        values = [one for at in before if (one := _set(at, node.id)) is not None]
    found = operation(values[0]) if len(values) == 1 else None
    return found is not None and found.name == "arange" and len(found.operands) == 1


def _place(node: ast.expr) -> tuple[ast.expr, str] | None:
    match node, operation(node):
        case ast.Subscript(value=inner, slice=index), _:
            text = ast.unparse(index).strip("()")
            if text in (":, None", "None, :", "None"):
                return inner, "column" if text == ":, None" else "row"
        case _, Operation("unsqueeze", [inner, ast.Constant(value=(0 | 1) as at)]):
            return inner, "column" if at else "row"
        case _, Operation("view" | "reshape", [inner, *sizes]):
            text = ", ".join(map(ast.unparse, sizes))
            if text in ("-1, 1", "1, -1"):
                return inner, "column" if text == "-1, 1" else "row"
        case ast.Name() | ast.Call(), _:
            return node, "row"
    return None


def _set(statement: ast.stmt, name: str) -> ast.expr | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
            return value
    return None

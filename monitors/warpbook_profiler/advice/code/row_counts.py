"""Whether the numbers that a loop counts are places of a tensor's rows."""

from __future__ import annotations

import ast

from warpbook_profiler.advice.code.value_flow import ValueFlow


def counts_rows(
    flow: ValueFlow,
    loop: ast.stmt,
    count: tuple[ast.expr | None, ast.expr],
    whole: str,
    axis: int,
) -> bool:
    """Tell whether a count begins at a row that is no negative, and ends in time.

    Args:
        flow: of the cell.
        loop: that counts.
        count: from where, None for zero, and up to where.
        whole: the name of the tensor.
        axis: of its rows.
    """
    start = 0 if count[0] is None else _begin(flow, loop, count[0])
    end = count[1]
    if start is None:
        return False
    if isinstance(end, ast.Name):
        settings = flow.settings(end.id) if flow.is_set_once(end.id) else []
        match settings:
            case [ast.Assign(targets=[target], value=value) as setting] if flow.is_same(
                whole, setting, loop
            ):
                pass
            case _:
                return False
        if isinstance(target, ast.Tuple):
            # "steps, rows, width = x.shape"
            names = [ast.unparse(one) for one in target.elts]
            is_shape = ast.unparse(value) in (f"{whole}.shape", f"{whole}.size()")
            return is_shape and names[axis : axis + 1] == [end.id]
        end = value
    if isinstance(end, ast.Constant):
        return type(end.value) is int and end.value > start
    sizes = [f"{whole}.shape[{axis}]", f"{whole}.size({axis})"]
    return ast.unparse(end) in sizes + [f"len({whole})"] * (axis == 0)


def _begin(flow: ValueFlow, loop: ast.stmt, start: ast.expr) -> int | None:
    """Give where a count begins; None where that is not known, or below zero."""
    if isinstance(start, ast.Name):
        inside = set(ast.walk(loop))
        match [one for one in flow.settings(start.id) if one not in inside]:
            case [ast.Assign(targets=[target], value=value) as setting] if (
                flow.parent(setting) is flow.parent(loop)
                and setting.lineno < loop.lineno
            ):
                pass
            case _:
                return None
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            names = map(ast.unparse, target.elts)
            value = dict(zip(names, value.elts, strict=False)).get(start.id, value)
        start = value
    match start:
        case ast.Constant(value=int(count)) if count >= 0:
            return count
    return None

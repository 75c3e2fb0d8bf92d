"""Which part of one axis of a tensor an expression takes."""

from __future__ import annotations

import ast

from warpbook_profiler.advice.code.cell_code import last_name


def axis_cut(
    cut: ast.AST | None, rank: int
) -> tuple[int | None, ast.expr | None, ast.expr | None]:
    """Read `[:, :k]`, `[..., -k:]`, `[:, 3]`, `.narrow(1, 0, k)`, `.select(1, 3)`.

    Methods of a tensor may be functions of torch.

    Returns:
        the axis, None if unsure, and where on it the cut begins and ends.
    """
    nothing = None, None, None
    if isinstance(cut, ast.Call):
        name, given = last_name(cut.func), _arguments(cut)
        try:
            axis = ast.literal_eval(given["dim"])
        except (KeyError, ValueError):
            return nothing
        if type(axis) is not int:
            return nothing
        if name == "narrow" and given.keys() == {"dim", "start", "length"}:
            is_first = ast.unparse(given["start"]) == "0"
            return (axis % rank, None, given["length"]) if is_first else nothing
        if name == "select" and given.keys() == {"dim", "index"}:
            return axis % rank, *_one(given["index"])
        return nothing
    if not isinstance(cut, ast.Subscript):
        return nothing
    index = cut.slice
    *before, last = index.elts if isinstance(index, ast.Tuple) else [index]
    texts = [ast.unparse(one) for one in before]
    if texts == ["..."]:
        axis = rank - 1
    elif all(text == ":" for text in texts):
        axis = len(before)
    else:
        return nothing
    if isinstance(last, ast.Slice):
        return nothing if last.step else (axis, last.lower, last.upper)
    return axis, *_one(last)


def _arguments(call: ast.Call) -> dict[str, ast.expr]:
    """Return what a part of a tensor is taken by, by the names of the parameters."""
    names = ["dim", "start", "length"]
    if last_name(call.func) == "select":
        names = ["dim", "index"]
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    is_function = ast.unparse(receiver) == "torch"
    given = call.args[is_function:]
    if len(given) > len(names) or any(isinstance(one, ast.Starred) for one in given):
        return {}
    found = dict(zip(names, given, strict=False))
    return found | {one.arg or "": one.value for one in call.keywords}


def _one(place: ast.expr) -> tuple[ast.expr | None, ast.expr | None]:
    """Return from where to where the elements are of which one place is the last."""
    match place:
        case ast.UnaryOp(op=ast.USub()):
            return place, None
        case ast.Constant(value=int(number)):
            return None, ast.Constant(number + 1)
        case ast.BinOp(left=count, op=ast.Sub(), right=ast.Constant(value=1)):
            return None, count
    # a name may be a tensor's
    return None, None

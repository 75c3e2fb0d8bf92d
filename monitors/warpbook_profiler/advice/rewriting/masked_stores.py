"""Elements that a mask chooses and that are written anew, as a choice of the GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import CellCode, last_name
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.rewriting.turns import rewritten, values_of

#: methods and functions that give a mask
_MASKS = frozenset("isnan isinf isfinite logical_and logical_or logical_not".split())
_MASKS |= frozenset("bool gt lt ge le eq ne isclose isin".split())


class _Chosen(NamedTuple):
    """`x[mask]`, or `x[mask, 0]`."""

    mask: str
    #: all that it chooses from
    whole: str


def masked_stores(code: CellCode) -> Iterator[str]:
    """Write `x[mask] = f(x[mask], y[mask])` with all elements and torch.where."""
    edit, masks, is_changed = SourceEdit(code), mask_names(code), False
    for node in ast.walk(code.tree):
        match node:
            case ast.Assign(targets=[ast.Subscript() as target], value=value):
                pass
            case ast.AugAssign(target=ast.Subscript() as target, op=op, value=other):
                value = ast.BinOp(target, op, other)
            case _:
                continue
        chosen = _chosen(target, masks)
        new = None if chosen is None else _of_all(value, chosen.mask, masks)
        if chosen is None or new is None:
            continue
        mask, whole = edit.free_name("chosen"), chosen.whole
        edit.before(node, f"{mask} = {chosen.mask}")
        # one of rows chooses all that is in them
        rows = f"{mask}[(..., *[None] * ({whole}.dim() - {mask}.dim()))]"
        edit.replace(node, f"{whole}.copy_({edit.torch}.where({rows}, {new}, {whole}))")
        is_changed = True
    text = edit.source() if is_changed else ""
    if text:
        yield text


def _of_all(value: ast.expr, mask: str, masks: set[str]) -> str | None:
    """Write what is stored for all elements; None where it has none of the mask's."""
    is_found = False

    def instead(node: ast.expr) -> ast.expr | None:
        nonlocal is_found
        chosen = _chosen(node, masks)
        if chosen is None or chosen.mask != mask:
            return None
        is_found = True
        return ast.parse(chosen.whole, mode="eval").body

    text = rewritten(ast.Expr(value), instead)
    return text if is_found else None


def _chosen(node: ast.expr, masks: set[str]) -> _Chosen | None:
    match node:
        case ast.Subscript(value=whole, slice=ast.Tuple(elts=[mask, *others])):
            rows = f"{ast.unparse(whole)}[:, {', '.join(map(ast.unparse, others))}]"
        case ast.Subscript(value=whole, slice=mask):
            rows = ast.unparse(whole)
        case _:
            return None
    if any(isinstance(part, ast.Call) for part in ast.walk(whole)):
        return None
    return _Chosen(ast.unparse(mask), rows) if is_mask(mask, masks) else None


def mask_names(code: CellCode) -> set[str]:
    """Return the names that are only ever set to masks."""
    values, masks, left = values_of(code.tree), set[str](), {""}
    while left:
        left = {
            name
            for name, made in values.items()
            if all(one is not None and is_mask(one, masks) for one in made)
        } - masks
        masks |= left
    return masks


def is_mask(node: ast.expr, masks: set[str]) -> bool:
    """Tell whether an expression is a mask: of these names, a comparison and so on."""
    match node:
        case ast.Name(id=name):
            return name in masks or "mask" in name.lower()
        case ast.Compare(ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]):
            return True
        case ast.Compare(ops=[ast.Eq() | ast.NotEq()]):
            return True
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            return is_mask(inner, masks)
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() | ast.BitXor()):
            return is_mask(left, masks) or is_mask(node.right, masks)
        case ast.Call(func=function):
            return last_name(function) in _MASKS
    return False

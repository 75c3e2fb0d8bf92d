"""Tensors that are made where they are copied to, whoever makes them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpbook_profiler.advice.code.cell_code import (
    SIMPLE,
    CellCode,
    blocks,
    last_name,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit

_DTYPES = ("float", "double", "half", "bfloat16", "int", "long", "bool", "uint8")


def made_there(code: CellCode) -> Iterator[str]:
    """Let what a statement calls make its tensors on the device that it copies to.

    All such statements first, then each.
    """
    found = list(_moving(code.tree))
    for some in [found, *([one] for one in found)] if len(found) > 1 else [found]:
        edit = SourceEdit(code)
        for statement, device in some:
            where = edit.text(device) if isinstance(device, ast.expr) else device
            edit.under([statement], f"{edit.torch}.device({where})")
        if text := edit.source():
            yield text


def _moving(tree: ast.Module) -> Iterator[tuple[ast.stmt, ast.expr | str]]:
    """Give statements that copy what is computed within them, and where to."""
    for block in blocks(tree):
        for statement in block.statements:
            if isinstance(statement, SIMPLE):
                places = map(_device, ast.walk(statement))
                place = next((one for one in places if one is not None), None)
                if place is not None:
                    yield statement, place


def _device(node: ast.AST) -> ast.expr | str | None:
    """Give the device that something a call gives is copied to."""
    match node:
        case ast.Call(func=ast.Attribute(attr="to", value=value), args=[device, *_]):
            place: ast.expr | str = device
        case ast.Call(
            func=ast.Attribute(attr="to", value=value),
            keywords=[ast.keyword(arg="device", value=device)],
        ):
            place = device
        case ast.Call(func=ast.Attribute(attr="cuda", value=value), args=[]):
            place = '"cuda"'
        case _:
            return None
    calls = [part for part in ast.walk(value) if isinstance(part, ast.Call)]
    # NumPy's memory is the host's
    is_made = any(last_name(part.func) != "from_numpy" for part in calls)
    name = ast.unparse(device) if isinstance(place, ast.expr) else ""
    is_dtype = name.endswith("dtype") or name.removeprefix("torch.").startswith(_DTYPES)
    return place if is_made and not is_dtype else None

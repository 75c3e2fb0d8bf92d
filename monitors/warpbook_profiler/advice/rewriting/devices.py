"""Tensors that are made where they are copied to, whoever makes them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import (
    SIMPLE,
    CellCode,
    blocks,
    last_name,
    names_in,
    stored_names,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit

_DTYPES = ("float", "double", "half", "bfloat16", "int", "long", "bool", "uint8")


class _Move(NamedTuple):
    """A copy to a device."""

    block: list[ast.stmt]
    #: of the block
    statement: ast.stmt
    value: ast.expr
    device: ast.expr | str


def made_there(code: CellCode) -> Iterator[str]:
    """Have what is copied to a device be made there: its statement, and those before.

    All such statements first, then each.
    """
    found = [(move, list(_making(move))) for move in _moves(code.tree)]
    found = [(move, groups) for move, groups in found if groups]
    for some in [found, *([one] for one in found)] if len(found) > 1 else [found]:
        edit, done = SourceEdit(code), set[ast.stmt]()
        for move, groups in some:
            device = move.device
            where = edit.text(device) if isinstance(device, ast.expr) else device
            for group in groups:
                if done.isdisjoint(group):
                    done.update(group)
                    edit.under(group, f"{edit.torch}.device({where})")
        if text := edit.source():
            yield text


def _making(move: _Move) -> Iterator[list[ast.stmt]]:
    """Give the statements that make what is copied, those next to one another as one.

    What comes before the device's names are set stays.
    """
    device = names_in(move.device) if isinstance(move.device, ast.expr) else set[str]()
    group = [move.statement] if _calls(move.value) else []
    read = _read(move.value)
    for statement in reversed(move.block[: move.block.index(move.statement)]):
        stored = {*stored_names(statement), *_filled(statement)}
        if stored & device:
            break
        makes = bool(stored & read)
        read |= _read(statement) if makes else set()
        if makes and _calls(statement):
            group.insert(0, statement)
            continue
        if group:
            yield group
        group = []
    if group:
        yield group


def _calls(node: ast.AST) -> bool:
    """Tell whether something is called that may make a tensor."""
    calls = (one for one in ast.walk(node) if isinstance(one, ast.Call))
    # NumPy's memory is the host's
    return any(last_name(one.func) != "from_numpy" for one in calls)


def _read(node: ast.AST) -> set[str]:
    """Give the names that are read, but not those of what is called."""
    called = {
        one.func
        for one in ast.walk(node)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)
    }
    return {
        one.id
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and one not in called
    }


def _filled(statement: ast.stmt) -> Iterator[str]:
    """Give names of tensors that a statement writes to."""
    for node in ast.walk(statement):
        match node:
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                yield name
            case ast.Call(func=ast.Attribute(attr=method, value=ast.Name(id=name))):
                if method.endswith("_"):
                    yield name


def _moves(tree: ast.Module) -> Iterator[_Move]:
    """Give the first copy of each statement."""
    for block in blocks(tree):
        for statement in block.statements:
            if isinstance(statement, SIMPLE):
                found = map(_moved, ast.walk(statement))
                move = next((one for one in found if one is not None), None)
                if move is not None:
                    yield _Move(block.statements, statement, *move)


def _moved(node: ast.AST) -> tuple[ast.expr, ast.expr | str] | None:
    """Give what is copied to a device, and which."""
    match node:
        case ast.Call(func=ast.Attribute(attr="to", value=value), args=[device, *_]):
            pass
        case ast.Call(
            func=ast.Attribute(attr="to", value=value),
            keywords=[ast.keyword(arg="device", value=device), *_],
        ):
            pass
        case ast.Call(func=ast.Attribute(attr="cuda", value=value), args=[]):
            return value, '"cuda"'
        case _:
            return None
    name = ast.unparse(device)
    is_dtype = name.endswith("dtype") or name.removeprefix("torch.").startswith(_DTYPES)
    return None if is_dtype else (value, device)

"""A cell's code without a second stream."""

from __future__ import annotations

import ast
import copy

from warpbook_profiler.advice.cell_code import SIMPLE, CellCode, blocks

_WAITS = ("wait_stream", "wait_event")
_MOST_STATEMENTS = 6
_MOST_CHARACTERS = 400


def one_stream(code: CellCode) -> str:
    """Write the statements that wait for streams as they are on one stream.

    Returns:
        Nothing where they are in several blocks, or too many for a sketch.
    """
    text = _one_stream(code)
    return text if len(text) <= _MOST_CHARACTERS else ""


def _one_stream(code: CellCode) -> str:
    chosen = []
    for block in blocks(code.tree):
        numbers = [
            number
            for number, statement in enumerate(block.statements)
            if _waits(statement) or _on_stream(statement)
        ]
        if numbers:
            chosen.append(block.statements[numbers[0] : numbers[-1] + 1])
    if len(chosen) != 1:
        return ""
    kept: list[ast.stmt] = []
    for statement in chosen[0]:
        if _on_stream(statement):
            kept += _without_stream(statement)
        elif not _waits(statement):
            kept.append(statement)
    is_short = len(kept) <= _MOST_STATEMENTS
    if not is_short or not all(isinstance(part, (*SIMPLE, ast.With)) for part in kept):
        return ""
    return "\n".join(ast.unparse(statement) for statement in kept)


def _waits(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name))):
            return name in _WAITS
    return False


def _is_stream(item: ast.withitem) -> bool:
    call = item.context_expr
    return isinstance(call, ast.Call) and ast.unparse(call.func) == "torch.cuda.stream"


def _on_stream(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.With) and any(map(_is_stream, statement.items))


def _without_stream(statement: ast.stmt) -> list[ast.stmt]:
    """Give what a `with` runs, without its stream."""
    if not isinstance(statement, ast.With):
        return [statement]
    others = [item for item in statement.items if not _is_stream(item)]
    if not others:
        return statement.body
    changed = copy.copy(statement)
    changed.items = others
    return [changed]

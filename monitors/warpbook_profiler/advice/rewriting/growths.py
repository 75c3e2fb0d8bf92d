"""Tensors that a loop makes longer by cat, written to memory that is there before."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.rewriting.turns import loops_of

_JOINS = ("cat", "concat", "concatenate")
#: what cat promotes, or a gradient goes through, it still joins
_HELPER = """\
def {name}(whole, part, room, turns, dim=0):
    alike = whole.dim() == part.dim() and whole.dtype == part.dtype
    if not alike or whole.requires_grad or part.requires_grad:
        return {torch}.cat([whole, part], dim)
    before, more = whole.shape[dim], part.shape[dim]
    is_its = room and room[0].data_ptr() == whole.data_ptr()
    if not is_its or room[0].shape[dim] < before + more:
        shape = list(whole.shape)
        shape[dim] = max(before + more * turns, 2 * before * bool(room), before + more)
        room[:] = [whole.new_empty(shape)]
        room[0].narrow(dim, 0, before).copy_(whole)
    room[0].narrow(dim, before, more).copy_(part)
    return room[0].narrow(dim, 0, before + more)"""


def growths(code: CellCode) -> Iterator[str]:
    """Write each tensor that grows in a loop as a part of a longer one."""
    flow = ValueFlow(code)
    counts: dict[ast.AST, str] = {
        turns.node: turns.how_many for turns in loops_of(code.tree)
    }
    for statement in ast.walk(code.tree):
        grown = _grown(statement)
        loop = None if grown is None else flow.loop(statement)
        if grown is None or loop is None or not isinstance(statement, ast.Assign):
            continue
        name, part, dim = grown
        edit = SourceEdit(code)
        helper, room = edit.free_name("grown"), edit.free_name(f"room_for_{name}")
        begun = [*_HELPER.format(name=helper, torch=edit.torch).splitlines()]
        edit.before(loop, "\n".join([*begun, f"{room} = []"]))
        given = [name, edit.text(part), room, counts.get(loop) or "1", *dim]
        edit.replace(statement.value, f"{helper}({', '.join(given)})")
        text = edit.source()
        if text:
            yield text


def _grown(statement: ast.AST) -> tuple[str, ast.expr, list[str]] | None:
    """Return the name of what grows, what it grows by, and the axis."""
    match statement:
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(
                func=ast.Attribute(attr=join),
                args=[
                    ast.List(elts=[ast.Name(id=whole), part])
                    | ast.Tuple(elts=[ast.Name(id=whole), part]),
                    *axes,
                ],
                keywords=keywords,
            ),
        ) if join in _JOINS and whole == name:
            dims = [*axes, *(one.value for one in keywords if one.arg == "dim")]
            known = {one.arg for one in keywords} <= {"dim"} and len(dims) < 2
            return (name, part, [ast.unparse(one) for one in dims]) if known else None
    return None

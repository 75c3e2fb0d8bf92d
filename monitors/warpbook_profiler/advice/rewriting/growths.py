"""Tensors that joins make longer, written to memory that has room behind them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warpbook_profiler.advice.code.cell_code import CellCode, last_name
from warpbook_profiler.advice.code.read_code import times_set
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.rewriting.gathered_parts import joined_once

_JOINS = ("cat", "concat", "concatenate", "vstack")
_LEAVES = (ast.Return, ast.Yield, ast.YieldFrom)
_IN_ORDER = frozenset("view view_as as_strided stride is_contiguous data_ptr".split())
#: joins as torch does, unless what it joins to has room behind it
_JOIN = """\
def {}(whole, part, axis):
    length, more = whole.shape[axis], part.shape[axis]
    sizes, others = list(whole.shape), list(part.shape)
    sizes[axis] = others[axis] = length + max(length, more)
    grads = {torch}.is_grad_enabled() and (whole.requires_grad or part.requires_grad)
    if grads or whole.dtype != part.dtype or sizes != others:
        return {torch}.cat((whole, part), axis)
    room, filled = getattr(whole, "room", (None, [0]))
    if room is None or filled[0] != length or length + more > room.shape[axis]:
        room, filled = whole.new_empty(sizes), [length]
        room.narrow(axis, 0, length).copy_(whole)
    room.narrow(axis, length, more).copy_(part)
    filled[0] = length + more
    result = room.narrow(axis, 0, length + more)
    result.room = room, filled
    return result

"""


def growths(code: CellCode) -> Iterator[str]:
    """Write one join after the loop, and joins with room, as edits where they fit."""
    yield from filter(None, [joined_once(code, is_sure=False), allocated(code)])


def allocated(code: CellCode) -> str:
    """Write the cell with joins that leave room behind what they give.

    They are those of loops and functions, and of what an object or a mapping holds.
    """
    edit, flow, is_changed = SourceEdit(code), ValueFlow(code), False
    join = edit.free_name("joined")
    written, in_order = _written_in_place(code), _read_in_order(code)
    for call in code.calls(*_JOINS):
        match call.node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name("torch")),
                args=[ast.List(elts=[first, part]) | ast.Tuple(elts=[first, part]), *_],
            ):
                pass
            case _:
                continue
        axis, function = _axis(call.node), flow.function(call.node)
        statement, loop = flow.statement(call.node), flow.loop(call.node)
        places = _kept_in(statement, call.node, flow)
        origins = _origins(first, flow)
        lasts = {*map(_last, places), *origins.values()}
        if not axis or not flow.is_repeated(call.node) or lasts & written:
            continue
        # parts of longer rows do not follow one another in memory
        if axis != "0" and lasts & in_order:
            continue
        inside = ast.walk(getattr(function, "args", ast.Pass()))
        taken = {one.arg for one in inside if isinstance(one, ast.arg)}
        # what goes on from an argument, the caller is given back
        goes_on = {*origins, *(["return"] if taken & origins.keys() else [])}
        if goes_on.isdisjoint(ast.unparse(_whole(one)) for one in places):
            continue
        match statement, first:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Name(id=before) if (
                loop is not None and name == before
            ):
                leaves = any(isinstance(one, _LEAVES) for one in ast.walk(loop))
                is_aliased = flow.is_written(name)
                if leaves or is_aliased or times_set(loop, name) != 1:
                    continue
                # who takes it after the loop gets its own memory, without the room
                edit.after(loop, f"{name} = {name}.clone()")
        parts = [edit.text(first), edit.text(part)]
        if last_name(call.node.func) == "vstack":
            parts = [f"{edit.torch}.atleast_2d({one})" for one in parts]
        edit.replace(call.node, f"{join}({', '.join(parts)}, {axis})")
        is_changed = True
    edit.at_start(_JOIN.format(join, torch=edit.torch))
    return edit.source() if is_changed else ""


def _read_in_order(code: CellCode) -> set[str]:
    """Give the last names of what code reads as it lies in memory."""
    return {
        _last(node.value)
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Attribute) and node.attr in _IN_ORDER
    }


def _kept_in(
    statement: ast.stmt | None, join: ast.expr, flow: ValueFlow
) -> list[ast.expr]:
    """Give what keeps what a join gives, through a name that is set to it.

    What a function returns is kept by who calls it: `return` stands for that.
    """
    match statement:
        case ast.Assign(targets=[target], value=value) if join in _parts(value):
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                if join in value.elts and len(target.elts) == len(value.elts):
                    target = target.elts[value.elts.index(join)]
            kept = [target]
            if isinstance(target, ast.Name):
                for read in flow.reads(target.id):
                    if flow.function(read) is flow.function(join):
                        kept += _kept_in(flow.statement(read), read, flow)
            return kept
        case ast.Return(value=ast.expr() as value) if join in _parts(value):
            return [ast.Name("return", ast.Load())]
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(attr="append", value=kept), args=[value])
        ) if join in _parts(value):
            return [kept]
    return []


def _parts(value: ast.expr) -> list[ast.expr]:
    """Give a value, and what it holds if it is a tuple, list or dictionary."""
    match value:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            return [value, *(one for part in parts for one in _parts(part))]
    return [value]


def _origins(first: ast.expr, flow: ValueFlow) -> dict[str, str]:
    """Give what a value is a part of, with the last name of each."""
    found, left = dict[str, str](), [first]
    while left:
        one = _whole(left.pop())
        if ast.unparse(one) in found:
            continue
        found[ast.unparse(one)] = _last(one)
        if isinstance(one, ast.Name):
            # `k, v = cache[layer]` before it
            made = flow.settings(one.id)
            left += [it.value for it in made if isinstance(it, ast.Assign)]
            left += [it.iter for it in made if isinstance(it, ast.For)]
    return found


def _whole(place: ast.expr) -> ast.expr:
    while isinstance(place, ast.Subscript):
        place = place.value
    return place


def _last(target: ast.expr) -> str:
    """Give the last name of what is set: "keys" of `self.keys` and `keys[i]`."""
    target = _whole(target)
    return target.attr if isinstance(target, ast.Attribute) else ast.unparse(target)


def _written_in_place(code: CellCode) -> set[str]:
    """Give the last names of what code writes into: joins would share that."""
    names = set[str]()
    for node in ast.walk(code.tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name, value=target)) if name.endswith(
                "_"
            ):
                names.add(_last(target))
            case ast.AugAssign(target=target):
                names.add(_last(target))
            case ast.Subscript(value=target, slice=ast.Slice() | ast.Tuple()) if (
                isinstance(node.ctx, ast.Store)
            ):
                names.add(_last(target))
            case ast.keyword(arg="out", value=target):
                names.add(_last(target))
    return names


def _axis(call: ast.Call) -> str:
    """Return the axis of a join as text; empty where it is no number."""
    axes = [*call.args[1:], *(one.value for one in call.keywords)]
    axis = ast.unparse(axes[0]) if len(axes) == 1 else "" if axes else "0"
    return axis if axis.lstrip("-").isdigit() else ""

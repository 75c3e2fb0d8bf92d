"""Loops that carry one value through rows and keep each, as one call of torch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import (
    CellCode,
    last_name,
    stored_names,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import BINARY
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.rewriting.scans import SCANS

_MAKES = frozenset(
    "clone tensor zeros ones full zeros_like ones_like full_like rand randn".split()
)


class RunningLoop(NamedTuple):
    """`acc = acc + x[i]`, each of which is kept."""

    node: ast.For
    #: what a turn calls, "add"
    operation: str
    #: what is carried from turn to turn
    carried: str
    #: "x" of `x[i]` and the axis that i goes along
    rows: ast.expr
    axis: int
    #: where it is kept: `out[i]` of `out[i] = acc`, or `out` of `out.append(acc)`
    kept: ast.expr
    is_list: bool


def scans(code: CellCode) -> Iterator[RunningLoop]:
    """Find the loops of a source that carry one value through rows and keep each."""
    for node in ast.walk(code.tree):
        if isinstance(node, ast.For) and not node.orelse:
            loop = _scan(node)
            if loop is not None:
                yield loop


def _scan(loop: ast.For) -> RunningLoop | None:
    *named, carries, keeps = loop.body if len(loop.body) > 1 else [loop, loop]
    match carries:
        case ast.Assign(targets=[ast.Name(id=carried)], value=value):
            step = _step(value, carried)
        case ast.AugAssign(target=ast.Name(id=carried), op=operator, value=row):
            step = (BINARY.get(type(operator), ""), row)
        case _:
            return None
    match keeps:
        case ast.Assign(targets=[ast.Subscript() as kept], value=ast.Name(id=name)):
            is_list = False
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(attr="append", value=kept), args=[ast.Name(id=name)]
            )
        ):
            # what works in place changes what was kept before
            is_list = isinstance(carries, ast.Assign)
            if not is_list:
                return None
        case _:
            return None
    if step is None or name != carried or step[0] not in SCANS:
        return None
    row = step[1]
    for statement in reversed(named):
        # `row = x[i]` before it
        match statement:
            case ast.Assign(targets=[ast.Name(id=one)], value=value) if (
                ast.unparse(row) == one
            ):
                row = value
            case _:
                return None
    if len(named) > 1:
        return None
    rows = _rows(loop, row)
    if rows is None:
        return None
    return RunningLoop(loop, step[0], carried, *rows, kept, is_list)


def _step(value: ast.expr, carried: str) -> tuple[str, ast.expr] | None:
    match value:
        case ast.BinOp(left=one, op=operator, right=two):
            operation = BINARY.get(type(operator), "")
        case ast.Call(
            func=ast.Attribute(attr=operation, value=ast.Name(id="torch")),
            args=[one, two],
            keywords=[],
        ):
            pass
        case ast.Call(
            func=ast.Attribute(attr=operation, value=one), args=[two], keywords=[]
        ):
            pass
        case _:
            return None
    for kept, row in ((one, two), (two, one)):
        if isinstance(kept, ast.Name) and kept.id == carried:
            return operation, row
    return None


def _rows(loop: ast.For, row: ast.expr) -> tuple[ast.expr, int] | None:
    """Return what a loop takes a row of each turn, and along which axis."""
    target = loop.target
    if not isinstance(target, ast.Name):
        return None
    if isinstance(row, ast.Name) and row.id == target.id:
        match loop.iter:
            case ast.Subscript(value=ast.Name() as whole, slice=ast.Slice()):
                return whole, 0
        return loop.iter, 0
    if not isinstance(row, ast.Subscript) or not isinstance(row.value, ast.Name):
        return None
    parts = row.slice.elts if isinstance(row.slice, ast.Tuple) else [row.slice]
    places = [
        at
        for at, part in enumerate(parts)
        if isinstance(part, ast.Name) and part.id == target.id
    ]
    others = [part for at, part in enumerate(parts) if at not in places]
    if len(places) != 1 or any(ast.unparse(part) != ":" for part in others):
        return None
    return row.value, places[0]


def at_once(code: CellCode, loop: RunningLoop) -> str:
    """Write the scan in the loop's place; what is carried into it comes in once."""
    function, _, _, has_indices = SCANS[loop.operation]
    rows, target = loop.rows, loop.node.target
    edit, limits = SourceEdit(code), _limits(loop.node)
    if loop.node not in code.tree.body or limits is None:
        return ""
    if not isinstance(rows, ast.Name) or not isinstance(target, ast.Name):
        return ""
    begun = _set_before(code, loop, loop.carried)
    is_number = begun is None or isinstance(begun, ast.Constant)
    flow, carried = ValueFlow(code), loop.carried
    is_list = isinstance(flow.value(rows), ast.List | ast.ListComp)
    if is_list or (loop.axis and is_number):
        return ""
    if isinstance(loop.node.body[-2], ast.AugAssign):
        earlier = any(one.lineno < loop.node.lineno for one in flow.reads(carried))
        if earlier or not _is_new(begun):
            # it changes a tensor that may have another name
            return ""
    if loop.is_list and flow.is_written(carried):
        # so would be the last that is kept
        return ""
    start, end = limits
    whole = edit.free_name(f"{carried}_all")
    cut = f"{start or ''}:{end}" if start or end else ""
    taken = f"{rows.id}[{':, ' * loop.axis}{cut}]" if cut else rows.id
    first = f"{carried}.unsqueeze({loop.axis})" if loop.axis else carried
    # as wide as both are together; a sum of integers would be wider
    dtype = f", dtype={edit.torch}.result_type({carried}, {rows.id})"
    scanned = f"{edit.torch}.{function}({taken}, dim={loop.axis}"
    is_sum = function in ("cumsum", "cumprod")
    scanned += ").values" if has_indices else f"{dtype if is_sum else ''})"
    sign = {"add": "+", "mul": "*"}.get(loop.operation)
    joined = (
        f"{first} {sign} {scanned}"
        if sign
        else f"{edit.torch}.{loop.operation}({first}, {scanned})"
    )
    lines = [f"{whole} = {joined}"]
    if loop.is_list:
        kept = edit.text(loop.kept)
        stacks, is_gone = _stacks_of(code, loop, start)
        if not is_gone:
            lines += [f"{kept}.extend({whole}.unbind({loop.axis}))"]
        top = f"{kept}[0].unsqueeze({loop.axis})"
        joined = f"{edit.torch}.cat([{top}, {whole}], {loop.axis})"
        is_only = is_gone and len(stacks) == 1
        own = joined if start else f"{whole}{'' if is_only else '.clone()'}"
        for stack in stacks:
            edit.replace(stack, own)
    elif isinstance(loop.kept, ast.Subscript):
        parts = loop.kept.slice
        every = parts.elts if isinstance(parts, ast.Tuple) else [parts]
        places = [ast.unparse(one) for one in every]
        if places.count(target.id) != 1 or places.index(target.id) != loop.axis:
            return ""
        places[loop.axis] = cut or ":"
        lines += [f"{edit.text(loop.kept.value)}[{', '.join(places)}] = {whole}"]
    lines += [f"{carried} = {whole}.select({loop.axis}, -1).clone()"]
    if len(loop.node.body) > 2:
        row = min(stored_names(loop.node.body[0]))
        lines += [
            f"{row} = {rows.id}.select({loop.axis}, {f'{end} - 1' if end else -1})"
        ]
    last = str(int(end) - 1) if end.isdigit() else f"{end} - 1"
    lines += [f"{target.id} = {last if end else f'{rows.id}[-1]'}"]
    edit.replace(loop.node, "\n".join(lines))
    return edit.source()


def _is_new(value: ast.expr | None) -> bool:
    """Tell whether a value is a number, or a tensor that nothing else looks at."""
    match value:
        case ast.Constant():
            return True
        case ast.Call(func=function):
            return last_name(function) in _MAKES
    return False


def _set_before(code: CellCode, loop: RunningLoop, name: str) -> ast.expr | None:
    """Return what a name was set to last before the loop."""
    body = code.tree.body
    values = [
        one.value
        for one in body[: body.index(loop.node)]
        if isinstance(one, ast.Assign)
        and [ast.unparse(target) for target in one.targets] == [name]
    ]
    return values[-1] if values else None


def _stacks_of(
    code: CellCode, loop: RunningLoop, start: int
) -> tuple[list[ast.expr], bool]:
    """Return the calls that join a list of all rows, and whether no others read it."""
    body, kept = code.tree.body, ast.unparse(loop.kept)
    begun = _set_before(code, loop, kept)
    if not isinstance(begun, ast.List) or len(begun.elts) != start:
        return [], False
    earlier = (one.lineno for one in ValueFlow(code).reads(kept))
    if any(begun.lineno <= line < loop.node.lineno for line in earlier):
        return [], False
    stacks, reads = list[ast.expr](), 0
    for statement in body[body.index(loop.node) + 1 :]:
        for part in ast.walk(statement):
            reads += isinstance(part, ast.Name) and part.id == kept
            if isinstance(part, ast.Call) and ast.unparse(part.func) == "torch.stack":
                is_its = [ast.unparse(one) for one in part.args[:1]] == [kept]
                if is_its and _dim(part) == str(loop.axis):
                    stacks.append(part)
        if kept in stored_names(statement):
            # with the name that is set
            is_known = reads == len(stacks) + 1
            return (stacks, not start) if is_known else ([], False)
    return (stacks if reads == len(stacks) else []), False


def _dim(call: ast.Call) -> str:
    """Return the axis along which a call stacks, as text."""
    given = [one.value for one in call.keywords if one.arg == "dim"]
    return ast.unparse([*call.args[1:2], *given, ast.Constant(0)][0])


def _limits(loop: ast.For) -> tuple[int, str] | None:
    """Return from which row on a loop goes, and up to where; "" for all rows."""
    match loop.iter:
        case ast.Name():
            return 0, ""
        case ast.Subscript(
            slice=ast.Slice(lower=ast.Constant(value=1), upper=None, step=None)
        ):
            return 1, ""
        case ast.Call(func=ast.Name(id="range"), args=[end]):
            start = 0
        case ast.Call(
            func=ast.Name(id="range"), args=[ast.Constant(value=0 | 1 as start), end]
        ):
            pass
        case _:
            return None
    is_plain = isinstance(end, ast.Name | ast.Constant)
    return (start, ast.unparse(end)) if is_plain else None

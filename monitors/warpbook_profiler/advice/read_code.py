"""Results that a loop of a cell reads one by one, read after the loop instead."""

from __future__ import annotations

import ast

from warpbook_profiler.advice.cell_code import Call, CellCode, blocks
from warpbook_profiler.advice.source_edit import SourceEdit
from warpbook_profiler.advice.torch_code import is_number
from warpbook_profiler.advice.value_flow import ValueFlow


def gathered(code: CellCode, read: Call | None) -> str:
    """Write the sum or list of a loop's results so that it is read after the loop.

    Returns:
        Nothing where the loop does something else with what it reads, too.
    """
    number = _result(read.node) if read is not None else None
    if read is None or number is None:
        return ""
    loop = loop_around(code, read.node)
    if loop is None:
        return ""
    edit = SourceEdit(code)
    result = f"{edit.operand(number)}.detach()"
    for statement in ast.walk(loop):
        match statement:
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                first = begins(code, name, loop)
                if not _is_scaled(value, read.node) or uses(loop, name) != 1:
                    continue
                if isinstance(first, float):
                    # as exactly as Python adds its numbers
                    edit.replace(read.node, f"{result}.double()")
                    edit.after(loop, f"{name} = float({name})")
                    return edit.source()
                if isinstance(first, int):
                    edit.replace(read.node, result)
                    summed = f"{edit.torch}.as_tensor({name}).item()"
                    edit.after(loop, f"{name} = {summed}")
                    return edit.source()
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(attr="append", value=ast.Name(id=name)),
                    args=[only],
                )
            ):
                is_new = begins(code, name, loop) == []
                if only is read.node and is_new and uses(loop, name) == 1:
                    # a copy: the loop may write the next result to the same memory
                    edit.replace(read.node, f"{result}.reshape(1).clone()")
                    gathered = f"{edit.torch}.cat({name}).tolist() if {name} else []"
                    edit.after(loop, f"{name} = {gathered}")
                    return edit.source()
    return ""


def loop_around(code: CellCode, node: ast.AST) -> ast.For | None:
    """Return the outermost `for` around code; None in a function, or in `while`."""
    loops = [
        loop
        for loop in ast.walk(code.tree)
        if isinstance(loop, ast.For | ast.While | ast.FunctionDef | ast.ClassDef)
        and node in ast.walk(loop)
    ]
    first = loops[0] if loops else None
    return first if isinstance(first, ast.For) else None


def uses(tree: ast.AST, name: str) -> int:
    """Count how often code reads or sets a name."""
    return sum(
        isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree)
    )


def times_set(tree: ast.AST, name: str) -> int:
    """Count how often code sets a name, or deletes it."""
    return sum(
        isinstance(node, ast.Name)
        and node.id == name
        and not isinstance(node.ctx, ast.Load)
        for node in ast.walk(tree)
    )


def _result(read: ast.Call) -> ast.expr | None:
    """Return what is read as it is: `int` and `bool` change it."""
    match read:
        case ast.Call(func=ast.Attribute(attr="item", value=result), args=[]):
            return result
        case ast.Call(func=ast.Name(id="float"), args=[result], keywords=[]):
            return result
    return None


def _is_scaled(value: ast.expr, read: ast.expr) -> bool:
    """Tell whether a value is what is read, times numbers or to their power."""
    while isinstance(value, ast.BinOp) and value is not read:
        numbers = [value.left, value.right]
        inner = [part for part in numbers if not is_number(part)]
        if len(inner) != 1:
            return False
        value = inner[0]
    return value is read


def begins(code: CellCode, name: str, loop: ast.For) -> object:
    """Return what a name is set to before a loop: a number, or `[]`.

    It is in the loop's block, or in one around its `with`.
    """
    statement: ast.AST | None = loop
    flow = ValueFlow(code)
    while isinstance(statement, ast.For | ast.With):
        (block,) = (one for one in blocks(code.tree) if statement in one.statements)
        at = block.statements.index(statement)
        for before in reversed(block.statements[:at]):
            value = _set_to(before, name)
            if value is not None:
                if isinstance(value, ast.List) and not value.elts:
                    return []
                return value.value if isinstance(value, ast.Constant) else None
            if uses(before, name):
                return None
        statement = flow.parent(statement)
        items = statement.items if isinstance(statement, ast.With) else []
        if not items or any(uses(item, name) for item in items):
            return None
    return None


def _set_to(statement: ast.stmt, name: str) -> ast.expr | None:
    """Return what a statement sets a name to, by itself or beside others."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=target)], value=value):
            return value if target == name else None
        case ast.Assign(
            targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)
        ) if len(targets) == len(values):
            named = zip(map(ast.unparse, targets), values, strict=True)
            return dict(named).get(name)
    return None

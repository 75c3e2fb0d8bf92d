"""Results that a loop of a cell reads, kept on the GPU in the cell's own names."""

from __future__ import annotations

import ast

from warpbook_profiler.advice.cell_code import Call, CellCode, replaced, written

#: what gives one number as it is; `int` and `bool` change it
_AS_IT_IS = ("item", "float")


def gathered(code: CellCode, read: Call | None) -> str:
    """Write the sum or list of a loop's results so that it is read after the loop.

    Returns:
        Nothing where the loop does something else with what it reads, too.
    """
    if read is None or read.name not in _AS_IT_IS:
        return ""
    loop = _loop_around(code, read)
    if loop is None:
        return ""
    for statement in ast.walk(loop):
        match statement:
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add()):
                if statement.value is read.node and _uses(loop, name) == 1:
                    return _summed(statement, name, read)
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(attr="append", value=ast.Name(id=name)),
                    args=[only],
                )
            ):
                is_new = _begins_empty(code, name)
                if only is read.node and is_new and _uses(loop, name) == 1:
                    return _listed(statement, name, read)
    return ""


def read_result(read: Call) -> str:
    """Give what is read, "loss" of `loss.item()` and of `float(loss)`."""
    arguments = read.node.args
    return read.receiver or (written(arguments[0]) if arguments else "loss")


def _summed(statement: ast.stmt, name: str, read: Call) -> str:
    kept = replaced(statement, read.node, f"{_result(read)}.detach()")
    return (
        f"{kept}  # in the loop\n{name} = {name}.item()  # after it\n"
        "# .detach().double() adds as exactly as Python does"
    )


def _listed(statement: ast.stmt, name: str, read: Call) -> str:
    # a copy: the loop may write the next result to the same memory
    kept = replaced(statement, read.node, f"{_result(read)}.detach().clone()")
    return (
        f"{kept}  # in the loop\n"
        f"{name} = torch.stack({name}).flatten().tolist()  # after it"
    )


def _result(read: Call) -> str:
    """Give what is read, whole, so that it may be parsed again."""
    function = read.node.func
    if isinstance(function, ast.Attribute):
        return f"({ast.unparse(function.value)})"
    # of `float(x)`
    return f"({ast.unparse(read.node.args[0])})"


def _loop_around(code: CellCode, read: Call) -> ast.For | None:
    """Give the outermost `for` around a call; None in a function, or in `while`."""
    loops = [
        node
        for node in ast.walk(code.tree)
        if isinstance(node, ast.For | ast.While | ast.FunctionDef)
        and read.node in ast.walk(node)
    ]
    first = loops[0] if loops else None
    return first if isinstance(first, ast.For) else None


def _uses(loop: ast.For, name: str) -> int:
    return sum(
        isinstance(node, ast.Name) and node.id == name for node in ast.walk(loop)
    )


def _begins_empty(code: CellCode, name: str) -> bool:
    values = [
        ast.unparse(node.value)
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id == name
    ]
    return values == ["[]"]

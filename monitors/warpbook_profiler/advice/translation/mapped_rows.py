"""A stack of what a function of the cell gives for each row, by one call of vmap."""

from __future__ import annotations

import ast

from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.translation.batched_loop import gives_rows

#: they make a tensor
_NEW = frozenset(
    "solve inv inverse pinv cholesky cholesky_solve matmul mm mv bmm dot linear sum "
    "mean prod amax amin norm logdet det softmax log_softmax".split()
)


def function_called(node: ast.AST, code: CellCode) -> ast.FunctionDef | None:
    """Give the only function of the cell that a loop's turn is a call of."""
    match node:
        case (
            ast.ListComp(elt=ast.Call(func=ast.Name(id=name)))
            | ast.GeneratorExp(elt=ast.Call(func=ast.Name(id=name)))
        ):
            found = [
                one
                for one in code.tree.body
                if isinstance(one, ast.FunctionDef) and one.name == name
            ]
            is_only = len(found) == 1 and not ValueFlow(code).is_set(name)
            return found[0] if is_only else None
    return None


def mapped(code: CellCode) -> str:
    """Write `stack([f(a, b) for a, b in zip(A, B)])` as `vmap(f)(A, B)`.

    Returns:
        Nothing where it is not sure that the function gives the same of all rows.
    """
    edit, flow = SourceEdit(code), ValueFlow(code)
    for call in code.calls("stack"):
        match call.node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="torch")),
                args=[ast.ListComp(elt=ast.Call() as elt, generators=[made]) as rows],
                keywords=[],
            ) if not made.ifs and not elt.keywords:
                function = function_called(rows, code)
                text = _called(elt, made, edit, flow)
                if function is not None and _is_of_rows(function) and text:
                    # a stack has memory of its own
                    copied = ".clone()" * _may_be_view(function)
                    edit.replace(call.node, text + copied)
                    return edit.source()
    return ""


def _called(
    call: ast.Call, made: ast.comprehension, edit: SourceEdit, flow: ValueFlow
) -> str:
    match made.target, made.iter:
        case ast.Name(id=name), ast.Name() as whole:
            names, wholes = [name], [whole]
        case ast.Tuple(elts=targets), ast.Call(func=ast.Name(id="zip"), args=given):
            names = [one.id for one in targets if isinstance(one, ast.Name)]
            wholes = [one for one in given if isinstance(one, ast.Name)]
            if made.iter.keywords or not len(names) == len(targets) == len(given):
                return ""
        case _:
            return ""
    if len(names) != len(wholes) or len({*names}) != len(names):
        return ""
    if any(isinstance(flow.value(one), ast.List | ast.ListComp) for one in wholes):
        return ""
    by_name = {name: whole.id for name, whole in zip(names, wholes, strict=True)}
    passed, axes = list[str](), list[int | None]()
    for argument in call.args:
        text = ast.unparse(argument)
        passed.append(by_name.get(text, text))
        axes.append(0 if text in by_name else None)
        if not isinstance(argument, ast.Name | ast.Constant):
            return ""
    if {*by_name} - {ast.unparse(one) for one in call.args}:
        # a shorter one may end the rows
        return ""
    function = ast.unparse(call.func)
    mapping = f"{function}, in_dims={tuple(axes)}" if None in axes else function
    return f"{edit.torch}.vmap({mapping})({', '.join(passed)})"


def _may_be_view(function: ast.FunctionDef) -> bool:
    """Tell whether a function may give a part of what it is given."""
    last = function.body[-1]
    match last.value if isinstance(last, ast.Return) else None:
        case ast.BinOp() | ast.UnaryOp() | ast.Compare():
            return False
        case ast.Call(func=ast.Attribute(attr=name)):
            return name not in _NEW
    return True


def _is_of_rows(function: ast.FunctionDef) -> bool:
    """Tell whether all that a function computes is known, and gives one tensor."""
    *steps, last = function.body
    match last:
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Tuple):
            pass
        case _:
            return False
    are_plain = all(
        isinstance(one, ast.Assign)
        and all(isinstance(target, ast.Name) for target in one.targets)
        for one in steps
    )
    arguments = function.args
    has_more = arguments.vararg or arguments.kwarg or arguments.kwonlyargs
    is_bare = not (has_more or arguments.defaults or function.decorator_list)
    return are_plain and is_bare and all(map(gives_rows, [*steps, value]))

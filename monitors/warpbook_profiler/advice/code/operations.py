"""Operations of tensors, whichever of Python's forms they are written in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import SIMPLE, CellCode, blocks, last_name
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import BINARY

_NAMES = {
    "multiply": "mul",
    "subtract": "sub",
    "power": "pow",
    "vector_norm": "norm",
}


_OPERATORS: dict[str, ast.operator] = {
    "add": ast.Add(),
    "sub": ast.Sub(),
    "mul": ast.Mult(),
    "div": ast.Div(),
    "matmul": ast.MatMult(),
    "bmm": ast.MatMult(),
}


class Operation(NamedTuple):
    """`a - b`, `a.sub(b)` or `torch.sub(a, b)`."""

    #: as a method has it, "sub"
    name: str
    operands: list[ast.expr]
    keywords: dict[str, ast.expr]


def operation(node: ast.AST | None) -> Operation | None:
    """Read an operation; None for what is none."""
    match node:
        case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
            return Operation(BINARY[type(op)], [left, right], {})
        case ast.Call(func=ast.Attribute(attr=attr, value=value), args=args):
            is_function = ast.unparse(value) in ("torch", "torch.linalg", "LA", "F")
            keywords = {one.arg or "": one.value for one in node.keywords}
            operands = args if is_function else [value, *args]
            for name in ("input", "A", "x"):
                if is_function and not operands and name in keywords:
                    operands = [keywords.pop(name)]
            return Operation(_NAMES.get(attr, attr), operands, keywords)
    return None


def squared(node: ast.expr) -> ast.expr | None:
    """Return what a square is of."""
    found = operation(node)
    match found if found is not None and not found.keywords else None:
        case Operation("pow", [inner, ast.Constant(value=2)]):
            return inner
        case Operation("square", [inner]):
            return inner
        case Operation("mul", [one, two]) if ast.dump(one) == ast.dump(two):
            return one
    return None


def assigned(code: CellCode) -> CellCode:
    """Write what works in place on a new tensor as a new tensor of the same name.

    `d.pow_(2)` and `d *= d` become `d = d.pow(2)` and `d = d * d`, where `d` was set to
    a result of arithmetic and nothing but its shape was read since.
    """
    edit, is_changed = SourceEdit(code), False
    #: at the begin of a branch's block, by the block
    begun = dict[int, set[str]]()
    for block in blocks(code.tree):
        is_new = begun.get(id(block.statements), set())
        for statement in block.statements:
            match statement:
                case ast.AugAssign(target=ast.Name(id=name), op=op, value=value) if (
                    name in is_new and type(op) in BINARY
                ):
                    whole = ast.BinOp(ast.Name(name, ast.Load()), op, value)
                    edit.replace(statement, f"{name} = {ast.unparse(whole)}")
                    is_changed = True
                case ast.Expr(value=ast.Call() as call) if _of(call) in is_new:
                    text = ast.unparse(_Plain().visit(ast.parse(ast.unparse(call))))
                    edit.replace(statement, f"{_of(call)} = {text}")
                    is_changed = True
                case ast.If(body=body):
                    begun[id(body)] = is_new - _held(statement.test, is_new)
                    is_new = is_new - _held(statement, is_new)
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_result(
                    value
                ):
                    is_new = is_new - _held(statement, is_new) | {name}
                case _:
                    is_new = is_new - _held(statement, is_new)
    return CellCode(edit.source()) if is_changed else code


def with_operators(code: CellCode) -> CellCode:
    """Write `a.matmul(b)` and `torch.add(a, b)` as `a @ b` and `a + b`."""
    edit, is_changed = SourceEdit(code), False
    for block in blocks(code.tree):
        for statement in block.statements:
            value = getattr(statement, "value", None)
            if isinstance(statement, SIMPLE) and isinstance(value, ast.expr):
                text = ast.unparse(value)
                changed = ast.unparse(_Operators().visit(ast.parse(text)))
                if changed != text:
                    edit.replace(value, changed)
                    is_changed = True
    return CellCode(edit.source()) if is_changed else code


def shape_reads(tree: ast.AST, name: str) -> Iterator[tuple[ast.expr, str]]:
    """Find `x.shape`, `x.size()`, `x.size(-1)`, `x.device` and `x.dtype`.

    Returns:
        What is read, and how that is written: "shape", "shape[-1]", "device", "dtype".
    """
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="size", value=ast.Name(id=found)),
                args=axes,
                keywords=[],
            ) if found == name:
                yield node, f"shape[{ast.unparse(axes[0])}]" if axes else "shape"
            case ast.Attribute(
                attr="shape" | "device" | "dtype" as attr, value=ast.Name(id=found)
            ) if found == name:
                yield node, attr


def _held(node: ast.AST, names: set[str]) -> set[str]:
    """Give the names that code reads or sets, but for reads of shapes."""
    held = set[str]()
    for name in names:
        shapes = {p for read, _ in shape_reads(node, name) for p in ast.walk(read)}
        if any(
            isinstance(one, ast.Name) and one.id == name and one not in shapes
            for one in ast.walk(node)
        ):
            held.add(name)
    return held


def _is_result(value: ast.expr) -> bool:
    """Tell whether a value is a tensor that nobody else holds."""
    found = operation(value)
    if found is None:
        return False
    is_sum = found.name == "einsum" and len(found.operands) > 2
    return is_sum or found.name in _OPERATORS


def _of(node: ast.expr) -> str:
    """Return the name that methods work in place on, `d` of `d.mul_(2).add_(1)`."""
    while isinstance(node, ast.Call):
        function = node.func
        is_method = isinstance(function, ast.Attribute)
        if not is_method or not last_name(function).endswith("_") or node.keywords:
            return ""
        node = function.value if isinstance(function, ast.Attribute) else node
    return node.id if isinstance(node, ast.Name) else ""


class _Operators(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match operation(node):
            case Operation(name, [one, two], more) if (
                name.endswith("_") and name[:-1] in _OPERATORS and not more
            ):
                # nobody else holds what is changed in place
                if not isinstance(one, ast.Name) and _is_result(one):
                    return ast.BinOp(one, _OPERATORS[name[:-1]], two)
            case Operation(name, [one, two], more) if name in _OPERATORS and not more:
                return ast.BinOp(one, _OPERATORS[name], two)
        return node


class _Plain(ast.NodeTransformer):
    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        node.attr = node.attr.rstrip("_")
        return node

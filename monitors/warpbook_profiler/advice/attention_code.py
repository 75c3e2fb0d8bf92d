"""Attention by hand in a cell's source, written as one fused call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from warpbook_profiler.advice.cell_code import Block, CellCode, blocks
from warpbook_profiler.advice.read_code import uses
from warpbook_profiler.advice.source_edit import SourceEdit
from warpbook_profiler.advice.torch_code import is_number

#: a cell with more is judged by these
_MOST_PRODUCTS = 200
_PRODUCTS = ("matmul", "bmm")
_TURNS = ("transpose", "swapaxes", "swapdims")
_MODULES = ("torch", "F", "nn.functional", "torch.nn.functional")
_INFINITE = frozenset(
    ("-float('inf')", "float('-inf')", "-math.inf", "-torch.inf", "-np.inf")
)


class _Call(NamedTuple):
    """`f(x, …)` of a module or `x.f(…)`, both in one way."""

    name: str
    arguments: tuple[ast.expr, ...]
    keywords: dict[str | None, ast.expr]


class _Chain(NamedTuple):
    """Where a value is read: its block, and the statements that gave it its parts."""

    block: Block
    at: int
    #: statements that only this value needs
    gone: list[ast.stmt]


def fused_attention(code: CellCode) -> str:
    """Write the first `softmax(q @ k.mT · scale, -1) @ v` as one call of torch's.

    Returns:
        Nothing without one, and where something else of it is needed, too.
    """
    for chain, product in islice(_products(code), _MOST_PRODUCTS):
        call = _written(code, chain, product)
        if call:
            edit = SourceEdit(code)
            edit.replace(product, f"{edit.torch}.nn.functional.{call}")
            for gone in chain.gone:
                edit.delete(gone)
            return edit.source()
    return ""


def _products(code: CellCode) -> Iterator[tuple[_Chain, ast.expr]]:
    for block in blocks(code.tree):
        for at, statement in enumerate(block.statements):
            value = getattr(statement, "value", None)
            if isinstance(value, ast.expr):
                for node in ast.walk(value):
                    if isinstance(node, ast.expr) and _product(node) is not None:
                        yield _Chain(block, at, []), node


def _written(code: CellCode, chain: _Chain, product: ast.expr) -> str:
    """Write an attention that ends in a product; empty for any other code."""
    outer = _product(product)
    if outer is None:
        return ""
    softmax = _call(_value(code, chain, outer[0]))
    if softmax is None or softmax.name != "softmax":
        return ""
    scores, *axes = softmax.arguments
    axes += [value for key, value in softmax.keywords.items() if key == "dim"]
    if [ast.unparse(axis) for axis in axes] != ["-1"] or "dtype" in softmax.keywords:
        return ""
    edit, mask, scale = SourceEdit(code), "", "1.0"
    scores = _value(code, chain, scores)
    masked = _call(scores)
    if masked is not None and masked.name == "masked_fill":
        if len(masked.arguments) != 3 or _text(masked.arguments[2]) not in _INFINITE:
            return ""
        mask = f", attn_mask=~{edit.operand(masked.arguments[1])}"
        scores = _value(code, chain, masked.arguments[0])
    match scores:
        case ast.BinOp(left=left, op=ast.Mult(), right=number) if is_number(number):
            scores, scale = _value(code, chain, left), edit.text(number)
        case ast.BinOp(left=number, op=ast.Mult(), right=right) if is_number(number):
            scores, scale = _value(code, chain, right), edit.text(number)
        case ast.BinOp(left=left, op=ast.Div(), right=number) if is_number(number):
            scores, scale = _value(code, chain, left), f"1 / {edit.operand(number)}"
    inner = _product(scores)
    if inner is None:
        return ""
    query, key = inner
    values = f"{edit.text(query)}, {_turned_back(edit, key)}, {edit.text(outer[1])}"
    return f"scaled_dot_product_attention({values}{mask}, scale={scale})"


def _value(code: CellCode, chain: _Chain, node: ast.expr) -> ast.expr:
    """Return what a name was set to just for this, or the expression itself."""
    if not isinstance(node, ast.Name):
        return node
    before = chain.block.statements[: chain.at - len(chain.gone)]
    match before[-1:]:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value) as made] if (
            name == node.id
        ):
            # each value of the name is read once, by the next one or by the product
            versions = [name for one in (*chain.gone, made) if _sets(one, name)]
            if uses(code.tree, name) == 2 * len(versions) or _is_reset(value, name):
                chain.gone.append(made)
                return value
    return node


def _sets(statement: ast.stmt, name: str) -> bool:
    return isinstance(statement, ast.Assign) and _text(statement.targets[0]) == name


def _is_reset(value: ast.expr, name: str) -> bool:
    """Tell whether a value is made of the one that its name had."""
    return uses(value, name) == 1


def _product(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Return what is multiplied with what."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return node.left, node.right
    call = _call(node)
    if call is None or call.name not in _PRODUCTS or len(call.arguments) != 2:
        return None
    return None if call.keywords else (call.arguments[0], call.arguments[1])


def _call(node: ast.AST) -> _Call | None:
    match node:
        case ast.Call(func=ast.Attribute(attr=name, value=receiver), args=arguments):
            keywords = {one.arg: one.value for one in node.keywords}
            is_method = ast.unparse(receiver) not in _MODULES
            given = (receiver, *arguments) if is_method else tuple(arguments)
            return _Call(name, given, keywords) if given else None
    return None


def _text(node: ast.AST) -> str:
    return ast.unparse(node)


def _turned_back(edit: SourceEdit, key: ast.expr) -> str:
    """Write the keys as they were before their last two axes were exchanged."""
    if isinstance(key, ast.Attribute) and key.attr == "mT":
        return edit.text(key.value)
    call = _call(key)
    if call is not None and call.name in _TURNS:
        tensor, *axes = call.arguments
        if sorted(map(_text, axes)) == ["-1", "-2"]:
            return edit.text(tensor)
    # which axes they are depends on sizes: turned once more they are right anyway
    return f"{edit.operand(key)}.mT"

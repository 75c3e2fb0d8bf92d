"""Products of attention in a source, whichever way they are written."""

from __future__ import annotations

import ast
from typing import NamedTuple

from warpbook_profiler.advice.code.source_edit import SourceEdit

_PRODUCTS = ("matmul", "bmm")
_EINSUM = "einsum"
_TURNS = ("transpose", "swapaxes", "swapdims")
_MODULES = ("torch", "F", "nn.functional", "torch.nn.functional")


class TensorCall(NamedTuple):
    """`f(x, …)` of a module or `x.f(…)`, both in one way."""

    name: str
    arguments: tuple[ast.expr, ...]
    keywords: dict[str | None, ast.expr]


class Einsum(NamedTuple):
    """`einsum("bhid,bhjd->bhij", a, b)`; what all begin with is left out: "..."."""

    terms: tuple[str, str]
    result: str
    operands: tuple[ast.expr, ast.expr]
    has_rest: bool

    def permuted(self, text: str, before: str, after: str) -> str:
        """Write a tensor with its axes in another order; empty where none is known."""
        if sorted(before) != sorted(after) or len(set(before)) < len(before):
            return ""
        if before == after:
            return text
        axes = ", ".join(str(before.index(letter)) for letter in after)
        return "" if self.has_rest else f"{text}.permute({axes})"


def attention_operands(edit: SourceEdit, scores: ast.expr) -> tuple[str, str] | None:
    """Write queries and keys whose last axes are tokens and a head's numbers."""
    summed, product = einsum_of(scores), product_of(scores)
    if summed is None:
        if product is None:
            return None
        return edit.text(product[0]), _turned_back(edit, product[1])
    if len(summed.result) < 2:
        return None
    batch, row, column = summed.result[:-2], summed.result[-2], summed.result[-1]
    depth = set(summed.terms[0]) - set(summed.result)
    one, other = zip(summed.terms, summed.operands, strict=True)
    query, key = (one, other) if row in one[0] else (other, one)
    if len(depth) != 1 or len(set(summed.result)) != len(summed.result):
        return None
    (inner,) = depth
    texts = tuple(
        summed.permuted(edit.operand(tensor), term, batch + token + inner)
        for (term, tensor), token in ((query, row), (key, column))
    )
    return (texts[0], texts[1]) if all(texts) else None


def attention_values(edit: SourceEdit, summed: Einsum) -> str:
    """Write the values of `weights · values` with a head's numbers last."""
    weights, values = summed.terms
    width = set(summed.result) - set(weights)
    if len(weights) < 2 or len(width) != 1 or weights[-1] in summed.result:
        return ""
    if len(set(weights)) < len(weights):
        return ""
    after = weights[:-2] + weights[-1] + "".join(width)
    return summed.permuted(edit.operand(summed.operands[1]), values, after)


def einsum_of(node: ast.AST) -> Einsum | None:
    """Read a sum over two tensors; None for anything else."""
    call = tensor_call(node)
    if call is None or call.name != _EINSUM or call.keywords:
        return None
    match call.arguments:
        case (ast.Constant(value=str(equation)), one, other):
            terms, arrow, result = equation.replace(" ", "").partition("->")
            letters = [*terms.split(","), result]
            rests = {text.startswith("...") for text in letters}
            letters = [text.removeprefix("...") for text in letters]
            if len(letters) == 3 and arrow and len(rests) == 1:
                if all(text.isalpha() for text in letters):
                    first, second, result = letters
                    return Einsum((first, second), result, (one, other), rests.pop())
    return None


def product_of(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Return what is multiplied with what."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return node.left, node.right
    call = tensor_call(node)
    if call is None or call.name not in _PRODUCTS or len(call.arguments) != 2:
        return None
    return None if call.keywords else (call.arguments[0], call.arguments[1])


def tensor_call(node: ast.AST) -> TensorCall | None:
    match node:
        case ast.Call(func=ast.Attribute(attr=name, value=receiver), args=arguments):
            keywords = {one.arg: one.value for one in node.keywords}
            is_method = ast.unparse(receiver) not in _MODULES
            given = (receiver, *arguments) if is_method else tuple(arguments)
            return TensorCall(name, given, keywords) if given else None
    return None


def _turned_back(edit: SourceEdit, key: ast.expr) -> str:
    """Write the keys as they were before their last two axes were exchanged."""
    if isinstance(key, ast.Attribute) and key.attr == "mT":
        return edit.text(key.value)
    call = tensor_call(key)
    if call is not None and call.name in _TURNS:
        tensor, *axes = call.arguments
        if sorted(map(ast.unparse, axes)) == ["-1", "-2"]:
            return edit.text(tensor)
    # which axes they are depends on sizes: turned once more they are right anyway
    return f"{edit.operand(key)}.mT"

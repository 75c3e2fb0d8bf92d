"""Attention by hand in a cell's source, written as one fused call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import Block, CellCode, blocks
from warpbook_profiler.advice.code.read_code import uses
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import is_number

#: a cell with more is judged by these
_MOST_PRODUCTS = 200
_PRODUCTS = ("matmul", "bmm")
_EINSUM = "einsum"
_TURNS = ("transpose", "swapaxes", "swapdims")
_MODULES = ("torch", "F", "nn.functional", "torch.nn.functional")
_INFINITE = frozenset(
    ("-float('inf')", "float('-inf')", "-math.inf", "-torch.inf", "-np.inf")
)


#: they give what they are given in another dtype
_CASTS = frozenset("to type type_as float half bfloat16".split())
#: of scores, from which on none has a weight beside others
_VERY_SMALL = -1e4


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


class _Einsum(NamedTuple):
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


def fused_attention(
    code: CellCode, has_number: bool = False, is_sure: bool = True
) -> str:
    """Write the first `softmax(q @ k.mT · scale, -1) @ v` as one call of torch's.

    Args:
        code: of the cell; products may be written as `einsum`, too.
        has_number: scores are scaled by a number, whatever the source calls it.
        is_sure: leave alone what depends on dtypes and values: casts, biases that are
            added, dropout, and masks by numbers that are only very small.

    Returns:
        Nothing without one, and where something else of it is needed, too.
    """
    for chain, product in islice(_products(code), _MOST_PRODUCTS):
        edit = SourceEdit(code)
        call = _written(code, edit, chain, product, has_number, is_sure)
        if call:
            edit.replace(product, call)
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
                    if isinstance(node, ast.expr) and (_product(node) or _einsum(node)):
                        yield _Chain(block, at, []), node


def _written(
    code: CellCode,
    edit: SourceEdit,
    chain: _Chain,
    product: ast.expr,
    has_number: bool,
    is_sure: bool,
) -> str:
    """Write an attention that ends in a product; empty for any other code."""
    summed = _einsum(product)
    outer = _product(product) if summed is None else summed.operands
    if outer is None:
        return ""
    weights, dropout = _value(code, chain, outer[0]), ""
    while not is_sure and (inner := _passed_on(edit, weights)) is not None:
        weights, dropout = _value(code, chain, inner[0]), dropout or inner[1]
    softmax = _call(weights)
    if softmax is None or softmax.name != "softmax":
        return ""
    scores, *axes = softmax.arguments
    axes += [value for key, value in softmax.keywords.items() if key == "dim"]
    if [ast.unparse(axis) for axis in axes] != ["-1"]:
        return ""
    if "dtype" in softmax.keywords and is_sure:
        return ""
    mask, scale, bias = "", "1.0", None
    scores = _scores(code, chain, edit, scores, is_sure)
    masked = _call(scores)
    if masked is not None and masked.name == "masked_fill":
        if len(masked.arguments) != 3 or not _is_lowest(masked.arguments[2], is_sure):
            return ""
        mask = f", attn_mask=~{edit.operand(masked.arguments[1])}"
        scores = _scores(code, chain, edit, masked.arguments[0], is_sure)
    match scores:
        case ast.BinOp(left=left, op=ast.Add(), right=right) if not (mask or is_sure):
            others = (left, right), (right, left)
            found = [pair for pair in others if _is_scores(chain, pair[0])]
            if len(found) != 1:
                return ""
            ((scores, bias),) = found
            scores = _scores(code, chain, edit, scores, is_sure)
    match scores:
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right):
            is_product = isinstance(op, ast.Mult)
            leads = _leads if is_sure else _is_scores
            if is_number(right) or (has_number and leads(chain, left)):
                scores, number = left, right
            elif is_product and (
                is_number(left) or (has_number and leads(chain, right))
            ):
                scores, number = right, left
            else:
                return ""
            scores = _scores(code, chain, edit, scores, is_sure)
            scale = edit.text(number) if is_product else f"1 / {edit.operand(number)}"
    operands = _operands(edit, scores)
    value = edit.text(outer[1])
    if summed is not None:
        value = _summed(edit, summed)
    if operands is None or not value:
        return ""
    if bias is not None:
        mask = f", attn_mask={edit.operand(bias)}.to({value}.dtype)"
    function = f"{edit.torch}.nn.functional.scaled_dot_product_attention"
    call = f"{function}({', '.join(operands)}, {value}{mask}{dropout}, scale={scale})"
    if summed is None:
        return call
    rows = summed.terms[0][:-1]
    (width,) = set(summed.result) - set(summed.terms[0])
    return summed.permuted(call, rows + width, summed.result)


def _scores(
    code: CellCode, chain: _Chain, edit: SourceEdit, node: ast.expr, is_sure: bool
) -> ast.expr:
    """Return what scores are set to, without casts where that may be."""
    node = _value(code, chain, node)
    while not is_sure and (inner := _passed_on(edit, node)) is not None:
        if inner[1]:
            break
        node = _value(code, chain, inner[0])
    return node


def _passed_on(edit: SourceEdit, node: ast.expr) -> tuple[ast.expr, str] | None:
    """Return what is cast or dropped out, and a dropout as an argument."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr=name, value=ast.Name(id="self")) as layer,
            args=[inner],
        ) if "drop" in name:
            layer_text = edit.text(layer)
            rate = f"{layer_text}.p if {layer_text}.training else 0.0"
            return inner, f", dropout_p={rate}"
    call = _call(node)
    if call is not None and call.name in _CASTS:
        return call.arguments[0], ""
    if call is not None and call.name == "dropout":
        inner, *rates = call.arguments
        given = {"p": rates[0] if rates else None, **call.keywords}
        rate_of, training = given.get("p"), given.get("training")
        if isinstance(rate_of, ast.expr) and isinstance(training, ast.expr):
            rate = f"{edit.text(rate_of)} if {edit.text(training)} else 0.0"
            return inner, f", dropout_p={rate}"
    return None


def _is_lowest(value: ast.expr, is_sure: bool) -> bool:
    """Tell whether scores of this value get no weight."""
    if _text(value) in _INFINITE:
        return True
    try:
        number = float(ast.literal_eval(value))
    except (ValueError, TypeError, SyntaxError):
        return not is_sure and ".min" in _text(value) and "finfo" in _text(value)
    return not is_sure and number <= _VERY_SMALL


def _is_scores(chain: _Chain, node: ast.expr, before: int = 0) -> bool:
    """Tell whether a product leads to a value, by the statements right before it."""
    if any(_product(part) or _einsum(part) for part in ast.walk(node)):
        return True
    last = chain.at - len(chain.gone) - before - 1
    match chain.block.statements[last : last + 1] if last >= 0 else []:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)]:
            names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            return name in names and _is_scores(chain, value, before + 1)
    return False


def _leads(chain: _Chain, node: ast.expr) -> bool:
    """Tell whether an expression is a product, or the name that was set to one."""
    if _product(node) or _einsum(node):
        return True
    before = chain.block.statements[: chain.at - len(chain.gone)]
    match before[-1:]:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)]:
            return _text(node) == name and bool(_product(value) or _einsum(value))
    return False


def _operands(edit: SourceEdit, scores: ast.expr) -> tuple[str, str] | None:
    """Write queries and keys whose last axes are tokens and a head's numbers."""
    summed, product = _einsum(scores), _product(scores)
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


def _summed(edit: SourceEdit, summed: _Einsum) -> str:
    """Write the values of `weights · values` with a head's numbers last."""
    weights, values = summed.terms
    width = set(summed.result) - set(weights)
    if len(weights) < 2 or len(width) != 1 or weights[-1] in summed.result:
        return ""
    if len(set(weights)) < len(weights):
        return ""
    after = weights[:-2] + weights[-1] + "".join(width)
    return summed.permuted(edit.operand(summed.operands[1]), values, after)


def _einsum(node: ast.AST) -> _Einsum | None:
    """Read a sum over two tensors; None for anything else."""
    call = _call(node)
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
                    return _Einsum((first, second), result, (one, other), rests.pop())
    return None


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
            if code.uses[name] == 2 * len(versions) or _is_reset(value, name):
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

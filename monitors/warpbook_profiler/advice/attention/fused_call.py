"""Attention by hand in a cell's source, written as one fused call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from warpbook_profiler.advice.attention.masks import is_causal, is_lowest
from warpbook_profiler.advice.attention.products import (
    TensorCall,
    attention_operands,
    attention_values,
    einsum_of,
    product_of,
    tensor_call,
)
from warpbook_profiler.advice.code.cell_code import (
    Block,
    CellCode,
    blocks,
    names_in,
    stored_names,
)
from warpbook_profiler.advice.code.operations import shape_reads
from warpbook_profiler.advice.code.read_code import uses
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import is_number

#: a cell with more is judged by these
_MOST_PRODUCTS = 200
#: each is looked for in the whole source
_MOST_ATTENTIONS = 16
#: they give what they are given in another dtype
_CASTS = frozenset("to type type_as float half bfloat16".split())
#: axes that may be the last
_LAST, _LASTS = ("-1",), ("-1", "2", "3")
#: of the scores of queries and keys
_SHAPE = "(*{q}.shape[:-1], {k}.shape[-2])"


class _Chain(NamedTuple):
    """Where a value is read: its block, and the statements that gave it its parts."""

    block: Block
    at: int
    #: statements that only this value needs
    gone: list[ast.stmt]
    #: statements between those, which stay
    passed: list[ast.stmt]
    is_sure: bool

    @property
    def before(self) -> list[ast.stmt]:
        """Give the statements before those that are known."""
        known = len(self.gone) + len(self.passed)
        return self.block.statements[: self.at - known]

    def uses(self, code: CellCode, name: str) -> int:
        """Count how often a name is read or set where the value is computed."""
        if self.is_sure:
            return code.uses[name]
        scope = self.block.function or code.tree
        return uses(scope, name) - sum(uses(one, name) for one in self.passed)


class _Branch(NamedTuple):
    """`if …: scores = scores.masked_fill(mask, -inf)`."""

    statement: ast.If
    #: the last of its statements
    setting: ast.stmt
    mask: ast.expr
    #: scores are kept where it is true
    is_kept: bool


def fused_attention(
    code: CellCode, has_number: bool = False, is_sure: bool = True
) -> str:
    """Write each `softmax(q @ k.mT · scale, -1) @ v` as one call of torch's.

    Args:
        code: of the cell; products may be written as `einsum`, too.
        has_number: scores are scaled by a number, whatever the source calls it.
        is_sure: leave alone what depends on dtypes and values: casts, biases that are
            added, dropout, and masks by numbers that are only very small.

    Returns:
        Nothing without one. One of which something else is needed, too, is let be.
    """
    text = ""
    for _ in range(_MOST_ATTENTIONS):
        more = _with_next(CellCode(text) if text else code, has_number, is_sure)
        if not more:
            break
        text = more
    return text


def _with_next(code: CellCode, has_number: bool, is_sure: bool) -> str:
    for chain, product in islice(_products(code, is_sure), _MOST_PRODUCTS):
        edit = SourceEdit(code)
        call = _written(code, edit, chain, product, has_number)
        if call:
            edit.replace(product, call)
            for gone in chain.gone:
                edit.delete(gone)
            return edit.source()
    return ""


def _products(code: CellCode, is_sure: bool) -> Iterator[tuple[_Chain, ast.expr]]:
    for block in blocks(code.tree):
        for at, statement in enumerate(block.statements):
            value = getattr(statement, "value", None)
            if isinstance(value, ast.expr):
                for node in ast.walk(value):
                    if isinstance(node, ast.expr) and (
                        product_of(node) or einsum_of(node)
                    ):
                        yield _Chain(block, at, [], [], is_sure), node


def _written(
    code: CellCode,
    edit: SourceEdit,
    chain: _Chain,
    product: ast.expr,
    has_number: bool,
) -> str:
    """Write an attention that ends in a product; empty for any other code."""
    is_sure = chain.is_sure
    summed = einsum_of(product)
    outer = product_of(product) if summed is None else summed.operands
    if outer is None:
        return ""
    weights, dropout = _value(code, chain, outer[0]), ""
    while not is_sure and (inner := _passed_on(edit, weights)) is not None:
        weights, dropout = _value(code, chain, inner[0]), dropout or inner[1]
    softmax = tensor_call(weights)
    if softmax is None or softmax.name != "softmax":
        return ""
    scores, *axes = softmax.arguments
    axes += [value for key, value in softmax.keywords.items() if key == "dim"]
    if len(axes) != 1 or ast.unparse(axes[0]) not in (_LAST if is_sure else _LASTS):
        return ""
    if "dtype" in softmax.keywords and is_sure:
        return ""
    mask, scale, bias = "", "1.0", None
    scores = _scores(code, chain, edit, scores)
    branch = None
    if (masked := _masked(chain, scores)) is not None:
        mask = _mask(edit, chain, *masked[:2])
        scores = _scores(code, chain, edit, masked[2])
    elif isinstance(scores, ast.Name) and not is_sure:
        branch = _branch(chain, scores.id)
        if branch is not None:
            chain.passed.append(branch.statement)
            mask = f", attn_mask={scores.id}"
            scores = _scores(code, chain, edit, scores)
    match scores:
        case ast.BinOp(left=left, op=ast.Add(), right=right) if not (mask or is_sure):
            others = (left, right), (right, left)
            found = [pair for pair in others if _is_scores(chain, pair[0])]
            if len(found) != 1:
                return ""
            ((scores, bias),) = found
            scores = _scores(code, chain, edit, scores)
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
            scores = _scores(code, chain, edit, scores)
            scale = edit.text(number) if is_product else f"1 / {edit.operand(number)}"
    operands = attention_operands(edit, scores)
    value = edit.text(outer[1])
    if summed is not None:
        value = attention_values(edit, summed)
    if operands is None or not value:
        return ""
    if bias is not None and is_causal(bias, False, chain.block.statements[: chain.at]):
        mask = ", is_causal=True"
    elif bias is not None:
        mask = f", attn_mask={edit.operand(bias)}.to({value}.dtype)"
    if branch is not None:
        mask = _set_in_branch(edit, chain, branch, mask)
    for read, texts in _shapes(code, chain):
        edit.replace(read, texts.format(q=operands[0], k=operands[1]))
    function = f"{edit.torch}.nn.functional.scaled_dot_product_attention"
    call = f"{function}({', '.join(operands)}, {value}{mask}{dropout}, scale={scale})"
    if summed is None:
        return call
    rows = summed.terms[0][:-1]
    (width,) = set(summed.result) - set(summed.terms[0])
    return summed.permuted(call, rows + width, summed.result)


def _scores(
    code: CellCode, chain: _Chain, edit: SourceEdit, node: ast.expr
) -> ast.expr:
    """Return what scores are set to, without casts where that may be."""
    node = _value(code, chain, node)
    while not chain.is_sure and (inner := _passed_on(edit, node)) is not None:
        if inner[1]:
            break
        node = _value(code, chain, inner[0])
    return node


def _is_lowest(chain: _Chain, value: ast.expr) -> bool:
    before = chain.block.statements[: chain.at]
    return is_lowest(value, before, chain.is_sure)


def _masked(chain: _Chain, scores: ast.expr) -> tuple[ast.expr, bool, ast.expr] | None:
    """Return a mask, whether scores are kept where it is true, and the scores."""
    match tensor_call(scores):
        case TensorCall("masked_fill" | "masked_fill_", (inner, mask, low)) if (
            _is_lowest(chain, low)
        ):
            return mask, False, inner
        case TensorCall("where", (mask, one, other)) if not chain.is_sure:
            if _is_lowest(chain, other):
                return mask, True, one
            if _is_lowest(chain, one):
                return mask, False, other
    return None


def _mask(edit: SourceEdit, chain: _Chain, mask: ast.expr, is_kept: bool) -> str:
    """Write a mask as an argument."""
    before = chain.block.statements[: chain.at]
    if not chain.is_sure and is_causal(mask, is_kept, before):
        return ", is_causal=True"
    return f", attn_mask={_kept(edit, mask, is_kept)}"


def _kept(edit: SourceEdit, mask: ast.expr, is_kept: bool) -> str:
    return edit.text(mask) if is_kept else f"~{edit.operand(mask)}"


def _branch(chain: _Chain, name: str) -> _Branch | None:
    """Return the branch right before, which only masks scores."""
    match chain.before[-1:]:
        case [ast.If(body=[*others, ast.Assign() as setting], orelse=[]) as statement]:
            masked = _masked(chain, setting.value)
            reads = [*_reads(statement.test, name), *_reads(setting, name)]
            is_let_be = all(_lets_be(one, name) for one in others)
            if masked is not None and _sets(setting, name) and is_let_be:
                if len(reads) == 1 and ast.unparse(masked[2]) == name:
                    return _Branch(statement, setting, *masked[:2])
    return None


def _set_in_branch(edit: SourceEdit, chain: _Chain, branch: _Branch, mask: str) -> str:
    """Have a branch set a mask, or tell that later tokens are left out."""
    statement, inside = branch.statement, branch.statement.body[:-1]
    others = chain.block.function or ast.Module(chain.block.statements, [])
    own = {name for one in inside for name in stored_names(one)}
    is_own = all(uses(others, name) == uses(statement, name) for name in own)
    before = [*chain.block.statements[: chain.at], *inside]
    if is_own and is_causal(branch.mask, branch.is_kept, before):
        chain.passed.remove(statement)
        chain.gone.append(statement)
        return f", is_causal=bool({edit.text(statement.test)})"
    (name,) = stored_names(branch.setting)
    edit.before(statement, f"{name} = None")
    edit.replace(branch.setting, f"{name} = {_kept(edit, branch.mask, branch.is_kept)}")
    return mask


def _shapes(code: CellCode, chain: _Chain) -> Iterator[tuple[ast.expr, str]]:
    """Give reads of the scores' shape in statements that stay, and what to read."""
    names = {name for one in chain.gone for name in stored_names(one)}
    for statement in chain.passed:
        for name in names:
            for read, text in shape_reads(statement, name):
                shape, is_shape, index = text.partition("shape")
                yield read, f"{_SHAPE}{index}" if is_shape else f"{{q}}.{shape}"


def _reads(node: ast.AST, name: str) -> list[ast.Name]:
    """Give the reads of a name for more than its shape."""
    shapes = {part for read, _ in shape_reads(node, name) for part in ast.walk(read)}
    return [
        one
        for one in ast.walk(node)
        if isinstance(one, ast.Name)
        and one.id == name
        and isinstance(one.ctx, ast.Load)
        and one not in shapes
    ]


def _lets_be(statement: ast.stmt, name: str) -> bool:
    """Tell whether a statement only sets other names and reads no more than shapes."""
    if not isinstance(statement, ast.Assign):
        return False
    return name not in stored_names(statement) and not _reads(statement, name)


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
    call = tensor_call(node)
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


def _is_scores(chain: _Chain, node: ast.expr, before: int | None = None) -> bool:
    """Tell whether a product leads to a value, by the statements before it."""
    if any(product_of(part) or einsum_of(part) for part in ast.walk(node)):
        return True
    statements = chain.before[:before]
    for name in names_in(node):
        for at, statement in reversed([*enumerate(statements)]):
            if isinstance(statement, ast.Assign) and _sets(statement, name):
                if _is_scores(chain, statement.value, at):
                    return True
                break
    return False


def _leads(chain: _Chain, node: ast.expr) -> bool:
    """Tell whether an expression is a product, or the name that was set to one."""
    if product_of(node) or einsum_of(node):
        return True
    match chain.before[-1:]:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)]:
            return ast.unparse(node) == name and bool(
                product_of(value) or einsum_of(value)
            )
    return False


def _value(code: CellCode, chain: _Chain, node: ast.expr) -> ast.expr:
    """Return what a name was set to just for this, or the expression itself."""
    if not isinstance(node, ast.Name):
        return node
    passed = list[ast.stmt]()
    for made in reversed(chain.before):
        if isinstance(made, ast.Assign) and _sets(made, node.id):
            value, name = made.value, node.id
            # it is computed after them
            taken = names_in(value) - {name}
            if any(stored_names(one) & taken for one in (*chain.passed, *passed)):
                return node
            # each value of the name is read once, by the next one or by the product
            versions = [name for one in (*chain.gone, made) if _sets(one, name)]
            left = sum(uses(one, name) for one in passed)
            used = chain.uses(code, name) - left
            if used == 2 * len(versions) or _is_reset(value, name):
                chain.passed.extend(passed)
                chain.gone.append(made)
                return value
            return node
        if chain.is_sure or not _lets_be(made, node.id):
            return node
        passed.append(made)
    return node


def _sets(statement: ast.stmt, name: str) -> bool:
    return (
        isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name
    )


def _is_reset(value: ast.expr, name: str) -> bool:
    """Tell whether a value is made of the one that its name had."""
    return uses(value, name) == 1

"""All pairs of two tensors' rows by broadcasting, of which only a sum is kept."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_monitors.units import share, size
from warpbook_profiler.advice.chip import Chip, Span
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Operands
from warpbook_profiler.facts.traffic import ITEM_BYTES
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

Dims = tuple[int, ...]

_SUM, _NORM = "aten::sum", "aten::linalg_vector_norm"
#: between the differences and their sum
_SQUARES = frozenset(f"aten::{name}" for name in "pow mul square".split())
#: of the result of all pairs, in times of what it is made of
_LEAST_RATIO = 4
#: a window with more is judged by these
_MOST_FOUND = 1_000
#: torch computes shorter rows' distances pair by pair
_LEAST_ROWS = 26
#: of the host, in operators: what cdist calls around its product
_CDIST = (1.0, 2.5, 5.0)
#: launches after a broadcast among which somebody may take all pairs
_NEAR = 24
#: small kernels around the product, and passes over what it gives
_KERNELS, _PASSES = 6, 3
_LETTERS = "abcdefghij"


class _Pairs(NamedTuple):
    """One broadcast, and what is done with it up to the sum."""

    first: Dims
    second: Dims
    #: all operators from the broadcast to the sum
    members: tuple[int, ...]
    #: axes of the result that are summed
    summed: tuple[int, ...]
    dtype: str

    @property
    def whole(self) -> Dims:
        return np.broadcast_shapes(self.first, self.second)

    @property
    def left(self) -> Dims:
        """Return the sizes of what is kept."""
        return tuple(n for at, n in enumerate(self.whole) if at not in self.summed)


class _Sum(NamedTuple):
    """A sum in the source, and the pairs that it is of."""

    call: ast.Call
    pair: ast.BinOp
    is_squared: bool
    #: what sets names that only it reads
    gone: tuple[ast.stmt, ...]


def pairs(evidence: Evidence) -> Iterator[Proposal]:
    """Propose a product of matrices, or torch.cdist."""
    chip = evidence.chip
    if chip is None:
        return
    for name, made in (("matmul-not-outer", "aten::mul"), ("cdist", "aten::sub")):
        is_product = made == "aten::mul"
        found = list(_found(evidence, made))
        sources = list(_sums(evidence.code, is_product))
        names_it = evidence.code.calls("sum", "norm", "vector_norm")
        if not found or (names_it and not sources):
            continue
        yield from _proposal(evidence, chip, name, found, sources)


def _proposal(
    evidence: Evidence,
    chip: Chip,
    name: str,
    found: list[_Pairs],
    sources: list[_Sum],
) -> Iterator[Proposal]:
    operators, ways = evidence.operators, Ways(evidence)
    is_product = name == "matmul-not-outer"
    for one in found:
        span = _span(chip, one, is_product)
        if span is None:
            return
        members = np.array(one.members, np.int64)
        ways.drop_operators(operators.outer_of(members[:-1]))
        last = operators.launched_within(members[-1:])
        ways.drop(last[1:])
        ways.resize(last[:1], span)
        if not is_product:
            around = evidence.takes("operator").each(*_CDIST)
            ways.add_host(evidence.calls.launch[last[:1]], around)
    every = np.concatenate([np.array(one.members) for one in found])
    took = evidence.share(evidence.time_ns(operators.launched_within(every)))
    first = found[0]
    whole_bytes = math.prod(first.whole) * ITEM_BYTES.get(first.dtype, 4)
    line = evidence.line_at(int(operators.table.start_ns[first.members[0]]))
    yield Proposal(
        name=name,
        title=(
            "Write the sum of products as a product of matrices."
            if is_product
            else "Compute the distances with torch.cdist."
        ),
        evidence=(
            f"{operators.name(first.members[0])} computes all pairs, "
            f"{'×'.join(map(str, first.whole))} or {size(whole_bytes)}, of which only "
            f"sums are used: {share(took)} of the bare run on the GPU."
        ),
        ways=ways,
        reason=""
        if is_product
        else "It uses matrix products, so distances of close points lose digits.",
        operator=operators.name(first.members[0]),
        line=sources[0].call.lineno if sources else line,
        code=_edited(evidence.code, sources, first),
    )


def _found(evidence: Evidence, made: str) -> Iterator[_Pairs]:
    operators = evidence.operators
    launching = operators.launching
    for first in np.flatnonzero(operators.named(made))[:_MOST_FOUND].tolist():
        operands = operators.operands(first)
        if len(operands.dims) < 2 or not all(operands.dims[:2]):
            continue
        one, two = operands.dims[:2]
        try:
            whole = np.broadcast_shapes(one, two)
        except ValueError:
            continue
        if math.prod(whole) < _LEAST_RATIO * (math.prod(one) + math.prod(two)):
            continue
        at = int(np.searchsorted(launching, first))
        members, summed = [first], None
        for after in launching[at + 1 : at + _NEAR].tolist():
            its = operators.operands(after)
            if operators.name(after) == made and its.dims[:2] == (one, two):
                # the next turn's
                break
            if whole not in its.dims:
                continue
            name = operators.name(after)
            members.append(after)
            if name in (_SUM, _NORM) and summed is None:
                summed = _axes(its.scalars, len(whole))
                if name == _NORM and (made == "aten::mul" or not _is_two(its)):
                    summed = ()
            elif made == "aten::mul" or summed is not None or not _squares(name, its):
                # somebody takes all pairs
                summed = ()
                break
        if not summed:
            continue
        pairs = _Pairs(one, two, tuple(members), summed, operands.dtypes[0])
        if _is_contraction(pairs):
            yield pairs


def _squares(name: str, operands: Operands) -> bool:
    return name in _SQUARES and (name != "aten::pow" or _is_two(operands))


def _is_two(operands: Operands) -> bool:
    return operands.scalars[1:2] in (("2",), ("2.",), ("2.0",))


def _axes(scalars: tuple[str, ...], rank: int) -> tuple[int, ...]:
    """Return the axes that `dim=` names, the first list among the arguments."""
    for text in scalars:
        if text.startswith("[") and text != "[]":
            numbers = [part.strip() for part in text.strip("[]").split(",")]
            if all(re.fullmatch(r"-?\d{1,4}", part, re.ASCII) for part in numbers):
                return tuple(sorted(int(part) % rank for part in numbers))
    return ()


def _padded(dims: Dims, rank: int) -> Dims:
    return (1,) * (rank - len(dims)) + dims


def _is_contraction(pairs: _Pairs) -> bool:
    """Tell whether both have what is summed, and each has an axis of its own."""
    rank = len(pairs.whole)
    one, two = _padded(pairs.first, rank), _padded(pairs.second, rank)
    both = all(one[at] == two[at] > 1 for at in pairs.summed)
    return (
        both
        and any(a > b for a, b in zip(one, two, strict=True))
        and any(b > a for a, b in zip(one, two, strict=True))
    )


def _span(chip: Chip, pairs: _Pairs, is_product: bool) -> Span | None:
    item_bytes = ITEM_BYTES.get(pairs.dtype, 4)
    left = math.prod(pairs.left)
    moved = (left + math.prod(pairs.first) + math.prod(pairs.second)) * item_bytes
    flops = 2.0 * math.prod(pairs.whole)
    if is_product:
        return chip.multiply(flops, pairs.dtype, moved)
    if pairs.dtype != "float" or max(pairs.left[-2:]) < _LEAST_ROWS:
        return None
    depth = math.prod(pairs.whole[at] for at in pairs.summed)
    product = chip.multiply(flops * (depth + 2) / depth, pairs.dtype, moved)
    if product is None:
        return None
    # one of its sides is short, so that few tiles are full
    product = Span(product.low_ns, 1.5 * product.usual_ns, 3 * product.high_ns)
    passes = chip.pass_over(2.0 * left * item_bytes).times(_PASSES)
    return product.plus(*passes).plus(*chip.pass_over(0.0).times(_KERNELS))


def _sums(code: CellCode, is_product: bool) -> Iterator[_Sum]:
    """Find the sums of products or squared differences of broadcast tensors."""
    flow, operation = ValueFlow(code), ast.Mult if is_product else ast.Sub
    for call in code.calls("sum", "norm", "vector_norm"):
        gone: list[ast.stmt] = []
        node = _only_use(flow, _argument(call.node), gone)
        is_squared = call.name == "sum" and not is_product
        if is_squared:
            node = _only_use(flow, _squared(node), gone)
        if isinstance(node, ast.BinOp) and isinstance(node.op, operation):
            sides = (flow.value(node.left), flow.value(node.right))
            is_sum = call.name == "sum" or not is_product
            if is_sum and any(_plain(side)[1] for side in sides):
                yield _Sum(call.node, node, is_squared, tuple(gone))


def _only_use(
    flow: ValueFlow, node: ast.expr | None, gone: list[ast.stmt]
) -> ast.expr | None:
    """Return what an expression stands for; None where others read its name, too.

    Args:
        flow: of the source.
        node: the expression; `d * d` reads its name twice, and may.
        gone: takes the statement that sets the name, which nobody needs then.
    """
    if not isinstance(node, ast.Name):
        return node
    statements = {flow.statement(one) for one in flow.reads(node.id)}
    setting = flow.setting(node.id)
    if setting is None or len(statements) != 1:
        return None
    gone.append(setting)
    return setting.value


def _argument(call: ast.Call) -> ast.expr | None:
    function = call.func
    if isinstance(function, ast.Attribute):
        text = ast.unparse(function.value)
        if text not in ("torch", "torch.linalg", "LA"):
            return function.value
    return call.args[0] if call.args else None


def _squared(node: ast.expr | None) -> ast.expr | None:
    match node:
        case ast.BinOp(left=inner, op=ast.Pow(), right=ast.Constant(value=2)):
            return inner
        case ast.Call(
            func=ast.Attribute(attr="pow", value=inner), args=[ast.Constant(value=2)]
        ):
            return inner
        case ast.Call(func=ast.Attribute(attr="square", value=ast.Name(id="torch"))):
            return node.args[0] if node.args else None
        case ast.Call(func=ast.Attribute(attr="square", value=inner)):
            return inner
        case ast.BinOp(left=one, op=ast.Mult(), right=two):
            return one if ast.dump(one) == ast.dump(two) else None
    return None


def _plain(node: ast.expr) -> tuple[ast.expr, int]:
    """Return what `x[:, None]` or `x.unsqueeze(1)` adds axes to, and how many."""
    match node:
        case ast.Call(func=ast.Attribute(attr="unsqueeze", value=inner)):
            return inner, 1
        case ast.Subscript(value=inner, slice=index):
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            texts = [ast.unparse(part) for part in parts]
            if all(one in ("None", ":", "...") for one in texts):
                return inner, texts.count("None")
    return node, 0


def _edited(code: CellCode, sums: list[_Sum], pairs: _Pairs) -> str:
    """Write the sum anew, and leave out what held all pairs."""
    if len(sums) != 1:
        return ""
    (one,) = sums
    # dim= alone
    is_method = _argument(one.call) not in one.call.args
    is_plain = all(given.arg in ("dim", "axis") for given in one.call.keywords)
    # a norm's order may be another than 2
    is_sum = ast.unparse(one.call.func).endswith("sum")
    if not is_plain or len(one.call.args) > (not is_method) + is_sum:
        return ""
    rank = len(pairs.whole)
    edit, flow, names, axes = (
        SourceEdit(code),
        ValueFlow(code),
        list[str](),
        list[str](),
    )
    for side, dims in ((one.pair.left, pairs.first), (one.pair.right, pairs.second)):
        plain, added = _plain(flow.value(side))
        if not isinstance(plain, ast.Name) and flow.value(side) is not side:
            return ""
        read = [part.id for part in ast.walk(plain) if isinstance(part, ast.Name)]
        if not all(flow.is_same(name, plain, one.call) for name in read):
            return ""
        names.append(edit.text(plain))
        sizes = enumerate(_padded(dims, rank))
        axes.append("".join(_LETTERS[at] for at, n in sizes if n > 1))
        if len(axes[-1]) != len(dims) - added:
            return ""
    whole: ast.expr = one.call
    kept = "".join(_LETTERS[at] for at in range(rank) if at not in pairs.summed)
    if isinstance(one.pair.op, ast.Mult):
        text = f"{edit.torch}.einsum('{axes[0]},{axes[1]}->{kept}', {', '.join(names)})"
    elif sorted(axes) == ["ac", "bc"] and pairs.summed == (2,):
        first, second = names if axes[0] == "ac" else reversed(names)
        text = f"{edit.torch}.cdist({first}, {second})"
        root = _root(flow, one.call) if one.is_squared else None
        text += ".square()" if one.is_squared and root is None else ""
        whole = root or whole
    else:
        return ""
    for statement in one.gone:
        edit.delete(statement)
    edit.replace(whole, text)
    return edit.source()


def _root(flow: ValueFlow, call: ast.Call) -> ast.expr | None:
    """Return the square root of a sum that is taken where it is."""
    match flow.parent(call):
        case ast.Attribute(attr="sqrt") as function:
            above = flow.parent(function)
            return above if isinstance(above, ast.Call) and not above.args else None
        case ast.Call(func=ast.Attribute(attr="sqrt"), args=[_]) as above:
            return above
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=0.5)) as above:
            return above if left is call else None
    return None


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("matmul-not-outer",),
            what="a product of all pairs by broadcasting, and its sum",
            time="predicted",
        ),
        ChangeKind(
            names=("cdist",),
            what="distances of all pairs by broadcasting",
            time="predicted",
        ),
    ),
    rule=pairs,
    untried=BY_EDIT,
)

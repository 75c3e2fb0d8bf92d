"""All pairs of two tensors' rows by broadcasting, of which only a sum is kept."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_monitors.units import share, size
from warpbook_profiler.advice.chip import Chip, Span
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.operations import assigned
from warpbook_profiler.advice.code.pair_code import (
    Dims,
    PairSum,
    Shape,
    has_pairs,
    pair_sums,
    summed_einsum,
    written,
)
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Operands
from warpbook_profiler.facts.traffic import ITEM_BYTES
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_SUMS, _NORM = ("aten::sum", "aten::mean"), "aten::linalg_vector_norm"
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


class _Pairs(NamedTuple):
    """One broadcast, and what is done with it up to the sum."""

    first: Dims
    second: Dims
    #: all operators from the broadcast to the sum
    members: tuple[int, ...]
    #: axes of the result that are summed
    summed: tuple[int, ...]
    dtype: str
    #: of what the result is multiplied with, and its dtype
    others: tuple[tuple[Dims, str], ...] = ()

    @property
    def whole(self) -> Dims:
        return np.broadcast_shapes(self.first, self.second)

    @property
    def shape(self) -> Shape:
        others = tuple((dims, dtype != self.dtype) for dims, dtype in self.others)
        return Shape(self.first, self.second, self.whole, self.summed, others)

    @property
    def left(self) -> Dims:
        """Return the sizes of what is kept."""
        return tuple(n for at, n in enumerate(self.whole) if at not in self.summed)


def pairs(evidence: Evidence) -> Iterator[Proposal]:
    """Propose a product of matrices, or torch.cdist."""
    chip = evidence.chip
    if chip is None:
        return
    for name, made in (("matmul-not-outer", "aten::mul"), ("cdist", "aten::sub")):
        is_product = made == "aten::mul"
        found = list(_found(evidence, made))
        if not found:
            continue
        code = assigned(evidence.code)
        sources = list(pair_sums(code, is_product))
        if not sources and has_pairs(code, is_product):
            # something else is done with them
            continue
        yield from _proposal(evidence, chip, name, found, code, sources)


def _proposal(
    evidence: Evidence,
    chip: Chip,
    name: str,
    found: list[_Pairs],
    code: CellCode,
    sources: list[PairSum],
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
        code=written(code, sources, first.shape) or summed_einsum(code),
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
        others = list[tuple[Dims, str]]()
        for after in launching[at + 1 : at + _NEAR].tolist():
            its = operators.operands(after)
            if operators.name(after) == made and its.dims[:2] == (one, two):
                # the next turn's
                break
            if whole not in its.dims:
                continue
            # in place, too
            name = operators.name(after).rstrip("_")
            members.append(after)
            if name in (*_SUMS, _NORM) and summed is None:
                summed = _axes(its.scalars, len(whole))
                if name == _NORM and (made == "aten::mul" or not _is_two(its)):
                    summed = ()
            elif name == made == "aten::mul" and summed is None:
                at_other = int(its.dims[0] == whole)
                other = its.dims[at_other]
                others.append((other, its.dtypes[at_other]))
                if math.prod(other) * _LEAST_RATIO > math.prod(whole):
                    summed = ()
                    break
            elif made == "aten::mul" or summed is not None or not _squares(name, its):
                # somebody takes all pairs
                summed = ()
                break
        if not summed:
            continue
        dtype, more = operands.dtypes[0], tuple(others)
        pairs = _Pairs(one, two, tuple(members), summed, dtype, more)
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

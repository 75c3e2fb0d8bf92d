"""Rows of a table chosen by a product with a matrix of ones and zeros."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.code.chosen_rows import (
    RowProduct,
    chosen_rows,
    row_products,
)
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.rewriting.called_code import copied_code
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Int64s, distinct
from warpbook_profiler.facts.traffic import ITEM_BYTES
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_SCATTERS = ("aten::scatter_", "aten::scatter")
_MUL, _SUM = "aten::mul", "aten::sum"
_PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm")
#: they fill it, write the ones and change its dtype: each element stays what it is
_MAKES = frozenset(
    f"aten::{name}" for name in "fill_ zero_ scatter_ copy_ _to_copy zeros".split()
)
#: they store into chosen places of it
_STORES = ("aten::index_put_", "aten::_index_put_impl_")
_INDEX, _EYE, _EQUAL, _ARANGE = "aten::index", "aten::eye", "aten::eq", "aten::arange"
#: a source that has one of these makes such a matrix itself
_MAKERS = ("one_hot", "scatter_", "scatter", "eye", "arange")
#: so many operators may lie between those that make it
_MOST_BETWEEN = 4
#: a window with more is judged by these
_MOST_FOUND = 1_000
#: of an index of short rows, each
_ROW_NS = (0.4, 0.65, 0.9)


class _Chosen(NamedTuple):
    """A matrix of ones and zeros, and the product that takes it."""

    makes: Int64s
    product: int
    rows: int
    width: int
    item_bytes: int


def one_hot(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to index the table."""
    chip, code = evidence.chip, evidence.code
    found = [] if chip is None else list(_found(evidence))
    products = _in_sight(evidence) if found else None
    if chip is None or products is None:
        return
    if any(one.is_kept for one in products):
        found = [one._replace(makes=one.makes[:0]) for one in found]
    operators, ways = evidence.operators, Ways(evidence)
    every = np.concatenate([np.append(one.makes, one.product) for one in found])
    launched = operators.launched_within(every)
    for one in found:
        ways.drop_operators(one.makes)
        product = operators.outer_of(np.array([one.product]))
        of_product = operators.launched_within(product)
        ways.drop(of_product[1:])
        moved = chip.pass_over(2.0 * one.rows * one.width * one.item_bytes)
        rows_ns = (one.rows * row_ns for row_ns in _ROW_NS)
        span = Span(*map(max, moved, rows_ns))
        ways.resize(of_product[:1], span)
        ways.drop_gaps([[*one.makes.tolist(), *product.tolist()]])
        # an index asks the host for less than a product does
        launch = evidence.calls.launch[of_product[:1]]
        table, begun = operators.table, evidence.calls.api.start_ns[launch]
        ways.drop_host(int(table.track[product[0]]), table.start_ns[product], begun - 1)
        ways.add_host(launch, evidence.takes("operator"))
    first = found[0]
    line = evidence.line_at(int(operators.table.start_ns[first.product]))
    own = next(row_products(code), None)
    yield Proposal(
        name="index-not-one-hot",
        title="Index the table: a product with a one-hot matrix only selects rows.",
        evidence=(
            f"A matrix is made with one 1 in each of {first.rows:,} rows, and a "
            f"product with it gives {first.width:,} numbers a row, "
            f"{len(found):,} time{'s' if len(found) > 1 else ''}: "
            f"{units.share(evidence.share(evidence.time_ns(launched)))} of the bare "
            "run on the GPU."
        ),
        ways=ways,
        operator=operators.name(first.product),
        line=own.product.lineno if own else line,
        code=chosen_rows(code)
        if all(_is_of_table(operators, one.product) for one in found)
        else "",
    )


def _in_sight(evidence: Evidence) -> list[RowProduct] | None:
    """Give such products of the cell and of what it calls.

    Returns:
        None where they make such a matrix for something else.
    """
    code = evidence.code
    codes = code, copied_code(code.source, evidence.run.called).code
    found = [product for one in codes for product in row_products(one)]
    is_made = any(one.calls(*_MAKERS) for one in codes)
    return found if found or not is_made else None


def _is_of_table(operators: Operators, product: int) -> bool:
    """Tell whether all rows are chosen in one matrix, and not in one of each batch."""
    outer = int(operators.outer_of(np.array([product]))[0])
    names = operators.name(outer), operators.name(product)
    return names[1] != "aten::bmm" or names[0] == "aten::einsum"


def _found(evidence: Evidence) -> Iterator[_Chosen]:
    operators = evidence.operators
    launching = operators.launching
    writes = operators.named(*_SCATTERS, *_STORES, _INDEX, _EQUAL)[launching]
    for at in np.flatnonzero(writes)[:_MOST_FOUND].tolist():
        made = _made(operators, at)
        if made is None:
            continue
        hot, makes = made
        product, is_multiplied = None, False
        for after in launching[at + 1 :].tolist():
            its = operators.operands(after)
            place = _place(its.dims, hot)
            if place is None:
                break
            if operators.name(after) in _PRODUCTS:
                product = None if is_multiplied else after
                break
            if operators.name(after) == _SUM and is_multiplied:
                product = after
                break
            if operators.name(after) == _MUL and its.dims[:2] == (hot, hot):
                is_multiplied = True
                makes.append(after)
                continue
            if operators.name(after) not in _MAKES:
                break
            makes.append(after)
        if product is None:
            continue
        its = operators.operands(product)
        place = _place(its.dims, hot) or 0
        is_sum = operators.name(product) == _SUM
        if is_sum or (place + 1 < len(its.dims) and its.dims[place + 1]):
            *_, width = (1,) if is_sum else its.dims[place + 1]
            item_bytes = ITEM_BYTES.get(its.dtypes[place], 4)
            rows = math.prod(hot[:-1])
            outer = operators.outer_of(np.array(makes, np.int64))
            yield _Chosen(distinct(outer), product, rows, width, item_bytes)


def _made(operators: Operators, at: int) -> tuple[tuple[int, ...], list[int]] | None:
    """Return the sizes of a matrix with one 1 in each row, and what makes it."""
    launching = operators.launching
    position = int(launching[at])
    name, called = operators.name(position), operators.operands(position)
    before: list[int] = launching[max(at - _MOST_BETWEEN, 0) : at].tolist()
    dims = called.dims
    hot, makes = dims[0] if dims else (), [position]
    if name in _SCATTERS:
        ones = called.scalars
        is_one = len(ones) > 3 and ones[3] in ("1", "1.", "1.0")
        if len(dims) < 3 or dims[2] != (*hot[:-1], 1) or not is_one:
            return None
    elif name in _STORES:
        # `zeros(n, v)[arange(n), index] = 1`
        is_number = dims[2:3] == ((),)
        if len(hot) != 2 or not is_number or not _counts(operators, before, hot[0]):
            return None
    elif name == _EQUAL:
        # `index[:, None] == arange(v)`
        columns = [one[-1] for one in dims[:2] if one and math.prod(one) == one[-1]]
        rows = [one for one in dims[:2] if one[-1:] == (1,)]
        if len(rows) != 1 or not columns or not _counts(operators, before, columns[0]):
            return None
        hot = (math.prod(rows[0]), columns[0])
    else:
        # `eye(v)[index]`
        eyes = [one for one in before if _outer(operators, one) == _EYE]
        taken = launching[at + 1 : at + 2].tolist()
        if not eyes or len(hot) != 2 or hot[0] != hot[1] or not taken:
            return None
        given = operators.operands(taken[0]).dims
        rows = [one for one in given[:2] if len(one) > 1 and one[-1] == hot[1]]
        if not rows:
            return None
        return rows[0], [*eyes, position]
    for one in before:
        is_make = operators.name(one) in _MAKES
        if is_make and operators.operands(one).dims[:1] == (hot,):
            makes.append(one)
    if name in _STORES and len(makes) == 1:
        return None
    return hot, makes


def _counts(operators: Operators, before: list[int], size: int) -> bool:
    """Tell whether one of these operators is `arange` of this size."""
    return any(
        _outer(operators, one) == _ARANGE
        # of what launches it alone a live profile has them
        and str(size) in operators.operands(one).scalars
        for one in before
    )


def _outer(operators: Operators, position: int) -> str:
    return operators.name(int(operators.outer_of(np.array([position]))[0]))


def _place(dims: Sequence[tuple[int, ...]], matrix: tuple[int, ...]) -> int | None:
    """Return which operand is this matrix, whose rows may be in one axis there."""
    for at, one in enumerate(dims):
        if one[-1:] == matrix[-1:] and math.prod(one) == math.prod(matrix):
            return at
    return None


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("index-not-one-hot",),
            what="a product with a one-hot matrix, which only selects rows",
            time="predicted",
        ),
    ),
    rule=one_hot,
    untried=BY_EDIT,
)

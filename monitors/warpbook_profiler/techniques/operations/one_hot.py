"""Rows of a table chosen by a product with a matrix of ones and zeros."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Int64s, distinct
from warpbook_profiler.facts.traffic import ITEM_BYTES
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_SCATTER = "aten::scatter_"
_MUL, _SUM = "aten::mul", "aten::sum"
_PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm")
#: they fill it, write the ones and change its dtype: each element stays what it is
_MAKES = frozenset(
    f"aten::{name}" for name in "fill_ zero_ scatter_ copy_ _to_copy zeros".split()
)
#: a window with more is judged by these
_MOST_FOUND = 1_000
#: calls and products of a source that are looked at
_MOST_PRODUCTS = 200
#: of an index of short rows, each
_ROW_NS = (0.4, 0.65, 0.9)
_FUNCTIONS = frozenset("matmul mm".split())
_CASTS = frozenset("float half bfloat16 double to type type_as".split())


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
    products = list(_in_source(code))
    names_it = code.calls("one_hot", "scatter_", "scatter")
    if chip is None or (names_it and not products):
        return
    found = list(_found(evidence))
    if not found:
        return
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
    line = evidence.line_at(int(operators.table.start_ns[first.makes[0]]))
    yield Proposal(
        name="index-not-one-hot",
        title="Index the table: a product with a one-hot matrix only selects rows.",
        evidence=(
            f"{_SCATTER} writes one 1 into each of {first.rows:,} rows, and a product "
            f"with that matrix gives {first.width:,} numbers a row, "
            f"{len(found):,} time{'s' if len(found) > 1 else ''}: "
            f"{units.share(evidence.share(evidence.time_ns(launched)))} of the bare "
            "run on the GPU."
        ),
        ways=ways,
        operator=operators.name(first.product),
        line=products[0].lineno if products else line,
        code=_edited(code, products),
    )


def _found(evidence: Evidence) -> Iterator[_Chosen]:
    operators = evidence.operators
    launching = operators.launching
    scatters = np.flatnonzero(operators.named(_SCATTER))[:_MOST_FOUND]
    for scatter in scatters.tolist():
        operands = operators.operands(scatter)
        dims, ones = operands.dims, operands.scalars
        is_one = len(ones) > 3 and ones[3] in ("1", "1.", "1.0")
        if len(dims) < 3 or dims[2] != (*dims[0][:-1], 1) or not is_one:
            continue
        at = int(np.searchsorted(launching, scatter))
        makes, product, is_multiplied = list[int](), None, False
        for before in launching[max(at - 2, 0) : at + 1].tolist():
            is_make = operators.name(before) in _MAKES
            if is_make and operators.operands(before).dims[:1] == dims[:1]:
                makes.append(before)
        for after in launching[at + 1 :].tolist():
            its = operators.operands(after)
            place = _place(its.dims, dims[0])
            if place is None:
                break
            if operators.name(after) in _PRODUCTS:
                product = after
                break
            if operators.name(after) == _SUM and is_multiplied:
                product = after
                break
            if operators.name(after) == _MUL and its.dims[:2] == (dims[0], dims[0]):
                is_multiplied = True
                makes.append(after)
                continue
            if operators.name(after) not in _MAKES:
                break
            makes.append(after)
        if product is None:
            continue
        its = operators.operands(product)
        place = _place(its.dims, dims[0]) or 0
        is_sum = operators.name(product) == _SUM
        if is_sum or (place + 1 < len(its.dims) and its.dims[place + 1]):
            *_, width = (1,) if is_sum else its.dims[place + 1]
            item_bytes = ITEM_BYTES.get(its.dtypes[place], 4)
            rows = math.prod(dims[0][:-1])
            outer = operators.outer_of(np.array(makes, np.int64))
            yield _Chosen(distinct(outer), product, rows, width, item_bytes)


def _place(dims: Sequence[tuple[int, ...]], matrix: tuple[int, ...]) -> int | None:
    """Return which operand is this matrix, whose rows may be in one axis there."""
    for at, one in enumerate(dims):
        if one[-1:] == matrix[-1:] and math.prod(one) == math.prod(matrix):
            return at
    return None


def _in_source(code: CellCode) -> Iterator[ast.expr]:
    """Find products whose left side has one 1 in each row."""
    flow = ValueFlow(code)
    scattered = {
        call.node.func.value
        for call in code.calls("scatter_", "scatter")
        if isinstance(call.node.func, ast.Attribute)
    }
    several = (
        (node, sides)
        for node in ast.walk(code.tree)
        if isinstance(node, ast.expr) and (sides := _sides(node)) is not None
    )
    for node, sides in islice(several, _MOST_PRODUCTS):
        left = _without_casts(flow, sides[0])
        if _index(left) is not None:
            yield node
        elif isinstance(sides[0], ast.Name) and any(
            isinstance(one, ast.Name) and one.id == sides[0].id for one in scattered
        ):
            # else than by its methods nobody changes it
            reads = flow.reads(sides[0].id)
            if all(one in scattered or one is sides[0] for one in reads):
                yield node


def _sides(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    match node:
        case ast.BinOp(left=left, op=ast.MatMult(), right=right):
            return left, right
        case ast.Call(
            func=ast.Attribute(
                attr="sum", value=ast.BinOp(left=left, op=ast.Mult(), right=right)
            )
        ):
            return (left, right) if "one_hot" in ast.unparse(left) else (right, left)
        case ast.Call(func=ast.Attribute(attr=name), args=[left, right]):
            return (left, right) if name in _FUNCTIONS else None
        case ast.Call(func=ast.Attribute(attr=name, value=left), args=[right]):
            return (left, right) if name in _FUNCTIONS else None
    return None


def _without_casts(flow: ValueFlow, node: ast.expr) -> ast.expr:
    """Return what is cast: each element stays what it is."""
    node = flow.value(node)
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _CASTS
    ):
        node = flow.value(node.func.value)
    return node


def _index(node: ast.expr) -> ast.expr | None:
    """Return what a matrix of ones and zeros was made of."""
    match node:
        case ast.Call(func=ast.Attribute(attr="one_hot") | ast.Name(id="one_hot")):
            return node.args[0] if node.args else None
        case ast.Subscript(value=ast.Call(func=ast.Attribute(attr="eye")), slice=index):
            return index if isinstance(index, ast.Name) else None
    return None


def _edited(code: CellCode, products: list[ast.expr]) -> str:
    """Write the index in place of products; a matrix that nobody else reads goes."""
    edit, flow = SourceEdit(code), ValueFlow(code)
    for product in products:
        sides = _sides(product)
        if sides is None or not _is_product(product):
            return ""
        made, index = _made_of(code, flow, sides[0])
        if index is None:
            return ""
        read = [part.id for part in ast.walk(index) if isinstance(part, ast.Name)]
        if not all(flow.is_same(name, index, product) for name in read):
            return ""
        for statement in made:
            edit.delete(statement)
        edit.replace(product, f"{edit.operand(sides[1])}[{edit.text(index)}]")
    return edit.source()


def _is_product(node: ast.expr) -> bool:
    """Tell whether whole rows are chosen, and not one number of each."""
    function = node.func if isinstance(node, ast.Call) else None
    return not (isinstance(function, ast.Attribute) and function.attr == "sum")


def _made_of(
    code: CellCode, flow: ValueFlow, matrix: ast.expr
) -> tuple[list[ast.stmt], ast.expr | None]:
    """Return the statements that make a matrix for one product, and its index."""
    index = _index(_without_casts(flow, matrix))
    if not isinstance(matrix, ast.Name):
        return [], index
    reads = flow.reads(matrix.id)
    scattered = [
        call.node
        for call in code.calls("scatter_")
        if isinstance(call.node.func, ast.Attribute) and call.node.func.value in reads
    ]
    made = [flow.setting(matrix.id), *map(flow.statement, scattered)]
    known = [one for one in made if one is not None]
    if len(known) < len(made) or len(reads) != 1 + len(scattered):
        return [], None
    if scattered:
        index = _scattered(flow.setting(matrix.id), scattered)
    return known, index


def _scattered(setting: ast.Assign | None, calls: list[ast.Call]) -> ast.expr | None:
    """Return "i" of `zeros(...)` and `scatter_(1, i[:, None], 1)`, and nothing else."""
    match setting, calls:
        case (
            ast.Assign(value=ast.Call(func=ast.Attribute(attr="zeros"))),
            [ast.Call(args=[dim, index, ast.Constant(value=1)], keywords=[])],
        ) if ast.unparse(dim) in ("1", "-1"):
            return _flat(index)
    return None


def _flat(node: ast.expr) -> ast.expr | None:
    """Return "i" of `i[:, None]` and `i.unsqueeze(1)`."""
    match node:
        case ast.Subscript(value=inner, slice=ast.Tuple() as index):
            return inner if ast.unparse(index) in ("(:, None)", ":, None") else None
        case ast.Call(func=ast.Attribute(attr="unsqueeze", value=inner), args=[dim]):
            return inner if ast.unparse(dim) in ("1", "-1") else None
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

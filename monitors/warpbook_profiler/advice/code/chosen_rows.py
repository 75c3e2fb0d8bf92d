"""Products with matrices of ones and zeros in a source, which only choose rows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import CellCode, last_name
from warpbook_profiler.advice.code.operations import Operation, operation
from warpbook_profiler.advice.code.read_code import uses
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow

#: products of a source that are looked at
_MOST_PRODUCTS = 200
_FUNCTIONS = frozenset("matmul mm".split())
#: each element stays what it is
_CASTS = frozenset("float half bfloat16 double to type type_as".split())


class RowProduct(NamedTuple):
    """A product, its table, and what chooses rows."""

    product: ast.expr
    table: ast.expr
    chosen: ast.expr
    #: statements that only make the matrix
    made: list[ast.stmt]
    #: others read the matrix, too
    is_kept: bool
    #: there is a row for each number
    is_sure: bool
    #: whole rows are chosen, and not one number of each
    is_whole: bool


def chosen_rows(code: CellCode, is_sure: bool = True) -> str:
    """Write an index in place of products; matrices that nobody else reads go.

    Args:
        code: of the cell.
        is_sure: leave alone what gives zeros where an index is out of range.
    """
    edit, flow = SourceEdit(code), ValueFlow(code)
    for one in row_products(code):
        if not one.is_whole or (is_sure and not one.is_sure):
            return ""
        read = [part.id for part in ast.walk(one.chosen) if isinstance(part, ast.Name)]
        if not all(flow.is_same(name, one.chosen, one.product) for name in read):
            return ""
        for statement in one.made:
            edit.delete(statement)
        edit.replace(one.product, f"{edit.operand(one.table)}[{edit.text(one.chosen)}]")
    return edit.source()


def row_products(code: CellCode) -> Iterator[RowProduct]:
    """Find products whose left side has one 1 in each row."""
    flow = ValueFlow(code)
    several = (
        (node, sides)
        for node in ast.walk(code.tree)
        if isinstance(node, ast.expr) and (sides := _sides(node)) is not None
    )
    for node, (matrix, table) in islice(several, _MOST_PRODUCTS):
        made = _made(code, flow, node, matrix)
        if made is not None:
            is_whole = not isinstance(node, ast.Call) or last_name(node.func) != "sum"
            yield RowProduct(node, table, *made, is_whole=is_whole)


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
        case ast.Call(
            func=ast.Attribute(attr="linear"),
            args=[
                left,
                ast.Call(func=ast.Attribute(attr="t", value=right), args=[])
                | ast.Attribute(attr="T" | "mT", value=right),
            ],
            keywords=[],
        ):
            return left, right
        case ast.Call(
            func=ast.Attribute(attr="einsum"),
            args=[ast.Constant(value=str(equation)), left, right],
            keywords=[],
        ):
            terms, _, result = equation.replace(" ", "").partition("->")
            one, _, two = terms.partition(",")
            is_product = len(two) == 2 and result == one[:-1] + two[1:]
            return (left, right) if is_product and one[-1:] == two[:1] else None
        case ast.Call(
            func=ast.Attribute(attr=name), args=[left, right], keywords=[]
        ) if name in _FUNCTIONS:
            return left, right
        case ast.Call(
            func=ast.Attribute(attr=name, value=left), args=[right], keywords=[]
        ) if name in _FUNCTIONS:
            return left, right
    return None


def _made(
    code: CellCode, flow: ValueFlow, product: ast.expr, node: ast.expr
) -> tuple[ast.expr, list[ast.stmt], bool, bool] | None:
    """Return what chooses rows, and what makes the matrix.

    Returns:
        the index, the statements that go, whether others read the matrix, so that none
        of them goes, and whether there is a row for each number.
    """
    made, stored, store = list[ast.stmt](), None, None
    counts = dict[str, int]()
    before = _before(flow, product)
    while True:
        node = _without_casts(node)
        if not isinstance(node, ast.Name):
            break
        name = node.id
        counts[name] = counts.get(name, 0) + 2
        for statement in before:
            if (value := _value(statement, name)) is not None:
                made.append(statement)
                node = value
                break
            if stored is None and (stored := _stored(statement, name)) is not None:
                made.append(statement)
                store = statement
                counts[name] += 1
            elif uses(statement, name) and not isinstance(statement, ast.FunctionDef):
                return None
        else:
            return None
    index = _index(flow, node) if stored is None else _of_zeros(node, stored)
    # zeros of before a loop keep the ones of its earlier turns
    is_once = store is None or flow.parent(store) is flow.parent(made[-1])
    if index is None or not is_once:
        return None
    if not all(flow.is_same(name, made[0], product) for name in counts):
        return None
    function = flow.function(product) or code.tree
    is_alone = all(uses(function, name) == count for name, count in counts.items())
    if stored is not None and not is_alone:
        return None
    is_sure = not any(_compared(node))
    return index, made if is_alone else [], not is_alone, is_sure


def _before(flow: ValueFlow, product: ast.expr) -> Iterator[ast.stmt]:
    """Give the statements before a product, the nearest first."""
    node = flow.statement(product)
    while node is not None:
        above = flow.parent(node)
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(above, name, [])
            if isinstance(statements, list) and node in statements:
                yield from reversed(statements[: statements.index(node)])
        if isinstance(above, ast.FunctionDef | ast.Module | None):
            return
        node = above if isinstance(above, ast.stmt) else None


def _value(statement: ast.stmt, name: str) -> ast.expr | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
            return value
    return None


def _without_casts(node: ast.expr) -> ast.expr:
    """Return what is cast."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _CASTS
    ):
        node = node.func.value
    return node


def _index(flow: ValueFlow, node: ast.expr) -> ast.expr | None:
    """Return what a matrix of ones and zeros was made of."""
    match node:
        case ast.Call(func=ast.Attribute(attr="one_hot") | ast.Name(id="one_hot")):
            return node.args[0] if node.args else None
        case ast.Subscript(value=value, slice=ast.Name() as index):
            match flow.value(value):
                case ast.Call(func=ast.Attribute(attr="eye")):
                    return index
    # `index[:, None] == arange(v)`
    for left, right in _compared(node):
        if _is_arange(flow.value(right)):
            return _flat(left)
    return None


def _compared(node: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Give both sides of a comparison of elements, either one first."""
    match operation(node) or node:
        case ast.Compare(left=one, ops=[ast.Eq()], comparators=[other]) | Operation(
            "eq", [one, other]
        ):
            yield one, other
            yield other, one


def _is_arange(node: ast.expr) -> bool:
    match node:
        case ast.Subscript(value=inner, slice=index):
            is_row = ast.unparse(index).strip("()") in ("None", "None, :")
            return is_row and _is_arange(inner)
        case ast.Call(func=ast.Attribute(attr="unsqueeze", value=inner), args=[dim]):
            return ast.unparse(dim) == "0" and _is_arange(inner)
        case ast.Call(func=ast.Attribute(attr="arange"), args=[_]):
            return True
    return False


def _stored(statement: ast.stmt, name: str) -> tuple[ast.expr | None, ast.expr] | None:
    """Return "i" of `m.scatter_(1, i[:, None], 1)` and of `m[arange(n), i] = 1`.

    With it comes n, where the rows are counted.
    """
    match statement:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(attr="scatter_", value=ast.Name(id=target)),
                args=[dim, index, ast.Constant(value=1)],
                keywords=[],
            )
        ) if target == name and ast.unparse(dim) in ("1", "-1"):
            flat = _flat(index)
            return None if flat is None else (None, flat)
        case ast.Assign(
            targets=[ast.Subscript(value=ast.Name(id=target), slice=ast.Tuple(elts))],
            value=ast.Constant(value=1),
        ) if target == name:
            match elts:
                case [ast.Call(func=function, args=[rows]), ast.Name() as index]:
                    counts = last_name(function) in ("arange", "range")
                    return (rows, index) if counts else None
    return None


def _of_zeros(
    node: ast.expr, stored: tuple[ast.expr | None, ast.expr]
) -> ast.expr | None:
    """Return the index where all else of the matrix is zero."""
    rows, index = stored
    match node:
        case ast.Call(func=ast.Attribute(attr="zeros"), args=[first, *_]):
            if isinstance(first, ast.Tuple | ast.List) and first.elts:
                first = first.elts[0]
            if rows is None or ast.dump(rows) == ast.dump(first):
                return index
    return None


def _flat(node: ast.expr) -> ast.expr | None:
    """Return "i" of `i[:, None]` and `i.unsqueeze(1)`."""
    match node:
        case ast.Subscript(value=inner, slice=ast.Tuple() as index):
            rows = ast.unparse(index).strip("()")
            return inner if rows in (":, None", "..., None") else None
        case ast.Call(func=ast.Attribute(attr="unsqueeze", value=inner), args=[dim]):
            return inner if ast.unparse(dim) in ("1", "-1") else None
    return None

"""Where a cell's source multiplies matrices, and edits to faster products."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import (
    SIMPLE,
    Block,
    CellCode,
    blocks,
    bound_names,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import PRODUCT, opaque_calls, steps
from warpbook_profiler.advice.code.value_flow import ValueFlow

#: a region of more lines is shown by nobody
_MOST_STATEMENTS = 6
#: their products are those of the forward pass once more, or none
_OF_TRAINING = frozenset("backward step zero_grad".split())
#: a name that may hold what autocast computed
_WIDE = "{0} = {0}.float() if getattr({0}, 'dtype', None) is {1} else {0}"
_FUNCTIONS = frozenset("matmul mm bmm".split())


class ProductCode(NamedTuple):
    """The statements from a cell's first product to its last, in one block."""

    code: CellCode
    statements: tuple[ast.stmt, ...]
    #: the products that are written out, `a @ b`
    products: tuple[ast.expr, ...]

    @property
    def line(self) -> int:
        """Give the first statement's line."""
        return self.statements[0].lineno

    def in_bfloat16(self, casts: bool = False) -> str:
        """Write them under autocast; may be empty.

        Args:
            casts: what they give is made float32, as it was.
        """
        edit = SourceEdit(self.code)
        half = f"{edit.torch}.bfloat16"
        casting = [_WIDE.format(name, half) for name in _kept_names(self.statements)]
        for given in _appended(self.statements) if casts else ():
            edit.replace(given, f"{edit.operand(given)}.float()")
        if casts and casting:
            edit.after(self.statements[-1], "\n".join(casting))
        manager = f'{edit.torch}.autocast("cuda", dtype=torch.bfloat16)'
        around = self._around()
        if isinstance(around, ast.With):
            last = around.items[-1]
            name = last.optional_vars or last.context_expr
            edit.replace(name, f"{edit.text(name)}, {manager}")
        else:
            edit.under([around] if around else self.statements, manager)
        return edit.source()

    def _around(self) -> ast.stmt | None:
        """Return the `with` or the line of code that has nothing but the products."""
        for node in ast.walk(self.code.tree):
            body = getattr(node, "body", None)
            if not isinstance(body, list) or self.statements[0] not in body:
                continue
            if isinstance(node, ast.With) and len(body) == len(self.statements):
                return node
            # what is in the loop's line gets no block of its own
            is_line = isinstance(node, ast.For) and node.lineno == body[0].lineno
            return node if isinstance(node, ast.For) and is_line else None
        return None

    def with_setting(self, *lines: str) -> str:
        """Write the cell with settings before its first work."""
        edit = SourceEdit(self.code)
        edit.at_start("\n".join(f"{edit.torch}.{line}" for line in lines))
        return edit.source()

    def in_float32(self) -> str:
        """Write the product of operands that are cast; may be empty."""
        operands = self._operands()
        edit = SourceEdit(self.code)
        for operand in operands:
            edit.replace(operand, f"{edit.operand(operand)}.float()")
        return edit.source() if operands else ""

    def padded(self, tile: int) -> str:
        """Write a product of padded matrices, cut to its size again; may be empty.

        What is added to the inner size is zero in both, and adds nothing.
        """
        operands = [node for node in self._operands() if isinstance(node, ast.Name)]
        names = [node.id for node in operands]
        if len(names) != 2 or not bound_names(self.code.tree).isdisjoint(names):
            return ""
        flow = ValueFlow(self.code)
        if not all(flow.is_same(one.id, None, one) for one in operands):
            return ""
        edit, padded = SourceEdit(self.code), dict[str, str]()
        for name in names:
            if name not in padded:
                padded[name] = edit.free_name(f"{name}_padded")
                sizes = (
                    f"(0, -{name}.shape[-1] % {tile}, 0, -{name}.shape[-2] % {tile})"
                )
                pad = f"{edit.torch}.nn.functional.pad({name}, {sizes})"
                edit.at_start(f"{padded[name]} = {pad}")
        left, right = names
        cut = f"[..., : {left}.shape[-2], : {right}.shape[-1]]"
        product = f"({padded[left]} @ {padded[right]}){cut}"
        edit.replace(self.products[0], product)
        return edit.source()

    def _operands(self) -> list[ast.expr]:
        """Give the two that the only product multiplies."""
        if len(self.products) != 1 or len(self.statements) != 1:
            return []
        return _multiplied(self.products[0])


def _kept_names(statements: Sequence[ast.stmt]) -> list[str]:
    """Give the names that statements set."""
    names = [
        one.id
        for statement in statements
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        for one in (target.elts if isinstance(target, ast.Tuple) else [target])
        if isinstance(one, ast.Name)
    ]
    return list(dict.fromkeys(names))


def _appended(statements: Sequence[ast.stmt]) -> Iterator[ast.expr]:
    for statement in statements:
        match statement:
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(attr="append"), args=[given])
            ):
                yield given


class _Place(NamedTuple):
    """A statement with products, or with a call that may have some."""

    block: Block
    #: among the statements of its block
    number: int
    products: tuple[ast.expr, ...]
    is_opaque: bool


def product_code(code: CellCode, line: int | None) -> ProductCode | None:
    """Find the products of a source; None where it is not sure which they are.

    Args:
        line: That of a product; None where lines are not known.
    """
    places = list(_places(code, line))
    chosen = [place for place in places if place.products]
    if not chosen and len(places) == 1:
        chosen = places
    elif any(not place.products for place in places):
        # it may be in what is called there
        return None
    if not chosen or any(place.block is not chosen[0].block for place in chosen):
        return None
    return _from_first_to_last(code, chosen)


def possible_products(code: CellCode) -> Iterator[ProductCode]:
    """Give each block's statements that multiply, or call what may."""
    places = list(_places(code, None))
    for block in blocks(code.tree):
        chosen = [
            place for place in places if place.block.statements is block.statements
        ]
        found = _from_first_to_last(code, chosen) if chosen else None
        if found is not None:
            yield found


def _from_first_to_last(code: CellCode, chosen: list[_Place]) -> ProductCode | None:
    first, last = chosen[0].number, chosen[-1].number
    statements = tuple(chosen[0].block.statements[first : last + 1])
    are_simple = all(isinstance(statement, SIMPLE) for statement in statements)
    if not are_simple or len(statements) > _MOST_STATEMENTS:
        return None
    return ProductCode(
        code,
        statements,
        tuple(
            product
            for place in chosen
            for product in place.products
            if not place.is_opaque
        ),
    )


def _places(code: CellCode, line: int | None) -> Iterator[_Place]:
    opaque = {call for call in opaque_calls(code.tree) if not _trains(call)}
    for block in blocks(code.tree):
        for number, statement in enumerate(block.statements):
            if not isinstance(statement, SIMPLE):
                continue
            if line is not None and not _has_line(statement, line):
                continue
            products = tuple(_products(statement))
            is_opaque = not opaque.isdisjoint(ast.walk(statement))
            if products or is_opaque:
                yield _Place(block, number, products, is_opaque)


def _has_line(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or line)


def _products(statement: ast.stmt) -> Iterator[ast.expr]:
    if isinstance(statement, SIMPLE) and statement.value is not None:
        for step in steps(statement.value):
            if PRODUCT in step.names:
                yield step.node


def _trains(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _OF_TRAINING


def _multiplied(product: ast.expr) -> list[ast.expr]:
    """Give the two that are multiplied; nothing for another kind of product."""
    match product:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Call(func=ast.Attribute(attr=name, value=receiver), args=arguments):
            if name not in _FUNCTIONS or product.keywords:
                return []
            is_method = len(arguments) == 1
            return [receiver, *arguments] if is_method else list(arguments)
    return []

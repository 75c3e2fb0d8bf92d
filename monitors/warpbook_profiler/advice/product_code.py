"""Where a cell's source multiplies matrices, and sketches of faster products there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.cell_code import (
    SIMPLE,
    Block,
    CellCode,
    blocks,
    replaced,
    stored_names,
)
from warpbook_profiler.advice.torch_code import PRODUCT, opaque_calls, steps

#: a region of more lines is shown by nobody
_MOST_STATEMENTS = 6
_MOST_CHARACTERS = 400
#: their products are those of the forward pass once more, or none
_OF_TRAINING = frozenset("backward step zero_grad".split())
_FUNCTIONS = frozenset("matmul mm bmm".split())


class ProductCode(NamedTuple):
    """The statements from a cell's first product to its last, in one block."""

    statements: tuple[ast.stmt, ...]
    #: the products that are written out, `a @ b`
    products: tuple[ast.expr, ...]
    #: names that the cell sets
    stored: frozenset[str]

    @property
    def line(self) -> int:
        """Give the first statement's line."""
        return self.statements[0].lineno

    @property
    def text(self) -> str:
        """Give the statements' code; empty where it is too long for a sketch."""
        text = "\n".join(ast.unparse(statement) for statement in self.statements)
        return text if len(text) <= _MOST_CHARACTERS else ""

    def in_bfloat16(self) -> str:
        """Write them under autocast; may be empty."""
        body = "\n".join(f"    {line}" for line in self.text.splitlines())
        head = 'with torch.autocast("cuda", dtype=torch.bfloat16):'
        return f"{head}\n{body}" if body else ""

    def in_float32(self) -> str:
        """Write casts of what is multiplied; empty where no two names are."""
        names = self._operands()
        if not names or not self.stored.isdisjoint(names):
            return ""
        casts = ", ".join(f"{name}.float()" for name in names)
        return f"{', '.join(names)} = {casts}"

    def padded(self, tile: int) -> str:
        """Write a product of padded matrices, cut to its size again; may be empty.

        What is added to the inner size is zero in both, and adds nothing.
        """
        names = self._operands()
        if not names or len(self.text) > _MOST_CHARACTERS // 2:
            return ""
        left, right = names[0], names[-1]
        lines = [
            f"{name}_padded = torch.nn.functional.pad(\n"
            f"    {name}, (0, -{name}.shape[-1] % {tile}, "
            f"0, -{name}.shape[-2] % {tile})\n)  # once where {name} stays the same"
            for name in names
        ]
        cut = f"[..., :{left}.shape[-2], :{right}.shape[-1]]"
        product = f"({left}_padded @ {right}_padded){cut}"
        lines.append(replaced(self.statements[0], self.products[0], product))
        return "\n".join(lines)

    def _operands(self) -> list[str]:
        """Give the names that the only product multiplies, one if it is a square."""
        if len(self.products) != 1 or len(self.statements) != 1:
            return []
        operands = _multiplied(self.products[0])
        names = [node.id for node in operands if isinstance(node, ast.Name)]
        return list(dict.fromkeys(names)) if len(names) == 2 else []


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
    first, last = chosen[0].number, chosen[-1].number
    statements = tuple(chosen[0].block.statements[first : last + 1])
    are_simple = all(isinstance(statement, SIMPLE) for statement in statements)
    if not are_simple or len(statements) > _MOST_STATEMENTS:
        return None
    return ProductCode(
        statements,
        tuple(
            product
            for place in chosen
            for product in place.products
            if not place.is_opaque
        ),
        frozenset(stored_names(code.tree)),
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

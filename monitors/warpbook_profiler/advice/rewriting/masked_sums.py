"""Sums and extremes of elements that a mask chooses, over all elements.

How many a mask chooses is a number that the host waits for; a sum of zeros in their
place is not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.code.cell_code import CellCode, last_name, names_in
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.rewriting.masked_stores import is_mask, mask_names
from warpbook_profiler.advice.rewriting.turns import UnsureError, statement_of

#: what stands for what is left out
_EXTREMES = {"max": "-inf", "amax": "-inf", "min": "inf", "amin": "inf"}
_LAST = frozenset(("sum", "mean", "numel", *_EXTREMES))
#: how many are chosen
_NUMBERS = frozenset("numel len shape size".split())
#: of elements, one by one; those of the second set leave a zero as it is
_EACH = frozenset("exp log log1p log2 log10 sigmoid cos clamp reciprocal rsqrt".split())
_KEEPS_ZERO = frozenset(
    "abs square sqrt neg relu sin tan tanh float double detach nan_to_num sign".split()
)


def masked_sums(code: CellCode) -> Iterator[str]:
    """Write what is summed of `x[mask]` as sums of all elements."""
    try:
        text = _Masked(code).written()
    except UnsureError:
        return
    if text:
        yield text


class _Mask:
    """A mask in one block: names of what it leaves out, and of how many it chooses."""

    def __init__(self, edit: SourceEdit, before: ast.stmt, text: str) -> None:
        self._edit, self._before, self._text = edit, before, text
        self.left_out = edit.free_name("left_out")
        self._number = ""

    @property
    def number(self) -> str:
        self._number = self._number or self._edit.free_name("number")
        return self._number

    def write(self) -> None:
        """Write lines that compute what is used of it."""
        mask, lines = self._text, list[str]()
        if self._number and not mask.isidentifier():
            mask = self._edit.free_name("chosen")
            lines.append(f"{mask} = {self._text}")
        lines.append(
            f"{self.left_out} = ~{mask if mask.isidentifier() else f'({mask})'}"
        )
        if self._number:
            lines.append(f"{self._number} = {mask}.sum()")
        self._edit.before(self._before, "\n".join(lines))


class _Chosen(NamedTuple):
    """What a name has all elements of."""

    mask: str
    every: str
    #: where the mask leaves it out
    is_zero: bool


class _Masked:
    def __init__(self, code: CellCode) -> None:
        self._code, self._flow, self._edit = code, ValueFlow(code), SourceEdit(code)
        self._masks = mask_names(code)
        self._chosen: dict[str, _Chosen] = {}
        self._made: dict[tuple[str, ast.AST | None, bool], _Mask] = {}

    def written(self) -> str:
        kinds = ast.Assign, ast.Call, ast.Subscript
        nodes = [one for one in ast.walk(self._code.tree) if isinstance(one, kinds)]
        # the outer of two that begin together comes first
        nodes.sort(key=lambda one: (one.lineno, one.col_offset, -(one.end_lineno or 0)))
        done = set[ast.AST]()
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
                    mask := self._mask_of(value)
                ) and self._is_summed(name):
                    text, is_zero = self._of_all(value, mask)
                    every = self._edit.free_name(f"every_{name}")
                    self._edit.replace(node, f"{every} = {text}")
                    self._chosen[name] = _Chosen(mask, every, is_zero)
                    done |= set(ast.walk(node))
        for node in (one for one in nodes if isinstance(one, ast.expr)):
            if node not in done and (text := self._reduced(node)):
                self._edit.replace(node, text)
                done |= set(ast.walk(node))
        for one in self._made.values():
            one.write()
        return self._edit.source() if done else ""

    def _is_summed(self, name: str) -> bool:
        """Tell whether nothing but sums and extremes is made of a name's elements."""
        reads = self._flow.reads(name)
        return (
            self._flow.is_set_once(name) and bool(reads) and all(map(self._ends, reads))
        )

    def _ends(self, node: ast.expr) -> bool:
        """Tell whether an expression of chosen elements becomes a number."""
        above = self._flow.parent(node)
        match above:
            case ast.Attribute(attr=name):
                call = self._flow.parent(above)
                if name == "shape":
                    return (
                        isinstance(call, ast.Subscript)
                        and ast.unparse(call.slice) == "0"
                    )
                if not isinstance(call, ast.Call) or call.func is not above:
                    return False
                if name == "size":
                    return list(map(ast.unparse, call.args)) == ["0"]
                if name in _LAST:
                    return not call.args and not call.keywords
                return name in _EACH | _KEEPS_ZERO and self._ends(call)
            case ast.Call(func=function):
                name = last_name(function)
                if name in _LAST | {"len"}:
                    return len(above.args) == 1 and not above.keywords
                return name in _EACH | _KEEPS_ZERO and self._ends(above)
            case ast.BinOp() | ast.UnaryOp():
                return self._ends(above)
            case ast.Assign(targets=[ast.Name(id=name)]):
                return self._is_summed(name)
        return False

    def _mask_of(self, node: ast.expr) -> str:
        """Return the mask of which an expression has one element each; may be empty."""
        match node:
            case ast.Name(id=name):
                return self._chosen[name].mask if name in self._chosen else ""
            case ast.Subscript(slice=mask) if self._is_mask(mask):
                return ast.unparse(mask)
            case ast.Call(func=ast.Attribute(attr="masked_select"), args=[*_, mask]):
                return ast.unparse(mask)
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if (
                name in _EACH | _KEEPS_ZERO
            ):
                parts = [value, *node.args]
            case ast.BinOp(left=left, right=right):
                parts = [left, right]
            case ast.UnaryOp(operand=inner):
                parts = [inner]
            case _:
                return ""
        masks = set(filter(None, map(self._mask_of, parts)))
        return masks.pop() if len(masks) == 1 else ""

    def _of_all(self, node: ast.expr, mask: str) -> tuple[str, bool]:
        """Write an expression with all elements; tell if it is zero without the mask.

        Raises:
            UnsureError: elements of another mask are among them.
        """
        match node:
            case ast.Name(id=name) if name in self._chosen:
                chosen = self._chosen[name]
                return chosen.every, chosen.is_zero
            case ast.Subscript(value=whole) if self._mask_of(node):
                return self._zeros(whole, node, mask), True
            case ast.Call(
                func=ast.Attribute(attr="masked_select", value=whole), args=[*given, _]
            ):
                return self._zeros(given[0] if given else whole, node, mask), True
            case ast.Call(func=ast.Attribute(attr=name, value=value)) if self._mask_of(
                node
            ):
                is_function = not self._mask_of(value)
                first = node.args[0] if is_function else value
                text, is_zero = self._of_all(first, mask)
                start = ast.unparse(node.func) if is_function else f"{text}.{name}"
                rest = [self._of_all(one, mask)[0] for one in node.args[is_function:]]
                for keyword in node.keywords:
                    rest.append(f"{keyword.arg}={self._of_all(keyword.value, mask)[0]}")
                called = [text, *rest] if is_function else rest
                return f"{start}({', '.join(called)})", is_zero and name in _KEEPS_ZERO
            case ast.BinOp() if text := self._sum_of_parts(node):
                return f"{text}.masked_fill_({self._left_out(node, mask)}, 0)", True
            case ast.BinOp(left=left, right=right, op=op) if self._mask_of(node):
                one, of_one = self._of_all(left, mask)
                two, of_two = self._of_all(right, mask)
                is_number = isinstance(right, ast.Constant)
                is_zero = of_one and (is_number or of_two)
                if isinstance(op, ast.Add | ast.Sub):
                    is_zero = of_one and of_two
                elif isinstance(op, ast.Div | ast.Pow):
                    is_zero = of_one and is_number
                sign = ast.unparse(ast.BinOp(ast.Name("a"), op, ast.Name("b")))[1:-1]
                return f"({one}{sign}{two})", is_zero
            case ast.UnaryOp(op=ast.USub(), operand=inner) if self._mask_of(node):
                text, is_zero = self._of_all(inner, mask)
                return f"(-{text})", is_zero
        if number := self._reduced(node):
            return number, False
        if self._mask_of(node) or names_in(node) & self._chosen.keys():
            raise UnsureError
        return self._edit.operand(node), False

    def _sum_of_parts(self, node: ast.expr) -> str:
        """Write `x[mask] - y[mask]` as `x - y`; empty for anything else.

        It is memory of its own, and no gradient goes through what is set to zero in it.
        """
        match node:
            case ast.BinOp(left=left, right=right, op=ast.Add() | ast.Sub() as op):
                one, two = map(self._part, (left, right))
                sign = "+" if isinstance(op, ast.Add) else "-"
                return f"({one} {sign} {two})" if one and two else ""
        return ""

    def _part(self, node: ast.expr) -> str:
        match node:
            case ast.Subscript(value=whole, slice=mask) if self._is_mask(
                mask
            ) and not self._mask_of(whole):
                return self._edit.operand(whole)
        return self._sum_of_parts(node)

    def _zeros(self, whole: ast.expr, node: ast.expr, mask: str) -> str:
        if self._mask_of(whole):
            raise UnsureError
        left_out = self._left_out(node, mask)
        return f"{self._edit.operand(whole)}.masked_fill({left_out}, 0)"

    def _is_mask(self, node: ast.expr) -> bool:
        """Tell whether an index is a mask, as far as the source tells."""
        if is_mask(node, self._masks):
            return True
        if not isinstance(node, ast.Name):
            return False
        flow, name = self._flow, node.id
        return flow.is_item(node) or flow.takes(name) or not flow.is_set(name)

    def _reduced(self, node: ast.expr) -> str:
        """Write a sum or an extreme with all elements; empty for anything else."""
        match node:
            case ast.Call(
                func=ast.Attribute(attr=name, value=ast.Name(id="torch")),
                args=[value],
                keywords=[],
            ) if name in _LAST:
                pass
            case ast.Call(
                func=ast.Attribute(attr=name, value=value), args=[], keywords=[]
            ) if name in _LAST:
                pass
            case ast.Call(func=ast.Name(id="len" as name), args=[value]):
                pass
            case ast.Subscript(
                value=ast.Attribute(attr="shape" as name, value=value),
                slice=ast.Constant(value=0),
            ):
                pass
            case ast.Call(
                func=ast.Attribute(attr="size" as name, value=value),
                args=[ast.Constant(value=0)],
            ):
                pass
            case ast.Call(func=ast.Name(id="max"), args=[one, other], keywords=[]):
                return self._at_least(one, other) or self._at_least(other, one)
            case _:
                return ""
        mask = self._mask_of(value)
        if not mask:
            return ""
        if name in _NUMBERS:
            return self._number(node, mask)
        text, is_zero = self._of_all(value, mask)
        if name in _EXTREMES:
            left_out, least = self._left_out(node, mask), _EXTREMES[name]
            return f'{text}.masked_fill({left_out}, float("{least}")).{name}()'
        if not is_zero:
            text = f"{text}.masked_fill({self._left_out(node, mask)}, 0)"
        if name == "sum":
            return f"{text}.sum()"
        return f"({text}.sum() / {self._number(node, mask)})"

    def _at_least(self, number: ast.expr, least: ast.expr) -> str:
        """Write `max(n, 1)` of how many a mask chooses; empty for anything else."""
        match least, self._reduced(number):
            case ast.Constant(value=int() as limit), text if text:
                return f"{text}.clamp(min={limit})"
        return ""

    def _left_out(self, node: ast.expr, mask: str) -> str:
        made = self._of_mask(node, mask)
        return made.left_out if made else f"~({mask})"

    def _number(self, node: ast.expr, mask: str) -> str:
        made = self._of_mask(node, mask)
        return made.number if made else f"({mask}).sum()"

    def _of_mask(self, node: ast.expr, mask: str) -> _Mask | None:
        """Return the mask in the block of an expression; None where it has none."""
        flow, statement = self._flow, statement_of(self._flow, node)
        if statement is None:
            return None
        block = flow.parent(statement)
        is_same = all(
            flow.is_set_once(name) or not flow.settings(name)
            for name in names_in(ast.parse(mask))
        )
        arm = statement in getattr(block, "orelse", [])
        key = mask, (block if is_same else statement), arm
        if key not in self._made:
            self._made[key] = _Mask(self._edit, statement, mask)
        return self._made[key]

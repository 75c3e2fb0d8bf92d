"""A loop over rows of a cell's source, written as operations on all rows at once."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from warpbook_profiler.advice.code.cell_code import CellCode, bound_names
from warpbook_profiler.advice.code.loops import RowLoop
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.torch_code import is_number
from warpbook_profiler.facts.traffic import only_passes

#: functions of one tensor that treat each element by itself, beside those that pass
_ELEMENTWISE = frozenset("to cpu cuda float half bfloat16 double long bool".split())
#: they work along an axis, as passes that are not of each element do
_ALONG = frozenset("softmax log_softmax cumsum cumprod logsumexp".split())
_REDUCES = frozenset("sum mean prod amax amin argmax argmin norm std var".split())
#: what a whole row is reduced by, along the only axis of a row
_OF_ROW = {"max": "amax", "min": "amin"}
_NOT_ELEMENTWISE = frozenset(
    "flip roll tril triu copy fill zero normal uniform bernoulli exponential".split()
)


_MODULES = frozenset("torch F nn.functional torch.nn.functional".split())


class _UnsureError(Exception):
    """It is not sure what an expression is of all rows."""


def of_all_rows(
    code: CellCode, loop: RowLoop, axes: int, is_list: bool, is_mixed: bool = False
) -> str:
    """Write the cell with one operation for all rows; empty where it is not sure.

    Args:
        code: the cell.
        loop: one that it has.
        axes: of a row, as the trace has them.
        is_list: rows are tensors of one size in a list.
        is_mixed: an operator takes a tensor without an axis beside one that has axes.
    """
    try:
        edit = _Rows(code, loop, axes, is_list, is_mixed)
        return edit.comprehension() or edit.loop()
    except _UnsureError:
        return ""


class _Rows:
    """One loop, with what its rows are called."""

    def __init__(
        self, code: CellCode, loop: RowLoop, axes: int, is_list: bool, is_mixed: bool
    ) -> None:
        self._axes, self._is_mixed = axes, is_mixed
        self._edit = SourceEdit(code)
        self._node = loop.node
        #: by name of a row: all of them
        self._rows: dict[str, str] = {}
        #: the name that counts rows, and how many there are
        self._index, self._count = "", ""
        made = loop.node if isinstance(loop.node, ast.For) else loop.node.generators[0]
        if isinstance(made, ast.comprehension) and made.ifs:
            raise _UnsureError
        self._go_through(made.target, made.iter)
        self._is_list, self._stored = is_list, bound_names(loop.node)
        self._changed = self._stored | _filled(loop.node)

    def _go_through(self, target: ast.expr, source: ast.expr) -> None:
        match target, source:
            case ast.Name(id=name), ast.Call(func=ast.Name(id="range"), args=[count]):
                self._index, self._count = name, _length(count)
                self._count = self._count or self._edit.operand(count)
                if uses_any(count, {name}) or not _length(count) and _varies(count):
                    raise _UnsureError
            case ast.Name(id=name), ast.Name() | ast.Attribute() if not _varies(source):
                self._rows[name] = ast.unparse(source)
            case (
                ast.Tuple(elts=[ast.Name(id=index), ast.Name(id=name)]),
                ast.Call(func=ast.Name(id="enumerate"), args=[ast.Name(id=rows)]),
            ):
                self._rows[name] = rows
                self._index, self._count = index, f"len({rows})"
            case _:
                raise _UnsureError

    def comprehension(self) -> str:
        if not isinstance(self._node, ast.ListComp):
            return ""
        self._edit.replace(self._node, f"list({self._all(self._node.elt)}.unbind())")
        return self._edit.source()

    def loop(self) -> str:
        loop = self._node
        if not isinstance(loop, ast.For) or loop.orelse:
            return ""
        *before, last = map(self._statement, loop.body)
        for line in (*self._last_turn(), *before):
            self._edit.before(loop, line)
        self._edit.replace(loop, last)
        return self._edit.source()

    def _last_turn(self) -> Iterator[str]:
        """Write what the loop leaves in the names that it goes through."""
        if self._index:
            number = self._count
            last = str(int(number) - 1) if number.isdecimal() else f"{number} - 1"
            yield f"{self._index} = {last}"
        for row, rows in self._rows.items():
            yield f"{row} = {rows}[-1]"

    def _statement(self, statement: ast.stmt) -> str:
        match statement:
            case ast.Assign(
                targets=[ast.Subscript(value=out, slice=ast.Name(id=index))],
                value=value,
            ) if index == self._index and self._stays(out):
                text = self._edit.operand(out)
                whole = self._all(value)
                if isinstance(value, ast.BinOp | ast.Compare | ast.UnaryOp):
                    whole = whole[1:-1]
                return f"{text}[{self._slice(text)}] = {whole}"
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(attr="append", value=ast.Name(id=name)),
                    args=[value],
                )
            ) if name not in self._stored:
                return f"{name} += {self._all(value)}.unbind()"
        raise _UnsureError

    def _slice(self, text: str) -> str:
        space = "" if self._count.isalnum() else " "
        return ":" if self._count == f"len({text})" else f":{space}{self._count}"

    def _whole(self, text: str) -> str:
        part = self._slice(text)
        whole = text if part == ":" else f"{text}[{part}]"
        return f"{self._edit.torch}.stack({whole})" if self._is_list else whole

    def _all(self, value: ast.expr) -> str:
        """Write what a value is of all rows.

        Raises:
            _UnsureError: it is none of a row, or that is not sure.
        """
        whole = self._row(value)
        if whole is None:
            raise _UnsureError
        return whole

    def _row(self, node: ast.expr) -> str | None:
        """Write a row's expression for all rows; None for what has no row."""
        text = self._own(node)
        if text is None and (_varies(node) or uses_any(node, self._changed)):
            raise _UnsureError
        return text

    def _stays(self, node: ast.expr) -> bool:
        """Tell whether what rows are taken from is the same one in all turns."""
        return not _varies(node) and not uses_any(node, self._stored)

    def _own(self, node: ast.expr) -> str | None:
        match node:
            case ast.Name(id=name) if name in self._rows:
                if self._is_list:
                    return f"{self._edit.torch}.stack(list({self._rows[name]}))"
                return self._rows[name]
            case ast.Subscript(value=value, slice=ast.Name(id=index)) if (
                index == self._index and self._stays(value)
            ):
                return self._whole(self._edit.operand(value))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self._row(operand)
                return None if inner is None else f"(-{inner})"
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                rows, others = self._row(left), self._row(right)
                # a vector times a matrix is a row of matrices' product
                is_sure = self._axes == 2 or (self._axes == 1 and others is None)
                if rows is None and others is None:
                    return None
                is_sure &= not _reductions(node)
                if rows is None or not is_sure:
                    raise _UnsureError
                return f"({rows} @ {others or self._edit.operand(right)})"
            case ast.BinOp(left=left, op=op, right=right):
                return self._of_two(left, ast.unparse(ast.BinOp(_A, op, _B)), right)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                compared = ast.unparse(ast.Compare(_A, [op], [_B]))
                return self._of_two(left, compared, right)
            case ast.Call(func=ast.Attribute(attr=name, value=receiver)):
                return self._of_call(node, name, receiver)
        return None

    def _of_two(self, left: ast.expr, operation: str, right: ast.expr) -> str | None:
        one, other = self._row(left), self._row(right)
        if one is None and other is None:
            return None
        if not (is_number(left) or is_number(right) or _reductions(left, right)):
            # which of the two has no axis is unknown
            if self._is_mixed:
                raise _UnsureError
        if one is None or other is None:
            row, rest = (right, left) if one is None else (left, right)
            if self._left_out(row) and not is_number(rest):
                raise _UnsureError
        elif (fewer := self._left_out(left)) != (less := self._left_out(right)):
            # what has an axis less stands beside all of the row, as it did
            if {fewer, less} != {0, 1}:
                raise _UnsureError
            one += ".unsqueeze(1)" * fewer
            other += ".unsqueeze(1)" * less
        symbol = operation.removeprefix("a ").removesuffix(" b")
        one, other = one or self._edit.operand(left), other or self._edit.operand(right)
        return f"({one} {symbol} {other})"

    def _left_out(self, node: ast.expr) -> int:
        """Count the axes that a value has less than a row."""
        match node:
            case (
                ast.BinOp(left=left, right=right)
                | ast.Compare(left=left, comparators=[right])
            ):
                sides = [one for one in (left, right) if self._has_row(one)]
                return min(map(self._left_out, sides), default=0)
            case ast.UnaryOp(operand=operand):
                return self._left_out(operand)
            case ast.Call(func=ast.Attribute(value=value), args=given):
                is_method = ast.unparse(value) not in _MODULES
                inner = value if is_method or not given else given[0]
                return self._left_out(inner) + _reduces(node)
        return 0

    def _has_row(self, node: ast.expr) -> bool:
        return uses_any(node, {*self._rows, self._index})

    def _of_call(self, call: ast.Call, name: str, receiver: ast.expr) -> str | None:
        given = list(call.args)
        is_method = ast.unparse(receiver) not in _MODULES
        if not is_method and not given:
            return None
        whole = self._row(receiver if is_method else given[0])
        rest = given if is_method else given[1:]
        others = [*rest, *(keyword.value for keyword in call.keywords)]
        if whole is None:
            return None
        if any(self._row(other) is not None for other in others):
            raise _UnsureError
        arguments = self._arguments(name, rest, call.keywords)
        name = _OF_ROW.get(name, name)
        if is_method:
            return f"{whole}.{name}({', '.join(arguments)})"
        return f"{ast.unparse(receiver)}.{name}({', '.join([whole, *arguments])})"

    def _arguments(
        self, name: str, rest: list[ast.expr], keywords: list[ast.keyword]
    ) -> list[str]:
        """Write a function's other arguments for all rows.

        Raises:
            _UnsureError: its effect on rows is unknown.
        """
        plain = name.rstrip("_")
        texts = [ast.unparse(one) for one in rest]
        named = {one.arg: ast.unparse(one.value) for one in keywords}
        if name != plain or None in named or plain in _NOT_ELEMENTWISE:
            raise _UnsureError
        if plain in _ALONG or plain in _REDUCES or plain in _OF_ROW:
            axis = named.pop("dim", None) or (texts.pop(0) if texts else None)
            if plain == "norm" and rest:
                raise _UnsureError
            if axis is None and self._axes == 1 and plain not in _ALONG:
                axis = "-1"
            # with an axis these give indices, too
            gives_two = plain in _OF_ROW and bool(rest or keywords)
            if texts or gives_two or not _is_axis(axis):
                raise _UnsureError
            number = int(axis or 0)
            texts = [f"dim={number + 1 if number >= 0 else number}"]
        elif plain not in _ELEMENTWISE and not only_passes(f"aten::{plain}"):
            raise _UnsureError
        return [*texts, *(f"{key}={value}" for key, value in named.items())]


def _reductions(*nodes: ast.expr) -> int:
    """Count the calls that leave an axis out."""
    return sum(_reduces(part) for node in nodes for part in ast.walk(node))


def _reduces(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _REDUCES | _OF_ROW.keys()
        and not any(keyword.arg == "keepdim" for keyword in node.keywords)
    )


def _filled(loop: ast.AST) -> set[str]:
    """Return the names of what a loop writes to, or appends to."""
    filled: set[str] = set()
    for part in ast.walk(loop):
        match part:
            case (
                ast.Subscript(value=value, ctx=ast.Store())
                | ast.Attribute(value=value, attr="append")
            ):
                inside = ast.walk(value)
                filled |= {one.id for one in inside if isinstance(one, ast.Name)}
    return filled


def _varies(node: ast.AST) -> bool:
    """Tell whether code may give another value in each turn."""
    return any(
        isinstance(part, ast.Await | ast.Yield | ast.YieldFrom)
        or (isinstance(part, ast.Call) and not _is_of_math(part.func))
        for part in ast.walk(node)
    )


def _is_of_math(function: ast.expr) -> bool:
    return ast.unparse(function).startswith("math.")


_A, _B = ast.Name("a", ast.Load()), ast.Name("b", ast.Load())


def uses_any(node: ast.AST, names: set[str]) -> bool:
    """Tell whether code has one of these names."""
    return any(
        isinstance(part, ast.Name) and part.id in names for part in ast.walk(node)
    )


def _length(count: ast.expr) -> str:
    """Write `len(x)`, `x.shape[0]` and `x.size(0)` in one way; else nothing."""
    match count:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]):
            return f"len({name})"
        case ast.Subscript(
            value=ast.Attribute(attr="shape", value=ast.Name(id=name)),
            slice=ast.Constant(value=0),
        ):
            return f"len({name})"
        case ast.Call(
            func=ast.Attribute(attr="size", value=ast.Name(id=name)),
            args=[ast.Constant(value=0)],
        ):
            return f"len({name})"
    return ""


def _is_axis(text: str | None) -> bool:
    return text is not None and bool(re.fullmatch(r"-?\d{1,4}", text, re.ASCII))

"""Parts chosen by a mask: their number is read by the host, which waits for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from warpbook_monitors.units import duration_ns
from warpbook_profiler.advice.code.cell_code import Call, CellCode, blocks
from warpbook_profiler.advice.code.read_code import (
    calls_in_turns,
    loop_around,
    uses,
)
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Int64s
from warpbook_profiler.techniques.host.waits import HOST_WAITS, printed
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_NONZERO, _SELECT = "aten::nonzero", "aten::masked_select"
_INDEXES = ("aten::index", "aten::index_put_", "aten::_index_put_impl_")
#: a window with more is judged by these
_MOST_FOUND = 5_000
_HALF = "c10::Half"
_MASKS = (ast.Compare, ast.BoolOp)


class _Indexed(NamedTuple):
    """`x[mask]` in the source."""

    tensor: ast.expr
    mask: ast.expr
    #: what gives the chosen elements
    node: ast.Subscript | ast.Call
    #: `at = nonzero(mask)`, where that is what indexes
    made: ast.Assign | None = None


def masks(evidence: Evidence) -> Iterator[Proposal]:
    """Propose to compute with all elements, and to keep the mask."""
    operators, calls = evidence.operators, evidence.calls
    indexes = operators.named(*_INDEXES)
    is_nonzero = operators.named(_NONZERO)
    chosen = is_nonzero & np.append(indexes, False)[operators.parent]
    if next(iter(_own_indices(evidence.code)), None) is not None:
        chosen |= is_nonzero
    selects = operators.named(_SELECT)
    chosen &= ~operators.within(np.flatnonzero(selects))
    chosen = (chosen | selects) & ~operators.within(printed(evidence))
    positions = np.flatnonzero(chosen)[:_MOST_FOUND]
    waits = evidence.waits_within(positions)
    if not len(waits):
        return
    code, source = evidence.code, _in_source(evidence.code)
    if code.is_known and source is None and not calls_in_turns(code):
        return
    ways = Ways(evidence)
    ways.drop_operators(positions)
    ways.stop_waiting(waits)
    time_ns = int(calls.api.duration_ns[waits].sum())
    first = int(positions[0])
    outer = operators.name(int(operators.outer_of(positions[:1])[0]))
    yield Proposal(
        name="keep-mask",
        title=(
            "Keep the mask and compute on all elements: torch.where, or a product "
            "with the mask."
        ),
        evidence=(
            f"{outer} selects elements by a mask {len(positions):,} times. The host "
            f"waits {duration_ns(time_ns)} in the profile to learn how many are "
            "selected."
        ),
        ways=ways,
        is_bound=True,
        reason="Later operations then work on all elements.",
        operator=outer,
        line=source.node.lineno
        if source
        else evidence.line_at(int(operators.table.start_ns[first])),
        code=_kept(evidence, positions, source),
    )


def _in_source(code: CellCode) -> _Indexed | None:
    masks = {
        target.id
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Assign) and _is_mask(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    own = next(iter(_own_indices(code)), None)
    if own is not None:
        return own
    for call in code.calls("masked_select"):
        arguments = list(call.node.args)
        if call.receiver != "torch" and isinstance(call.node.func, ast.Attribute):
            arguments.insert(0, call.node.func.value)
        if len(arguments) == 2:
            return _Indexed(arguments[0], arguments[1], call.node)
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Subscript) and _is_mask(node.slice, masks):
            return _Indexed(node.value, node.slice, node)
    flow = ValueFlow(code)
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Subscript) and flow.is_item(node.slice):
            return _Indexed(node.value, node.slice, node)
    return None


def _own_indices(code: CellCode) -> Iterator[_Indexed]:
    """Find `at = torch.nonzero(mask)…` of which something is indexed, `x[at]`."""
    nonzero = {call.node: call for call in code.calls("nonzero", "where", "argwhere")}
    indices: dict[str, tuple[ast.Assign, ast.expr]] = {}
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            for part in ast.walk(node.value):
                if part in nonzero and (mask := _mask_of(nonzero[part])) is not None:
                    indices[node.targets[0].id] = node, mask
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name):
            if node.slice.id in indices:
                index, mask = indices[node.slice.id]
                yield _Indexed(node.value, mask, node, index)


def _mask_of(call: Call) -> ast.expr | None:
    """Give what `nonzero` is called of, as a function or a method; else None."""
    arguments, function = call.node.args, call.node.func
    if call.receiver in ("torch", "np", "cp"):
        return arguments[0] if len(arguments) == 1 else None
    if arguments or not isinstance(function, ast.Attribute):
        return None
    return function.value


def _is_mask(node: ast.expr, names: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in names or "mask" in node.id.lower()
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert)
    if isinstance(node, ast.BinOp):
        is_logical = isinstance(node.op, ast.BitAnd | ast.BitOr)
        return is_logical and (
            _is_mask(node.left, names) or _is_mask(node.right, names)
        )
    if isinstance(node, ast.Call):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else ""
        return name in ("bool", "isnan", "isfinite", "gt", "lt", "ge", "le", "eq", "ne")
    return isinstance(node, _MASKS)


def _kept(evidence: Evidence, positions: Int64s, source: _Indexed | None) -> str:
    """Write the cell's sum, mean or fill of what it chooses over all elements."""
    if source is None:
        return ""
    position = int(positions[0])
    edit, index = SourceEdit(evidence.code), source.made
    mask = edit.text(source.mask)
    if index is not None and isinstance(source.node, ast.Subscript):
        rows = evidence.operators.operands(position).dims[:1]
        is_fill = _fills(evidence.code, index, source.node)
        is_of_rows = _is_mask(source.mask, set()) and list(map(len, rows)) == [1]
        loop = loop_around(evidence.code, index)
        # a number is written through a mask without a wait
        if is_fill and is_of_rows and loop is not None:
            name, made = edit.free_name("mask"), edit.text(index.value)
            edit.replace(index, f"{name} = {mask}")
            edit.replace(source.node.slice, name)
            # its last value is there as before
            last = made.replace(mask, name, 1)
            edit.after(loop, f"{ast.unparse(index.targets[0])} = {last}")
            return edit.source()
        return ""
    if not _has_one_size(evidence, position, source):
        return _rows_summed(evidence, positions, source)
    for node in ast.walk(evidence.code.tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="sum" | "mean" as name, value=value),
                args=[],
                keywords=[],
            ) if value is source.node:
                chosen = f"{mask}, {edit.text(source.tensor)}, 0"
                total = f"{edit.torch}.where({chosen}).sum()"
                if name == "mean":
                    total = f"({total} / {edit.operand(source.mask)}.sum())"
                edit.replace(node, total)
                return edit.source()
    return _whole_sum(evidence, edit, positions, source)


def _rows_summed(evidence: Evidence, positions: Int64s, source: _Indexed) -> str:
    """Write a sum or mean of the rows that a mask chooses over all rows."""
    operators, tensor = evidence.operators, source.tensor
    axes = {_axes(operators, at) for at in positions.tolist()}
    if len(axes) != 1 or None in axes or not isinstance(source.node, ast.Subscript):
        return ""
    edit = SourceEdit(evidence.code)
    mask = f"{edit.operand(source.mask)}[:{', None' * (axes.pop() or 0)}]"
    for node in ast.walk(evidence.code.tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="sum" | "mean" as name, value=value)
            ) if value is source.node:
                pass
            case _:
                continue
        given = [*node.args, *(one.value for one in node.keywords)]
        over = [ast.unparse(one) for one in given]
        is_half = name == "mean" and _has_half(operators, positions)
        if over != ["0"] and not (name == "sum" and not over) or is_half:
            return ""
        total = f"{edit.torch}.where({mask}, {edit.text(tensor)}, 0).sum(0)"
        if not over:
            total = f"{total.removesuffix('(0)')}()"
        if name == "mean":
            total = f"({total} / {edit.operand(source.mask)}.sum())"
        edit.replace(node, total)
        return edit.source()
    return ""


def _axes(operators: Operators, position: int) -> int | None:
    """Return how many axes rows have that a mask chooses; None where it is no such."""
    parent = int(operators.parent[position])
    if parent == NONE:
        return None
    of_mask = operators.operands(position).dims[:1]
    of_tensor = operators.operands(parent).dims[:1]
    if not of_mask or not of_tensor or len(of_mask[0]) != 1:
        return None
    is_row = len(of_tensor[0]) > 1 and of_tensor[0][:1] == of_mask[0]
    return len(of_tensor[0]) - 1 if is_row else None


def _has_half(operators: Operators, positions: Int64s) -> bool:
    """Tell whether a sum may be above the largest number of what is chosen."""
    return any(
        _HALF in operators.operands(int(operators.parent[at])).dtypes
        for at in positions.tolist()
    )


def _whole_sum(
    evidence: Evidence, edit: SourceEdit, positions: Int64s, source: _Indexed
) -> str:
    """Write a sum or mean of what is made of `x[mask]` and `y[mask]`."""
    operators = evidence.operators
    if not all(_has_its_size(operators, at) for at in positions.tolist()):
        return ""
    masked = _Masked(edit, source.mask)
    for node in ast.walk(evidence.code.tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="sum" | "mean" as name, value=value),
                args=[],
                keywords=[],
            ) if source.node in ast.walk(value):
                made = masked.written(value)
                if made is None:
                    return ""
                # a sum of half precision may be above its largest number
                is_half = name == "mean" and _has_half(operators, positions)
                total = f"{made}.sum()"
                if name == "mean":
                    total = f"({total} / {edit.operand(source.mask)}.sum())"
                edit.replace(node, total)
                return "" if is_half else edit.source()
    return ""


class _Masked:
    """What is computed with chosen elements, written with all of them.

    Those that the mask leaves out are zero before anything but a sum is made of them:
    what they hold may be no number, whose gradient would be none either.
    """

    def __init__(self, edit: SourceEdit, mask: ast.expr) -> None:
        self._edit, self._mask = edit, mask

    def written(self, node: ast.expr) -> str | None:
        """Write an expression so that it is zero where the mask is."""
        text, is_zero = self._made(node)
        return text if is_zero or not text else self._where(text)

    def _where(self, text: str) -> str:
        return f"{self._edit.torch}.where({self._edit.text(self._mask)}, {text}, 0)"

    def _made(self, node: ast.expr) -> tuple[str | None, bool]:
        """Write it, and tell whether it is zero where the mask is; None if unsure."""
        linear = self._linear(node)
        if linear is not None:
            return self._where(linear), True
        match node:
            case ast.Constant(value=int() | float()):
                return self._edit.text(node), False
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=power)):
                base, is_zero = self._made(left)
                is_known = type(power) is int and power > 0
                return (
                    f"({base} ** {power!r})" if base and is_known else None
                ), is_zero
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op):
                (one, first), (two, second) = map(self._made, (left, node.right))
                sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}[type(op)]
                either = isinstance(op, ast.Mult) and (first or second)
                is_zero = either or (first and second)
                return (f"({one} {sign} {two})" if one and two else None), is_zero
            case ast.Call(
                func=ast.Attribute(
                    attr="abs" | "square" | "float" as name, value=inner
                ),
                args=[],
                keywords=[],
            ):
                made, is_zero = self._made(inner)
                return (f"{made}.{name}()" if made else None), is_zero
        return None, False

    def _linear(self, node: ast.expr) -> str | None:
        """Write sums of chosen elements with all of them; None for anything else."""
        match node:
            case ast.Subscript(value=value, slice=index) if ast.unparse(
                index
            ) == ast.unparse(self._mask):
                return self._edit.operand(value)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
                one, two = self._linear(left), self._linear(right)
                sign = "+" if isinstance(op, ast.Add) else "-"
                return f"({one} {sign} {two})" if one and two else None
        return None


def _fills(code: CellCode, index: ast.Assign, node: ast.AST) -> bool:
    """Tell whether the statement after `index` is all that needs it, for a number."""
    (target,) = index.targets
    if not isinstance(target, ast.Name) or uses(code.tree, target.id) != 2:
        return False
    for block in blocks(code.tree):
        for before, after in pairwise(block.statements):
            match after:
                case ast.Assign(
                    targets=[filled], value=ast.Constant() | ast.UnaryOp()
                ) if before is index and filled is node:
                    return True
    return False


def _has_one_size(evidence: Evidence, position: int, source: _Indexed) -> bool:
    """Tell whether a mask is surely as large as what it chooses from."""
    operators = evidence.operators
    compared = [
        node.left for node in ast.walk(source.mask) if isinstance(node, ast.Compare)
    ]
    same = ast.dump(source.tensor)
    if operators.name(position) == _SELECT or same in map(ast.dump, compared):
        return True
    return _has_its_size(operators, position)


def _has_its_size(operators: Operators, position: int) -> bool:
    """Tell whether a mask is as large as what an index with it takes elements of."""
    parent = int(operators.parent[position])
    if parent == NONE:
        return False
    of_mask = operators.operands(position).dims[:1]
    return bool(of_mask) and of_mask == operators.operands(parent).dims[:1]


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("keep-mask",),
            what=(
                "indexing by a mask or by its `nonzero()`, which waits for the "
                "result's size: `torch.where`"
            ),
            time="a bound",
            answers=HOST_WAITS,
        ),
    ),
    rule=masks,
    untried=BY_EDIT,
)

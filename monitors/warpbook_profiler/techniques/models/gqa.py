"""Heads of keys and values that are copied for each query head before attention."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.cell_code import CellCode
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.source_edit import SourceEdit
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Int64s
from warpbook_profiler.techniques.gpu.attention import HALVES
from warpbook_profiler.techniques.technique import ChangeKind, Technique

_ATTENTION = "aten::scaled_dot_product_attention"
_EXPAND, _REPEAT = "aten::expand", "aten::repeat_interleave"
#: what may be between a copy and the attention
_BEFORE = 40
_MOST_ATTENTIONS = 2_000
_MOST_STEPS = 6


class _Widened(NamedTuple):
    """One attention, and the copies that made its keys and values."""

    attention: int
    #: positions of the operators that launch them
    copies: list[int]
    #: query heads for each head of the keys
    times: int


def gqa(evidence: Evidence) -> Iterator[Proposal]:
    """Propose an attention that reads each head of the keys for several queries."""
    operators = evidence.operators
    widened = list(_widened(operators))
    if not widened:
        return
    ways = Ways(evidence)
    copies = np.unique(np.array([one for some in widened for one in some.copies]))
    ways.drop_operators(copies)
    copied = operators.launched_within(copies)
    for one in widened:
        events = operators.launched_from(one.attention, one.attention)
        ways.resize(events, _attended(evidence, one, events))
    first = widened[0]
    yield Proposal(
        name="gqa",
        title=(
            "Leave the heads of keys and values as they are: "
            "scaled_dot_product_attention(..., enable_gqa=True)."
        ),
        evidence=(
            f"Keys and values are copied {first.times} times before attention, which "
            f"takes {units.share(evidence.share(evidence.time_ns(copied)))} of the "
            "bare run."
        ),
        ways=ways,
        operator=operators.name(int(operators.outer_of(copies[:1])[0])),
        line=evidence.code.first_line("scaled_dot_product_attention")
        or evidence.line_at(int(operators.table.start_ns[first.attention])),
        code=_grouped(evidence.code),
    )


def _attended(evidence: Evidence, one: _Widened, events: Int64s) -> Span:
    """Give what the attention takes that reads fewer keys and values."""
    took_ns = float(evidence.time_ns(events))
    called = evidence.operators.operands(one.attention)
    read = 2 * sum(math.prod(dims) for dims in called.dims[1:3])
    if evidence.chip is None:
        return Span(took_ns, took_ns, took_ns)
    # what it takes beside reading them stays
    read_ns = min(evidence.chip.least_ns(read), took_ns)
    saved_ns = read_ns * (1 - 1 / one.times)
    is_by_memory = read_ns > took_ns / 2
    return Span(
        took_ns - saved_ns, took_ns - saved_ns if is_by_memory else took_ns, took_ns
    )


def _widened(operators: Operators) -> Iterator[_Widened]:
    table, launching = operators.table, operators.launching
    attentions = np.flatnonzero(operators.named(_ATTENTION))[:_MOST_ATTENTIONS]
    done = NONE
    for attention in attentions.tolist():
        called = operators.operands(attention)
        dims = called.dims[:3]
        if len(dims) < 3 or len(dims[1]) != 4 or called.dtypes[0] not in HALVES:
            continue
        place = int(np.searchsorted(launching, attention))
        copies, times = [], 0
        for copy in launching[max(place - _BEFORE, 0) : place].tolist():
            if copy <= done or table.track[copy] != table.track[attention]:
                continue
            is_heads = any(_heads(operators, copy, dims[at]) for at in (1, 2))
            if is_heads and (found := _expanded(operators, copy)):
                copies.append(_whole(operators, copy))
                times = found
        if len(copies) == 2:
            yield _Widened(attention, copies, times)
        done = attention


def _heads(operators: Operators, copy: int, heads: tuple[int, ...]) -> bool:
    """Tell whether a copy gives keys, as heads in groups."""
    dims = operators.operands(copy).dims
    given = dims[0] if dims else ()
    return (
        operators.name(copy) in ("aten::copy_", "aten::clone")
        and len(given) == 5
        and (given[0], given[1] * given[2], *given[3:]) == heads
    )


def _expanded(operators: Operators, copy: int) -> int:
    """Give how many heads a copy makes of one; 0 where they are in another order."""
    given = operators.operands(copy).dims[0]
    is_expand = operators.named(_EXPAND)[:copy]
    for expand in np.flatnonzero(is_expand)[-_MOST_STEPS:][::-1].tolist():
        dims = operators.operands(expand).dims
        if dims and len(dims[0]) == 5 and dims[0][3:] == given[3:]:
            # each head comes several times in a row, as grouped queries want it
            return given[2] if dims[0][:3] == (given[0], given[1], 1) else 0
    return 0


def _whole(operators: Operators, copy: int) -> int:
    """Give the operator that is called for the copy."""
    while operators.parent[copy] != NONE:
        copy = int(operators.parent[copy])
    return copy


def _grouped(code: CellCode) -> str:
    """Write attentions that widen their heads themselves with heads as they were."""
    edit, is_changed = SourceEdit(code), False
    for call in code.calls("scaled_dot_product_attention"):
        arguments, keywords = call.node.args, call.node.keywords
        if len(arguments) != 3 or any(one.arg == "enable_gqa" for one in keywords):
            continue
        narrow = [_narrow(code, argument) for argument in arguments[1:]]
        if narrow[0] is None or narrow[1] is None:
            continue
        values = edit.operand(narrow[1])
        edit.replace(arguments[1], edit.operand(narrow[0]))
        edit.replace(arguments[2], values if keywords else f"{values}, enable_gqa=True")
        if keywords:
            last = keywords[-1].value
            edit.replace(last, f"{edit.text(last)}, enable_gqa=True")
        is_changed = True
    return edit.source() if is_changed else ""


def _narrow(code: CellCode, heads: ast.expr) -> ast.expr | None:
    """Give what heads were before each came several times; None where not sure."""
    match heads:
        case ast.Call(func=ast.Name(id=name), args=[whole, *_]):
            return whole if _widens(code, name) else None
        case ast.Call(
            func=ast.Attribute(attr="repeat_interleave", value=whole), args=args
        ):
            if ast.unparse(whole) == "torch" and args:
                whole, *args = args
            axes = [*args[1:], *(one.value for one in heads.keywords)]
            is_third = [ast.unparse(one) for one in axes] in (["1"], ["-3"])
            return whole if is_third else None
    return _of_expand(heads, {})


def _of_expand(heads: ast.expr, values: dict[str, ast.expr]) -> ast.expr | None:
    """Read `x[:, :, None].expand(...).reshape(...)` and the like."""
    for names in (("reshape", "flatten"), ("expand",)):
        match heads:
            case ast.Call(func=ast.Attribute(attr=name, value=before)) if name in names:
                heads = before
            case _:
                return None
        if isinstance(heads, ast.Name):
            heads = values.get(heads.id, heads)
    match heads:
        case ast.Call(
            func=ast.Attribute(attr="unsqueeze", value=whole),
            args=[ast.Constant(value=2)],
        ):
            return whole
        case ast.Subscript(value=whole, slice=ast.Tuple(elts=axes)):
            is_third = [ast.unparse(one) for one in axes[:3]] == [":", ":", "None"]
            is_all = all(ast.unparse(one) == ":" for one in axes[3:])
            return whole if is_third and is_all else None
    return None


def _widens(code: CellCode, name: str) -> bool:
    """Tell whether a function of the cell gives its first argument widened."""
    for node in code.tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name and node.args.args:
            first = node.args.args[0].arg
            values = {
                ast.unparse(one.targets[0]): one.value
                for one in node.body
                if isinstance(one, ast.Assign)
            }
            given = [
                one.value
                for one in ast.walk(node)
                if isinstance(one, ast.Return) and one.value is not None
            ]
            # where there is nothing to widen, it may give them back
            given = [one for one in given if ast.unparse(one) != first]
            whole = _of_expand(given[0], values) if len(given) == 1 else None
            return whole is not None and ast.unparse(whole) == first
    return False


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("gqa",),
            what="keys and values of half precision copied for each query head",
            time="predicted",
            lab="which-sdpa",
        ),
    ),
    rule=gqa,
    untried="Its lines have to be written anew, and only you know what they are for.",
)

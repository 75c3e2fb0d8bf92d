"""Heads of keys and values that are copied for each query head before attention."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.code.cell_code import CellCode, blocks, stored_names
from warpbook_profiler.advice.code.read_code import times_set
from warpbook_profiler.advice.code.source_edit import SourceEdit, bound_names, names_in
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Int64s
from warpbook_profiler.techniques.gpu.attention import HALVES, Fused, fused_attentions
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

#: what may be between a copy and the attention
_BEFORE = 8
#: functions of other cells and of libraries, such as repeat_kv
_WIDENS = re.compile(r"repeat|expand|widen|tile|broadcast")


class _Widened(NamedTuple):
    """One attention, and the copies that made its keys and values."""

    attention: Fused
    #: the outermost operators of them, by position
    copies: list[int]
    #: query heads for each head of the keys
    times: int


class _InTurn(NamedTuple):
    """What an expression makes of one of two, which it calls by a name."""

    made: ast.expr
    name: str
    whole: ast.expr

    @property
    def parts(self) -> set[str]:
        """Give the names that are read for it."""
        return (names_in(self.made) - {self.name}) | names_in(self.whole)


class _Made(NamedTuple):
    """Assignments right before an attention, the last one first."""

    statements: list[ast.stmt]
    #: by name, what it was set to
    values: dict[str, ast.expr | _InTurn]

    def read(self, name: str) -> set[str]:
        """Give the names that are read for a value."""
        value = self.values[name]
        return value.parts if isinstance(value, _InTurn) else names_in(value)


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
        events = operators.launched_from(*(one.attention.position,) * 2)
        ways.resize(events, _attended(evidence, one, events))
    first = widened[0]
    trains = operators.are_trained
    yield Proposal(
        name="gqa",
        title=(
            "Pass keys and values without repeating their heads: "
            "scaled_dot_product_attention(..., enable_gqa=True)."
        ),
        evidence=(
            f"Keys and values are copied {first.times} times before attention, which "
            f"takes {units.share(evidence.share(evidence.time_ns(copied)))} of the "
            "bare run."
        ),
        ways=ways,
        is_bound=trains,
        reason=(
            "The backward pass has less to sum; the trace does not show how much less."
            if trains
            else ""
        ),
        operator=operators.name(int(operators.outer_of(copies[:1])[0])),
        line=evidence.code.first_line("scaled_dot_product_attention")
        or evidence.line_at(int(operators.table.start_ns[first.attention.position])),
        code=_grouped(evidence.code),
    )


def _attended(evidence: Evidence, one: _Widened, events: Int64s) -> Span:
    """Give what the attention takes that reads fewer keys and values."""
    took_ns = float(evidence.time_ns(events))
    if evidence.chip is None:
        return Span(took_ns, took_ns, took_ns)
    if one.attention.query[2] == 1:
        # one token's queries of a group are then rows of one product
        least_ns = evidence.chip.least_ns(2 * one.attention.key_bytes / one.times)
        return Span(min(least_ns, took_ns), took_ns / one.times, took_ns)
    # what it takes beside reading them stays
    read_ns = min(evidence.chip.least_ns(2 * one.attention.key_bytes), took_ns)
    less_ns = took_ns - read_ns * (1 - 1 / one.times)
    return Span(less_ns, less_ns if read_ns > took_ns / 2 else took_ns, took_ns)


def _widened(operators: Operators) -> Iterator[_Widened]:
    table, launching, done = operators.table, operators.launching, NONE
    of_groups = [any(len(dims) == 5 for dims in one.dims) for one in table.operands]
    grouped = launching[operators.named("aten::copy_")[launching]]
    grouped = grouped[np.array([*of_groups, False])[table.operand[grouped]]]
    for attention in fused_attentions(operators) if len(grouped) else ():
        place = int(np.searchsorted(grouped, attention.position))
        copies, times = [], 0
        for copy in grouped[max(place - _BEFORE, 0) : place].tolist():
            is_near = (
                copy > done and table.track[copy] == table.track[attention.position]
            )
            found = _times(operators, copy, attention.key) if is_near else 0
            if found:
                copies.append(int(operators.outer_of(np.array([copy]))[0]))
                times = found
        done = attention.position
        if len(copies) == 2 and attention.dtype in HALVES:
            yield _Widened(attention, copies, times)


def _times(operators: Operators, copy: int, key: tuple[int, ...]) -> int:
    """Give how many heads a copy makes of each; 0 for what makes no such keys."""
    dims = operators.operands(copy).dims[:1]
    if not dims or len(dims[0]) != 5:
        return 0
    batch, heads, times, length, size = dims[0]
    if (batch, heads * times, length, size) == key:
        return times
    # the axes of heads and tokens are exchanged later
    batch, length, heads, times, size = dims[0]
    return times if (batch, heads * times, length, size) == key else 0


def _grouped(code: CellCode) -> str:
    """Write attentions that widen their heads themselves with heads as they were."""
    edit, is_changed = SourceEdit(code), False
    for call in code.calls("scaled_dot_product_attention"):
        arguments, keywords = call.node.args, call.node.keywords
        if any(one.arg in ("enable_gqa", "key", "value", None) for one in keywords):
            continue
        made = _made_before(code, call.node)
        narrow = _both(code, arguments[1:], made)
        if narrow is None or not _leave_out(code, edit, call.node, made):
            continue
        texts = [edit.operand(one) for one in narrow]
        if len(arguments) == 2:
            edit.replace(arguments[1], ", ".join(texts))
        else:
            edit.replace(arguments[1], texts[0])
            edit.replace(arguments[2], texts[1])
        edit.arguments(call.node, {"enable_gqa": "True"})
        is_changed = True
    return edit.source() if is_changed else ""


def _both(
    code: CellCode, given: list[ast.expr], made: _Made
) -> tuple[ast.expr, ast.expr] | None:
    """Give the keys and values before their heads came several times."""
    both: list[ast.expr | _InTurn]
    match given:
        case [ast.Starred(value=one)]:
            both = [*_of_each(made.values.get(ast.unparse(one), one))]
        case [key, value]:
            both = [made.values.get(ast.unparse(one), one) for one in (key, value)]
        case _:
            return None
    narrow = [_narrow(code, one) for one in both]
    match narrow:
        case [ast.expr() as key, ast.expr() as value]:
            return key, value
    return None


def _of_each(made: ast.expr | _InTurn) -> list[_InTurn]:
    """Read `[widen(x) for x in (k, v)]`, or `map(widen, (k, v))`."""
    match made:
        case (
            ast.ListComp(elt=value, generators=[clause])
            | ast.GeneratorExp(elt=value, generators=[clause])
        ):
            match clause:
                case ast.comprehension(
                    target=ast.Name(id=name),
                    iter=ast.Tuple(elts=[key, other]) | ast.List(elts=[key, other]),
                    ifs=[],
                ):
                    pass
                case _:
                    return []
            return [_InTurn(value, name, whole) for whole in (key, other)]
        case ast.Call(
            func=ast.Name(id="map"),
            args=[ast.Name() as function, ast.Tuple(elts=[key, other])],
        ):
            turn = ast.Name("_", ast.Load())
            call = ast.Call(function, [turn], [])
            return [_InTurn(call, "_", whole) for whole in (key, other)]
    return []


def _made_before(code: CellCode, call: ast.Call) -> _Made:
    """Find the assignments of keys and values right before an attention."""
    made = _Made([], {})
    names = {ast.unparse(one).removeprefix("*") for one in call.args[1:]}
    statement = ValueFlow(code).statement(call)
    for block in blocks(code.tree):
        if statement not in block.statements:
            continue
        for one in reversed(block.statements[: block.statements.index(statement)]):
            values = _assigned(one)
            is_of_both = values.keys() <= names - made.values.keys()
            # what the later one takes is not what the earlier one gives
            read = {name for later in made.values for name in made.read(later)}
            if not values or not is_of_both or values.keys() & read:
                break
            made.statements.append(one)
            made.values.update(values)
    return made


def _assigned(statement: ast.stmt) -> dict[str, ast.expr | _InTurn]:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return {name: value}
        case ast.Assign(
            targets=[ast.Tuple(elts=[ast.Name(id=one), ast.Name(id=other)])],
            value=ast.Tuple(elts=[first, second]),
        ):
            return {one: first, other: second}
        case ast.Assign(
            targets=[ast.Tuple(elts=[ast.Name(id=one), ast.Name(id=other)])],
            value=value,
        ):
            return dict(zip((one, other), _of_each(value), strict=False))
    return {}


def _leave_out(code: CellCode, edit: SourceEdit, call: ast.Call, made: _Made) -> bool:
    """Take assignments away that only an attention needs; False where others do."""
    flow = ValueFlow(code)
    inside = {part for one in made.statements for part in ast.walk(one)}
    inside |= set(ast.walk(call))
    loop, function = flow.loop(call), flow.function(call)
    is_again = False
    for name in made.values:
        reads = set(flow.reads(name))
        if function is not None:
            reads &= set(ast.walk(function))
        before = _set_before(code, flow, made, name, loop)
        if before is not None:
            # of what is not wide yet
            reads -= {part for one in before for part in ast.walk(one)}
        if reads - inside:
            return False
        if flow.is_set_once(name) and name not in made.read(name):
            continue
        if before is None and (loop is not None or function is None):
            return False
        is_again |= function is None
    for statement in made.statements:
        edit.delete(statement)
    if is_again and isinstance(loop, ast.For):
        # the names hold what they did after the last turn
        leaves = (ast.Break, ast.Continue)
        is_whole = set(made.statements) <= set(loop.body) and not loop.orelse
        if not is_whole or any(isinstance(one, leaves) for one in ast.walk(loop)):
            return False
        for statement in reversed(made.statements):
            edit.after(loop, ast.unparse(statement))
        return True
    return not is_again


def _set_before(
    code: CellCode,
    flow: ValueFlow,
    made: _Made,
    name: str,
    loop: ast.For | ast.AsyncFor | ast.While | None,
) -> list[ast.stmt] | None:
    """Give what is between where a turn sets a name anew and where it is widened.

    Returns:
        None where a turn, or a cell, may begin with what an earlier one made.
    """
    if not made.statements:
        return None
    is_item = isinstance(loop, ast.For) and name in stored_names(loop.target)
    is_argument = loop is None and flow.function(made.statements[0]) is not None
    for block in blocks(code.tree):
        if made.statements[-1] not in block.statements:
            continue
        before = block.statements[: block.statements.index(made.statements[-1])]
        sets = [one for one in before if name in stored_names(one)]
        is_plain = all(isinstance(one, ast.Assign) for one in sets)
        if loop is not None and times_set(loop, name) != 1 + is_item + len(sets):
            return None
        if is_plain and (is_argument or is_item):
            return before
        if is_plain and loop is not None and sets:
            return before[before.index(sets[0]) + 1 :]
    return None


def _narrow(code: CellCode, heads: ast.expr | _InTurn) -> ast.expr | None:
    """Give what heads were before each came several times; None where not sure."""
    if isinstance(heads, _InTurn):
        whole = _narrow(code, heads.made)
        is_it = whole is not None and ast.unparse(whole) == heads.name
        return heads.whole if is_it else None
    match heads:
        case ast.Call(func=ast.Name(id=name), args=[whole, *others]):
            return whole if _widens(code, name, others) else None
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


def _widens(code: CellCode, name: str, others: list[ast.expr]) -> bool:
    """Tell whether a function gives its first argument widened.

    One of another cell is known by its name: the trace tells that somebody does.
    """
    if name not in bound_names(code.tree):
        # a pattern, as einops takes it, may order the heads otherwise
        texts = any(isinstance(getattr(one, "value", 0), str) for one in others)
        return bool(_WIDENS.search(name)) and not texts
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
            what=(
                "keys and values in half precision that are copied for each query head"
            ),
            time="predicted",
            lab="which-sdpa",
        ),
    ),
    rule=gqa,
    untried=BY_EDIT,
)

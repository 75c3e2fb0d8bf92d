"""A whole sort of which the first few are taken."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.code.axis_cuts import axis_cut
from warpbook_profiler.advice.code.cell_code import Call, last_name
from warpbook_profiler.advice.code.reaching import reached
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Int64s
from warpbook_profiler.facts.traffic import tensor_sizes
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

#: an element alone may be any, as a median
_SORT, _SLICES = "aten::sort", ("aten::slice", "aten::narrow")
_NAMES = ("sort", "argsort")
#: of a row, what is taken at most
_MOST_TAKEN = 1 / 8
#: a window with more is judged by these
_MOST_SORTS = 1_000
#: operators after a sort, among which its first few are taken
_NEAR = 6
#: shorter rows are sorted about as fast
_LEAST_ROW = 2_048
#: of many rows and of few: the kernels of a selection, and how often it reads all, at
#: best, usually, at worst; measured on an H200 for 18 shapes and dtypes
_MANY = Span(40_000.0, 65_000.0, 110_000.0), (9.0, 13.0, 17.0)
_FEW = Span(80_000.0, 110_000.0, 150_000.0), (13.0, 17.0, 22.0)
_FEW_ROWS = 8
_NUMBER = re.compile(r"-?\d{1,4}", re.ASCII)
#: names that are followed to what takes them
_MOST_FOLLOWED = 50


@dataclass
class _Source:
    """A sort in the source, and where its first few are taken."""

    call: Call
    #: where; each stays as it is
    cuts: list[ast.expr] = field(default_factory=list)
    #: how many, as the source writes it
    taken: dict[str, None] = field(default_factory=dict)
    #: is the end of the order taken, or its beginning
    ends: set[bool] = field(default_factory=set)
    #: something takes more of it
    is_whole: bool = False
    #: names that were followed
    followed: int = 0

    @property
    def count(self) -> str:
        """Write how many of a row are taken."""
        if len(self.taken) < 2:
            return "".join(self.taken)
        if all(one.isdigit() for one in self.taken):
            return str(max(map(int, self.taken)))
        return f"max({', '.join(self.taken)})"


def top_k(evidence: Evidence) -> Iterator[Proposal]:
    """Propose topk."""
    operators, chip = evidence.operators, evidence.chip
    sorts = np.flatnonzero(operators.named(_SORT))[:_MOST_SORTS]
    rows = np.array([_row(evidence, int(at)) for at in sorts], np.int64)
    sorts = sorts[rows >= _LEAST_ROW]
    if not len(sorts) or chip is None:
        return
    flow = ValueFlow(evidence.code)
    calls = evidence.code.calls(*_NAMES)
    found = [_in_source(flow, call, evidence, int(sorts[0])) for call in calls]
    source = next((one for one in found if not one.is_whole), None)
    if source is None and (found or not _are_cut(evidence, sorts)):
        return
    ways, time_ns = Ways(evidence), 0
    for at in sorts.tolist():
        launched = operators.launched_within(np.array([at]))
        size_bytes = sum((tensor_sizes(operators.operands(at)) or [0])[:1])
        if not len(launched):
            continue
        time_ns += evidence.time_ns(launched)
        ways.drop(launched[1:])
        dims = operators.operands(at).dims[0]
        is_few = math.prod(dims) // _row(evidence, at) < _FEW_ROWS
        kernels, passes = _FEW if is_few else _MANY
        read = chip.pass_over(size_bytes).each(*passes)
        ways.resize(launched[:1], kernels.plus(*read))
    dims = operators.operands(int(sorts[0])).dims[0]
    first = source.call if source else None
    yield Proposal(
        name="topk",
        title="Take the largest with topk: the others need no order.",
        evidence=(
            f"{_SORT} orders {'×'.join(map(str, dims))} elements {len(sorts):,} "
            f"time{'s' if len(sorts) > 1 else ''}, which takes "
            f"{units.share(evidence.share(time_ns))} of the bare run on the GPU, and "
            f"only {source.count if source else 'the first few'} of a row are used."
        ),
        ways=ways,
        reason="Among equal elements it may choose different ones.",
        operator=_SORT,
        line=first.line
        if first
        else evidence.line_at(int(operators.table.start_ns[sorts[0]])),
        code=_edited(evidence, source) if source else "",
    )


def _row(evidence: Evidence, sort: int) -> int:
    """Return how many elements a row has that is sorted; 0 where that is not told."""
    operands = evidence.operators.operands(sort)
    dims = operands.dims[0] if operands.dims else ()
    numbers = [text for text in operands.scalars if _NUMBER.fullmatch(text)]
    dim = int(numbers[0]) if numbers else -1
    return dims[dim] if dims and -len(dims) <= dim < len(dims) else 0


def _are_cut(evidence: Evidence, sorts: Int64s) -> bool:
    """Tell whether each sort is followed by a cut, and nothing takes it whole."""
    operators = evidence.operators
    outer = np.flatnonzero(operators.outermost)
    cuts = operators.named(*_SLICES)
    whole = {operators.operands(at).dims[0] for at in sorts.tolist()}
    ends = [*operators.outer_of(sorts).tolist()[1:], len(operators.table)]
    for sort, end in zip(operators.outer_of(sorts).tolist(), ends, strict=True):
        after = outer[(outer > sort) & (outer < end)]
        if not cuts[after[:_NEAR]].any():
            return False
        takes = (operators.operands(at).dims for at in after.tolist())
        if any(whole & set(dims) for dims in takes):
            return False
    return True


def _in_source(flow: ValueFlow, call: Call, evidence: Evidence, sort: int) -> _Source:
    source = _Source(call)
    dims = evidence.operators.operands(sort).dims[0]
    part = "both" if call.name == "sort" else "indices"
    _follow(flow, call.node, part, False, source, dims)
    source.is_whole |= not source.taken or len(source.ends) != 1
    return source


def _follow(
    flow: ValueFlow,
    node: ast.expr,
    part: str,
    is_flipped: bool,
    source: _Source,
    dims: tuple[int, ...],
) -> None:
    """Note who takes a sort's values, its indices, or both of them as a pair."""
    source.followed += 1
    if source.followed > _MOST_FOLLOWED:
        source.is_whole = True
        return
    above = flow.parent(node)
    match above:
        case ast.Attribute(attr="values" | "indices" as attribute) if part == "both":
            _follow(flow, above, attribute, is_flipped, source, dims)
        case ast.Subscript(slice=ast.Constant(value=int(place))) if (
            part == "both" and place in (0, 1)
        ):
            _follow(flow, above, ("values", "indices")[place], is_flipped, source, dims)
        case ast.Assign(
            targets=[ast.Tuple(elts=[ast.Name() as one, ast.Name() as two])]
        ) if part == "both":
            for name, its in ((one, "values"), (two, "indices")):
                _follow_name(flow, name, its, is_flipped, source, dims)
        case ast.Assign(targets=[ast.Name() as name]):
            _follow_name(flow, name, part, is_flipped, source, dims)
        case _ if part != "both":
            call = _method(flow, node)
            if call is not None and _is_flip(call, source, dims):
                _follow(flow, call, part, not is_flipped, source, dims)
                return
            cut = call or above
            count, is_end = _taken(flow, cut, source, dims)
            if not count or not isinstance(cut, ast.expr):
                source.is_whole = True
                return
            source.taken[count] = None
            source.ends.add(is_end != is_flipped)
            source.cuts.append(cut)
        case _:
            source.is_whole = True


def _follow_name(
    flow: ValueFlow,
    name: ast.Name,
    part: str,
    is_flipped: bool,
    source: _Source,
    dims: tuple[int, ...],
) -> None:
    reads = reached(flow, name)
    # nobody reads `_`, however often it is set
    source.is_whole |= reads is None and bool(flow.reads(name.id))
    for read in reads or ():
        _follow(flow, read, part, is_flipped, source, dims)


def _method(flow: ValueFlow, node: ast.expr) -> ast.Call | None:
    """Return the call of a method of a value."""
    above = flow.parent(node)
    call = flow.parent(above) if isinstance(above, ast.Attribute) else None
    return call if isinstance(call, ast.Call) and call.func is above else None


def _is_flip(call: ast.Call, source: _Source, dims: tuple[int, ...]) -> bool:
    name, numbers = last_name(call.func), _numbers(call)
    dim = _dim(source.call)
    return (
        name == "flip"
        and dim is not None
        and numbers is not None
        and [number % len(dims) for number in numbers] == [dim % len(dims)]
    )


def _numbers(call: ast.Call) -> list[int] | None:
    """Return what a method is called with, if that is numbers or a list of them."""
    given = [*call.args, *(one.value for one in call.keywords)]
    try:
        values = [ast.literal_eval(one) for one in given]
    except ValueError:
        return None
    flat = [
        one
        for value in values
        for one in (value if isinstance(value, tuple | list) else [value])
    ]
    return flat if all(type(one) is int for one in flat) else None


def _taken(
    flow: ValueFlow, cut: ast.AST | None, source: _Source, dims: tuple[int, ...]
) -> tuple[str, bool]:
    """Return how many of a row a cut takes, and if of its end; "" if unsure."""
    axis, begin, end = axis_cut(cut, len(dims))
    dim = _dim(source.call)
    if dim is None or axis != dim % len(dims):
        return "", False
    match begin, end:
        case ast.UnaryOp(op=ast.USub(), operand=count), None:
            return _bounded(flow, count, dims[axis]), True
        case None | ast.Constant(value=0), ast.expr():
            return _bounded(flow, end, dims[axis]), False
    return "", False


def _bounded(flow: ValueFlow, count: ast.expr, size: int) -> str:
    if not isinstance(count, ast.Constant | ast.Name | ast.Attribute):
        return ""
    number = flow.value(count)
    is_large = isinstance(number, ast.Constant) and not (
        isinstance(number.value, int) and 0 < number.value <= size * _MOST_TAKEN
    )
    return "" if is_large else ast.unparse(count)


def _arguments(call: Call) -> dict[str, ast.expr]:
    """Return what a sort is called with, by the names of its parameters."""
    names = ["input", "dim", "descending"]
    function, given = call.node.func, {}
    if isinstance(function, ast.Attribute) and call.receiver != "torch":
        given = {names.pop(0): function.value}
    given |= dict(zip(names, call.node.args, strict=False))
    return given | {one.arg or "": one.value for one in call.node.keywords}


def _dim(call: Call) -> int | None:
    """Return the axis that is sorted; None where it is no number."""
    try:
        value = ast.literal_eval(_arguments(call).get("dim", ast.Constant(-1)))
    except ValueError:
        return None
    return value if type(value) is int else None


def _edited(evidence: Evidence, source: _Source) -> str:
    call, given = source.call.node, _arguments(source.call)
    is_descending = given.get("descending", ast.Constant(False))
    is_plain = given.keys() <= {"input", "dim", "descending"} and "input" in given
    if not is_plain or not isinstance(is_descending, ast.Constant):
        return ""
    edit, flow = SourceEdit(evidence.code), ValueFlow(evidence.code)
    # of an object, as long as nobody changes that
    held = {
        part.id
        for one in source.taken
        for part in ast.walk(ast.parse(one))
        if isinstance(part, ast.Name)
    }
    if not all(flow.is_same(name, call, cut) for name in held for cut in source.cuts):
        # how many is only known later
        return ""
    is_end = source.ends == {True}
    which = "" if bool(is_descending.value) != is_end else ", largest=False"
    dim = _dim(source.call)
    text = (
        f"{edit.torch}.topk({edit.text(given['input'])}, {source.count}, "
        f"dim={dim}{which})"
    )
    statement = flow.parent(call)
    attribute = statement.attr if isinstance(statement, ast.Attribute) else ""
    # topk begins with what the end of an order ends with
    flip = f".flip({dim})" if is_end else ""
    whole: ast.expr = call
    if source.call.name == "argsort":
        text += f".indices{flip}"
    elif is_end and attribute in ("values", "indices"):
        text += f".{attribute}{flip}"
        whole = statement if isinstance(statement, ast.expr) else call
    elif is_end:
        text = f"[one{flip} for one in {text}]"
        if not _is_pair(statement):
            return ""
    # what held all of the order has another name, as it holds the first few alone
    targets = statement.targets if isinstance(statement, ast.Assign) else ()
    for part in (part for target in targets for part in ast.walk(target)):
        is_left = isinstance(part, ast.Name) and not flow.is_deleted(part)
        if isinstance(part, ast.Name) and is_left and part.id[0] != "_":
            name = edit.free_name(f"{part.id}_top")
            edit.replace(part, name)
            for read in reached(flow, part) or ():
                edit.replace(read, name)
    edit.replace(whole, text)
    return edit.source()


def _is_pair(statement: ast.AST | None) -> bool:
    """Tell whether a sort's two results are taken by their place."""
    match statement:
        case ast.Assign(targets=[ast.Tuple()]) | ast.Subscript():
            return True
    return False


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("topk",),
            what="a sort of which only the first few elements are used",
            time="predicted",
        ),
    ),
    rule=top_k,
    untried=BY_EDIT,
)

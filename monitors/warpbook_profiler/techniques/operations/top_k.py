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
from warpbook_profiler.advice.code.cell_code import Call
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Int64s
from warpbook_profiler.facts.traffic import tensor_sizes
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_SORT, _SLICES = "aten::sort", ("aten::slice", "aten::select", "aten::narrow")
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
    values: list[ast.Subscript] = field(default_factory=list)
    indices: list[ast.Subscript] = field(default_factory=list)
    #: how many, as the source writes it
    taken: str = ""
    #: it is the end of the order that is taken
    is_end: bool = False
    #: something takes more of it
    is_whole: bool = False
    #: names that were followed
    followed: int = 0


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
            f"only the first {source.taken if source else 'few'} are used."
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
    _follow(flow, call.node, "both" if call.name == "sort" else "indices", source, dims)
    source.is_whole |= not source.taken
    return source


def _follow(
    flow: ValueFlow,
    node: ast.expr,
    part: str,
    source: _Source,
    dims: tuple[int, ...],
) -> None:
    """Note who takes a sort's values, its indices, or both of them as a pair."""
    source.followed += 1
    if source.followed > _MOST_FOLLOWED:
        source.is_whole = True
        return
    match flow.parent(node):
        case ast.Attribute(attr="values" | "indices" as attribute) as above:
            _follow(flow, above, attribute, source, dims)
        case ast.Subscript(slice=ast.Constant(value=int(place))) as above if (
            part == "both" and place in (0, 1)
        ):
            _follow(flow, above, ("values", "indices")[place], source, dims)
        case ast.Subscript() as above if part != "both":
            taken = _taken(flow, above.slice, source, dims)
            source.is_whole |= not taken or source.taken not in ("", taken)
            source.taken = taken
            (source.values if part == "values" else source.indices).append(above)
        case ast.Assign(
            targets=[ast.Tuple(elts=[ast.Name() as one, ast.Name() as two])]
        ):
            for name, its in ((one.id, "values"), (two.id, "indices")):
                reads = flow.reads(name)
                source.is_whole |= bool(reads) and not flow.is_set_once(name)
                for read in reads:
                    _follow(flow, read, its, source, dims)
        case ast.Assign(targets=[ast.Name(id=name)]) if flow.is_set_once(name):
            for read in flow.reads(name):
                _follow(flow, read, part, source, dims)
        case _:
            source.is_whole = True


def _taken(
    flow: ValueFlow, index: ast.expr, source: _Source, dims: tuple[int, ...]
) -> str:
    """Return how many of a row `[:k]` or `[..., -k:]` takes; "" if unsure."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    *before, last = parts
    texts = [ast.unparse(one) for one in before]
    dim, has_dots = _dim(source.call), texts == ["..."]
    place = len(dims) - 1 if has_dots else len(before)
    if dim is None or place != dim % len(dims) or not isinstance(last, ast.Slice):
        return ""
    if not has_dots and any(text != ":" for text in texts):
        return ""
    match last:
        case ast.Slice(lower=None | ast.Constant(value=0), upper=count, step=None):
            pass
        case ast.Slice(
            lower=ast.UnaryOp(op=ast.USub(), operand=count), upper=None, step=None
        ):
            source.is_end = True
        case _:
            return ""
    if not isinstance(count, ast.Constant | ast.Name | ast.Attribute):
        return ""
    number = flow.value(count)
    is_large = isinstance(number, ast.Constant) and not (
        isinstance(number.value, int) and 0 < number.value <= dims[dim] * _MOST_TAKEN
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
    if source.is_end:
        # topk begins with what the end of an order ends with
        return ""
    edit, flow = SourceEdit(evidence.code), ValueFlow(evidence.code)
    cuts = source.values + source.indices
    # of an object, as long as nobody changes that
    held = source.taken.split(".")[0]
    if not all(flow.is_same(held, call, cut) for cut in cuts):
        # how many is only known later
        return ""
    which = "" if is_descending.value else ", largest=False"
    text = (
        f"{edit.torch}.topk({edit.text(given['input'])}, {source.taken}, "
        f"dim={_dim(source.call)}{which})"
    )
    text += ".indices" if source.call.name == "argsort" else ""
    # what held all of the order has another name, as it holds the first few alone
    names = dict[str, str]()
    statement = flow.parent(call)
    for target in statement.targets if isinstance(statement, ast.Assign) else ():
        for part in ast.walk(target):
            if isinstance(part, ast.Name) and not part.id.startswith("_"):
                names[part.id] = edit.free_name(f"{part.id}_top")
                edit.replace(part, names[part.id])
    inside = [cut for cut in cuts if call in ast.walk(cut)]
    for cut in cuts:
        whole = edit.text(cut.value)
        for old, new in names.items():
            whole = re.sub(rf"^{old}\b", new, whole)
        edit.replace(cut, whole.replace(edit.text(call), text) if inside else whole)
    if not inside:
        edit.replace(call, text)
    return edit.source()


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

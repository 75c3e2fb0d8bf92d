"""Keys and values that are joined with each token's, so all are copied again."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.read_code import times_set
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.techniques.gpu.attention import fused_attentions
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_CAT = "aten::cat"
#: of one token's query with all keys
_PRODUCT = "aten::bmm"
_LEAST_TOKENS = 8
_MOST_CALLS = 50_000

#: gives a tensor that holds another and has room for more, of the dtype of a join
_ALLOCATE = """\
def {}(first, part, axis, more):
    size = list(first.shape)
    size[axis] += more
    room = first.new_empty(size, dtype={torch}.result_type(first, part))
    room.narrow(axis, 0, first.shape[axis]).copy_(first)
    return room

"""

#: joins as torch does, unless what it joins to has room behind it
_JOIN = """\
def {}(whole, part, axis):
    length, more = whole.shape[axis], part.shape[axis]
    sizes, others = list(whole.shape), list(part.shape)
    sizes[axis] = others[axis] = length + max(length, more)
    grads = {torch}.is_grad_enabled() and (whole.requires_grad or part.requires_grad)
    if grads or whole.dtype != part.dtype or sizes != others:
        return {torch}.cat((whole, part), axis)
    room, filled = getattr(whole, "room", (None, [0]))
    if room is None or filled[0] != length or length + more > room.shape[axis]:
        room, filled = whole.new_empty(sizes), [length]
        room.narrow(axis, 0, length).copy_(whole)
    room.narrow(axis, length, more).copy_(part)
    filled[0] = length + more
    result = room.narrow(axis, 0, length + more)
    result.room = room, filled
    return result

"""

Dims = tuple[int, ...]


class _Read(NamedTuple):
    """A call that reads keys which were just joined."""

    length: int
    #: the joins of keys and values right before it
    cats: list[int]


def static_cache(evidence: Evidence) -> Iterator[Proposal]:
    """Propose keys and values that are allocated once and written in place."""
    operators = evidence.operators
    grown = [reads for reads in _reads(operators) if _grows(reads)]
    # writing in place is not for what a backward pass goes through
    is_trained = operators.are_trained
    if not grown or is_trained:
        return
    ways, time_ns, calls = Ways(evidence), 0, 0
    for reads in grown:
        cats = [cat for read in reads for cat in read.cats]
        events = operators.launched_within(np.array(cats, np.int64))
        took_ns = evidence.time_ns(events)
        # each a copy of a part into its place
        parts = evidence.takes("kernel", len(events))
        least = reads[0].length
        fills = [cat for read in reads if read.length == least for cat in read.cats]
        filled = operators.launched_within(np.array(fills, np.int64))
        # what is allocated behind the prompt is filled with its keys and values
        parts = parts.plus(0.0, 0.0, evidence.time_ns(filled))
        ways.resize(events, parts.at_most(took_ns))
        # a slice to write to and one to read from instead of a join
        ways.add_host(evidence.calls.launch[events], evidence.takes("operator", 2))
        time_ns, calls = time_ns + took_ns, calls + len(cats)
    longest = max(read.length for reads in grown for read in reads)
    first = grown[0][0].cats[0]
    yield Proposal(
        name="static-cache",
        title=(
            "Allocate the cache of keys and values once, and write each token's keys "
            "and values in place."
        ),
        evidence=(
            f"Keys and values grow to {longest:,} tokens by {calls:,} calls of {_CAT}, "
            "each of which copies the whole cache: "
            f"{units.share(evidence.share(time_ns))} of the bare run."
        ),
        ways=ways,
        reason="With constant sizes, the steps could also become one CUDA graph.",
        operator=_CAT,
        line=evidence.line_at(int(operators.table.start_ns[first])),
        code=_generated(evidence.code) or allocated(evidence.code),
    )


def grows_for_attention(operators: Operators) -> bool:
    """Tell whether what grows by joins is keys and values."""
    return any(_grows(reads) for reads in _reads(operators))


def _reads(operators: Operators) -> Iterator[list[_Read]]:
    """Give the calls that read joined keys, by all sizes but the tokens' number."""
    is_cat, table = operators.named(_CAT), operators.table
    if np.count_nonzero(is_cat) < _LEAST_TOKENS:
        return
    sizes = {
        one.position: (one.query[2], one.key[2], (*one.key[:2], one.key[3]))
        for one in fused_attentions(operators)
    }
    for product in np.flatnonzero(operators.named(_PRODUCT))[:_MOST_CALLS].tolist():
        dims = operators.operands(product).dims[:2]
        if len(dims) == 2 and len(dims[0]) == len(dims[1]) == 3:
            # a batch of queries by keys whose axes are exchanged
            sizes[product] = dims[0][1], dims[1][2], (dims[0][0], dims[0][2])
    cats: defaultdict[int, list[int]] = defaultdict(list)
    found: defaultdict[tuple[int, Dims], list[_Read]] = defaultdict(list)
    joins = np.flatnonzero(is_cat)[:_MOST_CALLS].tolist()
    for position in sorted([*sizes, *joins]):
        thread = int(table.track[position])
        if is_cat[position]:
            cats[thread].append(position)
            continue
        queries, length, others = sizes[position]
        if cats[thread] and queries < length:
            joined = _longest(operators, cats[thread])
            found[thread, others].append(_Read(length, joined))
        cats[thread] = []
    yield from found.values()


def _longest(operators: Operators, cats: list[int]) -> list[int]:
    """Give the joins of keys and values: others join parts of one token."""
    times_ns = {
        cat: int(operators.gpu.duration_ns[operators.launched_from(cat, cat)].sum())
        for cat in cats
    }
    return sorted(cats, key=lambda cat: -times_ns[cat])[:2]


def _grows(reads: list[_Read]) -> bool:
    """Tell whether there are as many more keys each time."""
    lengths = list(dict.fromkeys(read.length for read in reads))
    steps = {after - before for before, after in pairwise(lengths)}
    return len(lengths) >= _LEAST_TOKENS and len(steps) == 1 and min(steps) > 0


def _generated(code: CellCode) -> str:
    """Write the cell with the static cache of a library that generates text."""
    calls = [call for call in code.calls("generate") if call.receiver]
    if not calls:
        return ""
    edit = SourceEdit(code)
    for call in calls:
        arguments = [*call.node.args, *(one.value for one in call.node.keywords)]
        names = {one.arg for one in call.node.keywords}
        if not arguments or names & {"cache_implementation", "past_key_values", None}:
            return ""
        edit.arguments(call.node, {"cache_implementation": '"static"'})
    return edit.source()


def allocated(code: CellCode) -> str:
    """Write the cell with what grows by joins allocated once, as large as it gets."""
    edit, flow, is_changed = SourceEdit(code), ValueFlow(code), False
    allocate = edit.free_name("allocated")
    for call in code.calls("cat", "concat", in_loop=True):
        statement, loop = flow.statement(call.node), flow.loop(call.node)
        found = _joined(statement, call.node)
        if found is None or statement is None or loop is None:
            continue
        name, part, axis = found
        if times_set(loop, name) != 1 or _changes(loop, name):
            continue
        room, new = edit.free_name(f"{name}_room"), edit.free_name(f"{name}_part")
        length, more = f"{name}.shape[{axis}]", f"{new}.shape[{axis}]"
        turns, is_full = _turns(edit, loop), f"{room} is None"
        if turns:
            much = f"{turns} * {more}"
        else:
            # twice as much each time that it is full
            much = f"max({length}, {more})"
            is_full += f" or {length} + {more} > {room}.shape[{axis}]"
        edit.before(loop, f"{room} = None")
        edit.before(
            statement,
            f"{new} = {edit.text(part)}\n"
            f"if {is_full}:\n"
            f"    {room} = {allocate}({name}, {new}, {axis}, {much})\n"
            f"{room}.narrow({axis}, {length}, {more}).copy_({new})",
        )
        edit.replace(statement, f"{name} = {room}.narrow({axis}, 0, {length} + {more})")
        is_changed = True
    if not is_changed:
        return _with_room(code)
    edit.at_start(_ALLOCATE.format(allocate, torch=edit.torch))
    return edit.source()


def _with_room(code: CellCode) -> str:
    """Write the cell with joins that leave room behind what they give.

    They are those of functions, and of what an object or a mapping holds.
    """
    edit, flow, is_changed = SourceEdit(code), ValueFlow(code), False
    join = edit.free_name("joined")
    written = _written_in_place(code)
    for call in code.calls("cat", "concat"):
        match call.node.args[:1]:
            case [ast.List(elts=[first, part]) | ast.Tuple(elts=[first, part])]:
                pass
            case _:
                continue
        axis, function = _axis(call.node), flow.function(call.node)
        places = _kept_in(flow.statement(call.node), call.node, flow)
        origins = _origins(first, flow)
        lasts = {*map(_last, places), *origins.values()}
        if not axis or not flow.is_repeated(call.node) or lasts & written:
            continue
        inside = ast.walk(getattr(function, "args", ast.Pass()))
        taken = {one.arg for one in inside if isinstance(one, ast.arg)}
        # what goes on from an argument, the caller is given back
        goes_on = {*origins, *(["return"] if taken & origins.keys() else [])}
        if goes_on.isdisjoint(ast.unparse(_whole(one)) for one in places):
            continue
        given = f"{edit.text(first)}, {edit.text(part)}, {axis}"
        edit.replace(call.node, f"{join}({given})")
        is_changed = True
    edit.at_start(_JOIN.format(join, torch=edit.torch))
    return edit.source() if is_changed else ""


def _kept_in(
    statement: ast.stmt | None, join: ast.expr, flow: ValueFlow
) -> list[ast.expr]:
    """Give what keeps what a join gives, through a name that is set to it.

    What a function returns is kept by who calls it: `return` stands for that.
    """
    match statement:
        case ast.Assign(targets=[target], value=value) if join in _parts(value):
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                if join in value.elts and len(target.elts) == len(value.elts):
                    target = target.elts[value.elts.index(join)]
            kept = [target]
            if isinstance(target, ast.Name):
                for read in flow.reads(target.id):
                    if flow.function(read) is flow.function(join):
                        kept += _kept_in(flow.statement(read), read, flow)
            return kept
        case ast.Return(value=ast.expr() as value) if join in _parts(value):
            return [ast.Name("return", ast.Load())]
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(attr="append", value=kept), args=[value])
        ) if join in _parts(value):
            return [kept]
    return []


def _parts(value: ast.expr) -> list[ast.expr]:
    """Give a value, and what it holds if it is a tuple, list or dictionary."""
    match value:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            return [value, *(one for part in parts for one in _parts(part))]
    return [value]


def _origins(first: ast.expr, flow: ValueFlow) -> dict[str, str]:
    """Give what a value is a part of, with the last name of each."""
    found, left = dict[str, str](), [first]
    while left:
        one = _whole(left.pop())
        if ast.unparse(one) in found:
            continue
        found[ast.unparse(one)] = _last(one)
        if isinstance(one, ast.Name):
            # `k, v = cache[layer]` before it
            made = flow.settings(one.id)
            left += [it.value for it in made if isinstance(it, ast.Assign)]
            left += [it.iter for it in made if isinstance(it, ast.For)]
    return found


def _whole(place: ast.expr) -> ast.expr:
    while isinstance(place, ast.Subscript):
        place = place.value
    return place


def _last(target: ast.expr) -> str:
    """Give the last name of what is set: "keys" of `self.keys` and `keys[i]`."""
    target = _whole(target)
    return target.attr if isinstance(target, ast.Attribute) else ast.unparse(target)


def _written_in_place(code: CellCode) -> set[str]:
    """Give the last names of what code writes into: joins would share that."""
    names = set[str]()
    for node in ast.walk(code.tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name, value=target)) if name.endswith(
                "_"
            ):
                names.add(_last(target))
            case ast.AugAssign(target=target):
                names.add(_last(target))
            case ast.Subscript(value=target, slice=ast.Slice() | ast.Tuple()) if (
                isinstance(node.ctx, ast.Store)
            ):
                names.add(_last(target))
            case ast.keyword(arg="out", value=target):
                names.add(_last(target))
    return names


def _joined(
    statement: ast.stmt | None, call: ast.Call
) -> tuple[str, ast.expr, str] | None:
    """Read `x = torch.cat([x, part], axis)`."""
    axis = _axis(call)
    match statement, call.args[:1]:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value),
            [ast.List(elts=[ast.Name(id=first), part])]
            | [ast.Tuple(elts=[ast.Name(id=first), part])],
        ) if value is call and first == name and axis:
            return name, part, axis
    return None


def _axis(call: ast.Call) -> str:
    """Return the axis of a join as text; empty where it is no number."""
    axes = [*call.args[1:], *(one.value for one in call.keywords)]
    axis = ast.unparse(axes[0]) if len(axes) == 1 else "" if axes else "0"
    return axis if axis.lstrip("-").isdigit() else ""


def _turns(edit: SourceEdit, loop: ast.For | ast.AsyncFor | ast.While) -> str:
    """Write how many turns a loop has; empty where nobody knows before it."""
    # one that ends early may have far more turns than it takes
    leaves = any(isinstance(one, ast.Break | ast.Return) for one in ast.walk(loop))
    match loop:
        case ast.For(iter=ast.Call(func=ast.Name(id="range"))) if not leaves:
            return f"len({edit.text(loop.iter)})"
    return ""


def _changes(loop: ast.AST, name: str) -> bool:
    """Tell whether code writes into what a name holds: earlier ones are in it, too."""
    for node in ast.walk(loop):
        match node:
            case ast.Subscript(value=ast.Name(id=one), ctx=ast.Store()):
                pass
            case ast.Call(func=ast.Attribute(attr=method, value=ast.Name(id=one))) if (
                method.endswith("_")
            ):
                pass
            case ast.AugAssign(target=ast.Name(id=one)):
                pass
            case _:
                continue
        if one == name:
            return True
    return False


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("static-cache",),
            what="keys and values of attention that grow by `cat` with each token",
            time="predicted",
        ),
    ),
    rule=static_cache,
    untried=BY_EDIT,
)

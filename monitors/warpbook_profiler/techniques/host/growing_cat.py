"""A tensor that grows by torch.cat: each call copies all that there was before."""

from __future__ import annotations

import ast
import math
from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.advice.chip import Span
from warpbook_profiler.advice.code.cell_code import (
    CellCode,
    last_name,
    walk,
    written,
)
from warpbook_profiler.advice.code.read_code import calls_in_turns
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.rewriting.gathered_parts import joined_once
from warpbook_profiler.advice.rewriting.growths import allocated
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Int64s, distinct
from warpbook_profiler.techniques.models.static_cache import grows_for_attention
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_CAT = "aten::cat"
#: torch's names for it in a source, and CuPy's
_NAMES = ("cat", "concat", "concatenate", "hstack", "vstack", "dstack", "append")
_LEAST_CALLS = 8
#: a window with more is judged by these
_MOST_CALLS = 20_000
_MOST_GROWTHS = 200
_TURNS = (
    *(ast.For, ast.While),
    *(ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp),
)
#: one call that takes all parts does so in several kernels, and reads little more
_MANY = (1.0, 1.1, 1.6)


class _Written(NamedTuple):
    """`out = torch.cat([out, x])` in a loop, or in a function that is called in one."""

    statement: ast.Assign
    call: ast.Call
    #: something else of the loop takes it, too
    is_read: bool
    in_function: bool


class _Growth(NamedTuple):
    """Calls each of which takes what the one before it gave."""

    calls: Int64s
    #: of the last result
    elements: int
    #: others read what is grown in between
    is_read: bool


def growing_cat(evidence: Evidence) -> Iterator[Proposal]:
    """Propose one cat at the end, or a tensor that is allocated once."""
    source = _in_source(evidence.code)
    is_hidden = calls_in_turns(evidence.code) and not evidence.code.calls(*_NAMES)
    if evidence.code.is_known and source is None and not is_hidden:
        return
    growths = sorted(_growths(evidence), key=lambda growth: -growth.elements)
    growths = growths[:_MOST_GROWTHS]
    for is_read in (False, True):
        some = [growth for growth in growths if growth.is_read == is_read]
        # writing in place is not for what a backward pass goes through, and a cache of
        # keys and values is another technique's
        is_other = is_read and (
            source is None
            or _trains(evidence)
            or grows_for_attention(evidence.operators)
        )
        if some and not is_other:
            yield _proposal(evidence, some, source, is_read)


def _proposal(
    evidence: Evidence, growths: list[_Growth], source: _Written | None, is_read: bool
) -> Proposal:
    operators = evidence.operators
    ways, time_ns, calls = Ways(evidence), 0, 0
    for growth in growths:
        launched = operators.launched_within(growth.calls)
        time_ns += evidence.time_ns(launched)
        calls += len(growth.calls)
        if is_read:
            # each a copy of a part into its place
            span = evidence.takes("kernel", len(launched))
            ways.resize(launched, span.at_most(evidence.time_ns(launched)))
            continue
        last = operators.launched_within(growth.calls[-1:])
        took_ns = evidence.time_ns(last)
        ways.drop_operators(distinct(operators.outer_of(growth.calls[:-1])))
        ways.resize(last, Span(*(took_ns * ratio for ratio in _MANY)))
    largest = max(growths, key=lambda growth: growth.elements)
    begun_ns = int(operators.table.start_ns[largest.calls[0]])
    return Proposal(
        name="allocate-once" if is_read else "cat-once",
        title=(
            "Allocate the whole tensor once and write each part into its place."
            if is_read
            else (
                "Collect the parts in a list and concatenate them once, after the loop."
            )
        ),
        evidence=(
            f"{_CAT} is called {calls:,} times on a result that grows"
            + (f" to {largest.elements:,} elements" if largest.elements else "")
            + (
                ": each call copies the whole result again, which takes "
                f"{units.share(evidence.share(time_ns))} of the bare run on the GPU."
            )
        ),
        ways=ways,
        is_bound=not is_read,
        reason="" if is_read else "The loop that collects the parts stays.",
        operator=_CAT,
        line=source.statement.lineno if source else evidence.line_at(begun_ns),
        code=_edited(evidence.code, source, is_read),
    )


def _edited(code: CellCode, source: _Written | None, is_read: bool) -> str:
    if source is None:
        return ""
    if is_read or source.in_function:
        return allocated(code)
    return joined_once(code, is_sure=True)


def _growths(evidence: Evidence) -> Iterator[_Growth]:
    """Follow each result to the call that takes it, by the number of its elements."""
    operators = evidence.operators
    calls = np.flatnonzero(operators.named(_CAT))[:_MOST_CALLS]
    #: by the elements of their last result; several may grow side by side
    chains: defaultdict[int, deque[list[int]]] = defaultdict(deque)
    elements: dict[int, int] = {}
    for call in calls.tolist():
        lists = operators.operands(call).lists
        parts = [math.prod(dims) for dims in lists[0]] if lists else []
        elements[call] = sum(parts)
        if not elements[call]:
            continue
        taken = next((part for part in parts if chains.get(part)), None)
        chain = chains[taken].popleft() if taken is not None else []
        chains[elements[call]].append([*chain, call] if chain else [call])
    if len(calls) and not any(elements.values()):
        yield from _grown_by_source(evidence, calls)
    for chain in (chain for some in chains.values() for chain in some):
        sizes = [elements[call] for call in chain]
        steps = {after - before for before, after in pairwise(sizes)}
        # a cache grows by as much each time, however large it is
        grows = len(steps) == 1 or sizes[-1] > 2 * sizes[0]
        if len(chain) >= _LEAST_CALLS and grows:
            members = np.array(chain, np.int64)
            yield _Growth(members, sizes[-1], _is_read(evidence, members, sizes))


def _grown_by_source(evidence: Evidence, calls: Int64s) -> Iterator[_Growth]:
    """Take all calls for one growth: torch before 2.13 tells no lists' sizes."""
    source = _in_source(evidence.code)
    if source is not None and len(calls) >= _LEAST_CALLS:
        yield _Growth(calls, 0, source.is_read)


def _is_read(evidence: Evidence, calls: Int64s, sizes: list[int]) -> bool:
    """Tell whether other operators take what each call gives, before the next call.

    A turn's own values may by chance be as large as what was there in one turn.
    """
    operators = evidence.operators
    table = operators.table
    elements = [
        {math.prod(dims) for dims in operands.dims if dims}
        for operands in table.operands
    ]
    others = np.flatnonzero(~operators.named(_CAT) & (table.operand != NONE))
    after = np.searchsorted(table.start_ns[calls], table.start_ns[others]) - 1
    inside = (after >= 0) & (after < len(calls) - 1)
    read = {
        turn
        for turn, operand in zip(
            after[inside].tolist(), table.operand[others[inside]].tolist(), strict=True
        )
        if sizes[turn] in elements[operand]
    }
    return len(read) >= len(calls) // 2


def _trains(evidence: Evidence) -> bool:
    return evidence.operators.are_trained


def _in_source(code: CellCode) -> _Written | None:
    functions = [one for one in ast.walk(code.tree) if isinstance(one, ast.FunctionDef)]
    inside = {part for one in functions for part in ast.walk(one)}
    flow = ValueFlow(code)
    called = {
        call.node: call
        for call in code.calls(*_NAMES)
        if call.in_loop or call.node in inside
    }
    for node in ast.walk(code.tree):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target = written(node.targets[0])
        for part in ast.walk(node.value):
            if isinstance(part, ast.Call) and part in called:
                names = [
                    name
                    for argument in part.args
                    for name in ast.walk(argument)
                    if isinstance(name, ast.expr)
                ]
                # or what has another name in the turn
                values = (flow.value(name) for name in names)
                if target in map(written, (*names, *values)):
                    is_read = _is_read_beside(code, node, target)
                    return _Written(node, part, is_read, not called[part].in_loop)
    return None


def _is_read_beside(code: CellCode, grows: ast.Assign, target: str) -> bool:
    """Tell whether each turn reads what a statement sets elsewhere, too.

    What tells only of its size, or that it is None, or gives all of it back, is none.
    """
    no_reads = set(walk(grows))
    for part in walk(code.tree):
        match part:
            case ast.Return(value=ast.Tuple(elts=given)):
                no_reads.update(given)
            case (
                ast.Return(value=ast.expr() as one)
                | ast.Attribute(value=one, attr="shape" | "ndim" | "dtype" | "device")
                | ast.Compare(left=one, ops=[ast.Is() | ast.IsNot()])
            ):
                no_reads.add(one)
            case (
                ast.Call(func=ast.Name(id="len"), args=[one])
                | ast.Call(func=ast.Attribute(value=one, attr="size" | "dim" | "numel"))
            ):
                no_reads.add(one)
    return any(
        isinstance(part, ast.expr)
        and part not in no_reads
        and isinstance(getattr(part, "ctx", None), ast.Load)
        and written(part) == target
        for around in _in_turns(code, grows)
        for part in walk(around)
    )


def _in_turns(code: CellCode, grows: ast.Assign) -> Iterator[ast.AST]:
    """Give the loop or function around a statement, and what loops call."""
    loops = [one for one in walk(code.tree) if isinstance(one, _TURNS)]
    called = {
        last_name(part.func)
        for loop in loops
        for part in walk(loop)
        if isinstance(part, ast.Call)
    }
    yield from (one for one in loops if grows in walk(one))
    for one in walk(code.tree):
        if isinstance(one, ast.FunctionDef):
            # a copy of a method has its class's name before its own
            is_called = any(f"_{one.name}".endswith(f"_{name}") for name in called)
            if is_called or grows in walk(one):
                yield one


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("cat-once",),
            what="a tensor that grows by `cat` in a loop: concatenate once",
            time="a bound",
        ),
        ChangeKind(
            names=("allocate-once",),
            what=(
                "such a tensor that is also read in the loop: write into one that is "
                "large enough"
            ),
            time="predicted",
        ),
    ),
    rule=growing_cat,
    untried=BY_EDIT,
)

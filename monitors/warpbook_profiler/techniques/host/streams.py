"""Streams that wait for one another all the time, so that nothing runs beside anything.

Each kernel is on the other stream than the one before it, and waits for that one's
event. Events and the change of streams cost the host time, and gain nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from warpbook_profiler.advice.code.cell_code import CellCode, blocks
from warpbook_profiler.advice.code.source_edit import SourceEdit
from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Int64s, distinct
from warpbook_profiler.facts.calls import named
from warpbook_profiler.facts.kernels import communicates
from warpbook_profiler.techniques.host.waits import HOST_WAITS
from warpbook_profiler.techniques.technique import BY_EDIT, ChangeKind, Technique

_EVENTS = re.compile(r"(cuda|cu|hip)(EventRecord|StreamWaitEvent|EventCreate)")
#: changes of the stream, below which nobody would notice them
_LEAST_SWITCHES = 8
#: of the changes, those that an event explains
_LEAST_WAITING = 0.9
#: of the kernels' time, beside another stream's
_MOST_OVERLAP = 0.01
#: as many times the usual time between operators is other work than a change of stream
_LONG_RATIO = 10


def streams(evidence: Evidence) -> Iterator[Proposal]:
    """Propose one stream for what is in one order anyway."""
    switches = _switches(evidence)
    if len(switches) < _LEAST_SWITCHES:
        return
    ways = Ways(evidence)
    calls = evidence.calls
    queries = evidence.host_position(np.flatnonzero(named(calls.api, _EVENTS)))
    for edit in (ways.best, ways.usual, ways.worst):
        edit.drop_calls(queries)
        edit.shorten_edges(evidence.takes("step").usual_ns)
    _drop_between(evidence, ways, switches)
    pieces = evidence.bare.program.pieces
    first = int(np.flatnonzero(pieces.piece == switches[0])[0])
    outer = int(evidence.operators.outer[first])
    used = len(distinct(pieces.stream[switches]))
    yield Proposal(
        name="one-stream",
        title="Use one stream: these streams wait for each other, so nothing overlaps.",
        evidence=(
            f"Work switches between {used} streams {len(switches):,} times, each time "
            "after an event of the other stream, and no two kernels overlap."
        ),
        ways=ways,
        operator=None if outer == NONE else evidence.operators.name(outer),
        line=evidence.code.first_line("wait_stream", "wait_event", "stream", "Stream"),
        code=_on_one_stream(evidence.code),
    )


def _switches(evidence: Evidence) -> Int64s:
    """Give the pieces that are on another stream than the one before, in their order.

    None unless they wait for each other and no work of them overlaps.
    """
    none = np.zeros(0, np.int64)
    program = evidence.bare.program
    pieces, edges = program.pieces, program.edges
    if pieces.streams < 2 or len(edges) < _LEAST_SWITCHES:
        return none
    computes = evidence.is_kernel & ~communicates(evidence.events, evidence.gpu)
    moves = np.zeros(len(pieces), np.bool_)
    moves[pieces.piece[~computes]] = True
    order = np.argsort(pieces.start_ns, kind="stable")
    # a stream of copies or of communication is there to overlap
    apart = distinct(pieces.stream[moves])
    order = order[~np.isin(pieces.stream[order], apart)]
    changes = np.flatnonzero(np.diff(pieces.stream[order])) + 1
    if len(changes) < _LEAST_SWITCHES:
        return none
    switches = order[changes]
    if np.isin(switches, edges.target).mean() < _LEAST_WAITING:
        return none
    ended = np.maximum.accumulate(pieces.end_ns[order])[:-1]
    beside_ns = np.maximum(ended - pieces.start_ns[order[1:]], 0.0).sum()
    if beside_ns > _MOST_OVERLAP * pieces.duration_ns[order].sum():
        return none
    return switches


def _drop_between(evidence: Evidence, ways: Ways, switches: Int64s) -> None:
    """Take the host's time between operators on different streams away."""
    operators = evidence.operators
    table = operators.table
    at = np.flatnonzero(np.isin(evidence.bare.program.pieces.piece, switches))
    outer = distinct(operators.outer[at])
    outer = outer[outer != NONE]
    tops = np.flatnonzero(operators.outermost)
    for thread in distinct(table.track[outer]).tolist():
        mine = tops[table.track[tops] == thread]
        place = np.searchsorted(mine, outer[table.track[outer] == thread])
        place = place[place > 0]
        start_ns, end_ns = table.end_ns[mine[place - 1]], table.start_ns[mine[place]]
        took_ns = end_ns - start_ns
        usual = took_ns <= _LONG_RATIO * np.median(took_ns) if len(took_ns) else took_ns
        ways.drop_host(int(thread), start_ns[usual], end_ns[usual])


def _on_one_stream(code: CellCode) -> str:
    """Write the cell without its own streams, and without waits for them."""
    edit, own = SourceEdit(code), set[str]()
    for node in ast.walk(code.tree):
        if isinstance(node, ast.With):
            for item in node.items:
                match item.context_expr:
                    case ast.Call(func=ast.Attribute(attr="stream"), args=[stream]):
                        own.add(ast.unparse(stream))
                        edit.unwrap(node, item)
    for block in blocks(code.tree):
        for statement in block.statements:
            match statement:
                case ast.Expr(
                    value=ast.Call(
                        func=ast.Attribute(attr="wait_stream", value=waiting),
                        args=[awaited],
                    )
                ):
                    if own & {ast.unparse(waiting), ast.unparse(awaited)}:
                        edit.delete(statement)
    return edit.source() if own else ""


TECHNIQUE = Technique(
    changes=(
        ChangeKind(
            names=("one-stream",),
            what="two streams that wait for each other, so that nothing overlaps",
            time="predicted",
            answers=HOST_WAITS,
            lab="copy-compute-overlap",
        ),
    ),
    rule=streams,
    untried=BY_EDIT,
)

"""A trace's window as a program: what the host does in order, and what follows of it.

The order of calls, and of work within a stream, is that of the trace; only times are
computed. So nothing is searched for while it runs: each time is the latest of a few
earlier ones, plus what lies between (a max-plus program).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpbook_profiler.events.columns import Bools, Int64s
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.replay.dependencies import Edges, edges
from warpbook_profiler.replay.host import Floats, Host, host_side
from warpbook_profiler.replay.waits import PIECE, Waits, find_waits
from warpbook_profiler.replay.work import Pieces, delays, gpu_side, with_unexplained


@dataclass(frozen=True)
class Program:
    """Everything that a replay computes times from; times are in ns."""

    host: Host
    pieces: Pieces
    waits: Waits
    edges: Edges
    after_ns: Floats
    step_ns: Floats
    #: what no rule explains of each piece's start; it is kept in every replay
    unexplained_ns: Floats
    #: the window from its start to the later of code's and GPU's end
    window_ns: float
    #: lanes of threads that launched
    launching_lanes: int
    layout: Layout


@dataclass(frozen=True)
class Layout:
    """The calls cut into blocks within which nothing waits, in the order of calls.

    A block is a lane's calls up to one that waits, or next to a piece that another
    block's time depends on. Its pieces, by stream, are a part each.
    """

    #: of each block: the position after its last call, and its lane
    end: Int64s
    lane: Int64s
    #: of each call its block
    block: Int64s
    #: positions of pieces, block by block and stream by stream
    order: Int64s
    #: of each part: its first place in `order`, its block and stream
    part_first: Int64s
    part_block: Int64s
    part_stream: Int64s
    #: of each place in `order` its part
    part: Int64s


def program_of(trace: Trace) -> Program:
    """Read a program from a trace's window."""
    run, calls = trace.run, trace.calls
    host = host_side(trace)
    pieces = gpu_side(trace, host)
    waits = find_waits(host, pieces, trace)
    # a wait's own time is over when it begins to wait
    returned = np.append(host.start_ns + waits.cost_ns, 0.0)[pieces.launch]
    late = delays(pieces, returned)
    between, unexplained = edges(pieces, host, calls, returned, late.unexplained_ns)
    late = with_unexplained(pieces, returned, late, unexplained)
    code_end_ns = float(max(run.code_end_ns - run.start_ns, 0))
    return Program(
        host=host,
        pieces=pieces,
        waits=waits,
        edges=between,
        after_ns=late.after_ns,
        step_ns=late.step_ns,
        unexplained_ns=unexplained,
        window_ns=max(code_end_ns, float(pieces.end_ns.max(initial=0.0))),
        launching_lanes=len(set(host.lane[calls.launches[host.row]].tolist())),
        layout=_layout(host, pieces, waits, between),
    )


def _layout(host: Host, pieces: Pieces, waits: Waits, between: Edges) -> Layout:
    count = len(host)
    ends = np.zeros(count + 1, np.bool_)
    ends[0] = ends[count] = True
    ends[1:][waits.kind != 0] = True
    ends[1:count][host.lane[1:] != host.lane[:-1]] = True
    awaited = waits.on[waits.kind == PIECE]
    for launched in (between.source, awaited):
        ends[pieces.launch[launched] + 1] = True
    ends[np.maximum(pieces.launch[between.target], 0)] = True
    for begins_after in host.begins_after:
        ends[begins_after + 1] = True
    # what the window's start stands for is before all calls, in a block of its own
    end = np.flatnonzero(ends)
    block = np.searchsorted(end, np.arange(count), side="right")
    of_piece = np.where(pieces.launch < 0, 0, np.append(block, 0)[pieces.launch])
    order = np.lexsort((pieces.stream, of_piece))
    changes: Bools = np.ones(len(order), np.bool_)
    changes[1:] = (np.diff(of_piece[order]) != 0) | (np.diff(pieces.stream[order]) != 0)
    first = np.flatnonzero(changes)
    lane = np.zeros(len(end), np.int64)
    if count:
        lane[1:] = host.lane[end[1:] - 1]
    return Layout(
        end=end,
        lane=lane,
        block=block,
        order=order,
        part_first=first,
        part_block=of_piece[order][first],
        part_stream=pieces.stream[order][first],
        part=np.cumsum(changes) - 1,
    )

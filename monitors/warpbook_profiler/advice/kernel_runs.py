"""Kernels of one kind that follow one another, and what goes when they go."""

from __future__ import annotations

import numpy as np

from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import NONE, Bools, Int64s, distinct

#: a window with more is judged by these
_MOST_RUNS = 2_000
#: a longer pause of the host between two launches is other work
_LONG_NS = 300_000


def launched(evidence: Evidence) -> Int64s:
    """Give the kernels whose launch is known in the order of their launches."""
    launch = evidence.calls.launch
    known = np.flatnonzero(evidence.is_kernel & (launch != NONE))
    ordered: Int64s = known[np.argsort(launch[known], kind="stable")]
    return ordered


def runs(
    evidence: Evidence,
    order: Int64s,
    chosen: Bools,
    least: int,
    like: Int64s | None = None,
) -> list[Int64s]:
    """Cut the chosen kernels where another is between, or `like` differs.

    Of more than `_MOST_RUNS` the longest are given.
    """
    gpu = evidence.gpu
    if not len(order):
        return []
    same = chosen[order[1:]] & chosen[order[:-1]]
    same &= gpu.track[order[1:]] == gpu.track[order[:-1]]
    same &= gpu.device[order[1:]] == gpu.device[order[:-1]]
    if like is not None:
        same &= like[order[1:]] == like[order[:-1]]
    begins = np.append(0, np.flatnonzero(~same) + 1)
    lengths = np.diff(begins, append=len(order))
    times_ns = np.add.reduceat(gpu.duration_ns[order], begins)
    fitting = np.flatnonzero((lengths >= least) & chosen[order[begins]])
    by_time = np.argsort(-times_ns[fitting], kind="stable")
    ends = begins + lengths
    return [
        order[begins[at] : ends[at]] for at in fitting[by_time[:_MOST_RUNS]].tolist()
    ]


def drop(evidence: Evidence, ways: Ways, events: Int64s) -> None:
    """Take kernels away, and what the host does right before each of them."""
    ways.drop(events)
    host = evidence.bare.program.host
    position = evidence.host_position(evidence.calls.launch[events])
    position = position[host.gap_ns[position] < _LONG_NS]
    origin_ns = evidence.run.start_ns
    for lane, threads in enumerate(host.threads):
        mine = distinct(position[host.lane[position] == lane])
        if not len(mine) or not threads:
            continue
        begins = host.start_ns[mine] - host.gap_ns[mine]
        start_ns = begins.astype(np.int64) + origin_ns
        ways.drop_host(
            threads[0], start_ns, host.end_ns[mine].astype(np.int64) + origin_ns
        )

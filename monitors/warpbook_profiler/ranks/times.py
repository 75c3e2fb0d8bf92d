"""Where the window of one rank went."""

from __future__ import annotations

import numpy as np

from warpbook_profiler.events.intervals import union_ns
from warpbook_profiler.model.figures import Metrics
from warpbook_profiler.model.use import CpuTime
from warpbook_profiler.ranks.collectives import Collectives
from warpbook_profiler.ranks.figures import RankTime


def rank_time(
    rank: int,
    metrics: Metrics,
    cpu: CpuTime | None,
    collectives: Collectives | None,
) -> RankTime:
    """Put the figures of one rank together.

    Args:
        rank: its number.
        metrics: of its window.
        cpu: of a rank without GPU work.
        collectives: of a rank without GPU work.
    """
    if cpu is not None:
        return RankTime(
            rank,
            cpu.window_ns,
            cpu.operators_ns + cpu.small_calls_ns,
            None if collectives is None else _time_ns(collectives),
            # a program waits for the backend's threads where nothing records it
            None,
            None,
        )
    return RankTime(
        rank,
        metrics.window_ns,
        metrics.compute_ns,
        metrics.communication_ns,
        metrics.exposed_communication_ns,
        max(metrics.window_ns - metrics.gpu_busy_ns, 0),
    )


def _time_ns(collectives: Collectives) -> int:
    every = collectives.by_kind.values()
    if not every:
        return 0
    start_ns = np.concatenate([times.start_ns for times in every])
    end_ns = np.concatenate([times.end_ns for times in every])
    order = np.argsort(start_ns, kind="stable")
    return union_ns(start_ns[order], end_ns[order])

"""Puts the ranks of a job on one time axis by their collectives, and finds who is late.

A collective is over on all ranks at the same time, as near as the network tells; so the
median difference of the ends is the difference of two clocks. A rank that begins later
than the others made them wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from warpbook_monitors import units
from warpbook_profiler.events.columns import Int64s
from warpbook_profiler.ranks.collectives import Collectives
from warpbook_profiler.ranks.figures import Alignment, Arrival, RankTime

#: clocks of one machine agree; a difference below this many uncertainties is none
_SAME_CLOCK = 3
#: a kernel starts some µs after the one before it at best
_LEAST_LATE_NS = 20_000
#: lateness below this share of the window holds nobody up
_STRAGGLING_SHARE = 0.05
#: of the collectives at which somebody is late
_MOSTLY_SHARE = 0.5
#: so many kinds are named that can't be aligned
_MOST_NAMED = 5


def align(
    by_rank: Sequence[Collectives], times: Sequence[RankTime]
) -> Alignment | tuple[str, ...]:
    """Align ranks; where nothing can be, say why.

    Args:
        by_rank: the collectives of each rank.
        times: of the same ranks, in the same order.
    """
    left_out = list(_left_out(by_rank))
    if len({one.where for one in by_rank}) > 1:
        return (*left_out, "Some ranks have communication kernels, others have none.")
    kinds = [
        kind
        for kind in by_rank[0].by_kind
        if len({_count(one, kind) for one in by_rank}) == 1
    ]
    if not kinds:
        return tuple(left_out)
    start_ns, end_ns = _columns(by_rank, kinds)
    offset_ns, uncertainty_ns = _clocks(end_ns)
    arrived, late = _arrivals(start_ns - offset_ns[:, None], uncertainty_ns, times)
    arrivals = [
        Arrival(*one, int(offset))
        for one, offset in zip(arrived, offset_ns, strict=True)
    ]
    straggler = _straggler(arrivals, late, times)
    count = start_ns.shape[1]
    return Alignment(
        where=by_rank[0].where,
        collectives=count,
        uncertainty_ns=uncertainty_ns,
        arrivals=tuple(arrivals),
        straggler=None if straggler is None else straggler.rank,
        sentence=_sentence(straggler, count, uncertainty_ns, times),
        left_out=tuple(left_out),
    )


def _count(collectives: Collectives, kind: str) -> int:
    times = collectives.by_kind.get(kind)
    return 0 if times is None else len(times.start_ns)


def _left_out(by_rank: Sequence[Collectives]) -> Iterator[str]:
    kinds = sorted({kind for one in by_rank for kind in one.by_kind})
    uneven = [kind for kind in kinds if len({_count(one, kind) for one in by_rank}) > 1]
    for kind in uneven[:_MOST_NAMED]:
        counts = [_count(one, kind) for one in by_rank]
        yield (
            f"Not aligned: {kind}, of which the ranks recorded {min(counts):,} to "
            f"{max(counts):,}."
        )
    if len(uneven) > _MOST_NAMED:
        yield f"Not aligned: {len(uneven) - _MOST_NAMED:,} other kinds, likewise."
    paired = max(one.point_to_point for one in by_rank)
    if paired:
        yield f"Not aligned: up to {paired:,} transfers between two ranks."


def _columns(
    by_rank: Sequence[Collectives], kinds: Sequence[str]
) -> tuple[Int64s, Int64s]:
    """Give begins and ends: a row for each rank, a column for each collective."""
    start_ns = np.array(
        [
            np.concatenate([one.by_kind[kind].start_ns for kind in kinds])
            for one in by_rank
        ]
    )
    end_ns = np.array(
        [
            np.concatenate([one.by_kind[kind].end_ns for kind in kinds])
            for one in by_rank
        ]
    )
    return start_ns, end_ns


def _clocks(end_ns: Int64s) -> tuple[Int64s, int]:
    """Give each rank's clock against the first one's, and how far ends still differ."""
    behind_ns = end_ns - end_ns[0]
    offset_ns = np.median(behind_ns, axis=1).astype(np.int64)

    def spread(offset: Int64s) -> int:
        ends = end_ns - offset[:, None]
        apart = ends.max(axis=0) - ends.min(axis=0)
        return int(np.quantile(apart, 0.9))

    uncertainty_ns = spread(offset_ns)
    if np.abs(offset_ns).max() <= _SAME_CLOCK * max(uncertainty_ns, _LEAST_LATE_NS):
        offset_ns = np.zeros_like(offset_ns)
    return offset_ns, spread(offset_ns)


def _arrivals(
    start_ns: Int64s, uncertainty_ns: int, times: Sequence[RankTime]
) -> tuple[list[tuple[int, int, int, int, int]], int]:
    """Tell of each rank how it came, and how often somebody was late."""
    last = start_ns.argmax(axis=0)
    columns = np.arange(start_ns.shape[1])
    others = start_ns.astype(np.float64)
    others[last, columns] = np.nan
    late_ns = start_ns[last, columns] - np.nanmedian(others, axis=0)
    is_late = late_ns > max(uncertainty_ns, _LEAST_LATE_NS)
    arrived = []
    for row, time in enumerate(times):
        mine = late_ns[(last == row) & is_late]
        total, most = int(mine.sum()), int(mine.max(initial=0))
        median = int(np.median(mine)) if len(mine) else 0
        arrived.append((time.rank, len(mine), total, median, most))
    return arrived, int(is_late.sum())


def _straggler(
    arrivals: Sequence[Arrival], late: int, times: Sequence[RankTime]
) -> Arrival | None:
    worst = max(arrivals, key=lambda arrival: arrival.late_ns)
    longest_ns = max(time.window_ns for time in times)
    if worst.late_ns < _STRAGGLING_SHARE * longest_ns:
        return None
    return worst if worst.last > _MOSTLY_SHARE * late else None


def _sentence(
    straggler: Arrival | None,
    count: int,
    uncertainty_ns: int,
    times: Sequence[RankTime],
) -> str:
    if straggler is None:
        return (
            f"No rank delays the others: over {count:,} collectives, which end within "
            f"{_ms(uncertainty_ns)} of one another, none is late for long."
        )
    return (
        f"Rank {straggler.rank} comes last to the collectives: at {straggler.last:,} "
        f"of {count:,}, {_ms(straggler.late_median_ns)} after the others (median), "
        f"{_ms(straggler.late_ns)} in all.{_reason(straggler, times)}"
    )


def _reason(straggler: Arrival, times: Sequence[RankTime]) -> str:
    """Say what the rank does longer than the others, if that explains it."""
    own = next(time for time in times if time.rank == straggler.rank)
    others = [time for time in times if time.rank != straggler.rank]
    longer = {
        "computes": _longer(own.compute_ns, [time.compute_ns for time in others]),
        "idles": _longer(own.idle_ns, [time.idle_ns for time in others]),
    }
    what = max(longer, key=lambda name: longer[name] or 0)
    more_ns = longer[what] or 0
    if more_ns < straggler.late_ns / 2:
        return " It is not known where it spends more time than they do."
    if what == "computes":
        return (
            f" It computes {_ms(more_ns)} longer than they do: it has more work, or a "
            "slower device."
        )
    return f" Its GPU idles {_ms(more_ns)} longer than theirs: its host is slower."


def _longer(own_ns: int | None, others_ns: Sequence[int | None]) -> int | None:
    known = [other for other in others_ns if other is not None]
    if own_ns is None or len(known) < len(others_ns):
        return None
    return own_ns - int(np.median(known))


def _ms(nanoseconds: int) -> str:
    return units.duration_ns(nanoseconds)

"""How many times as fast one side of interleaved runs is, and how sure that is.

The sides take turns: A, B, B, A. A pair's logarithmic ratio loses what both sides
share; what drifts goes out of two pairs together. Of six pairs or more the interval is
that of Wilcoxon's signed ranks (Hodges and Lehmann), which a few disturbed runs don't
move; fewer can't have one of 95 % by ranks, so theirs is Student's.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

from warpbook_profiler.model.trials import Interval

#: fewer pairs tell nothing
LEAST_PAIRS = 3
#: from so many pairs on, ranks give an interval of 95 %
_LEAST_PAIRS_BY_RANKS = 6
_OUTSIDE = 0.05
#: Student's quantile at 97.5 %, by the number of pairs
_STUDENT = {3: 4.303, 4: 3.182, 5: 2.776}


def speed_ratio(unchanged_ns: Sequence[float], changed_ns: Sequence[float]) -> Interval:
    """Say how many times as fast the changed side is.

    Args:
        unchanged_ns: what each run took.
        changed_ns: the same of the other side's run of each pair.

    Raises:
        ValueError: too few pairs, or a run that took no time.
    """
    if len(unchanged_ns) != len(changed_ns) or len(changed_ns) < LEAST_PAIRS:
        raise ValueError(
            f"{len(unchanged_ns)} and {len(changed_ns)} runs do not form pairs."
        )
    if min(*unchanged_ns, *changed_ns) <= 0:
        raise ValueError("A run took no time at all: the clock is wrong.")
    logs = [
        math.log(unchanged / changed)
        for unchanged, changed in zip(unchanged_ns, changed_ns, strict=True)
    ]
    middle, low, high = _by_ranks(logs) if _has_ranks(logs) else _by_student(logs)
    return Interval(math.exp(middle), math.exp(low), math.exp(high))


def _has_ranks(logs: Sequence[float]) -> bool:
    return len(logs) >= _LEAST_PAIRS_BY_RANKS


def _by_student(logs: Sequence[float]) -> tuple[float, float, float]:
    middle = statistics.fmean(logs)
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    half = _STUDENT[len(logs)] * error
    return middle, middle - half, middle + half


def _by_ranks(logs: Sequence[float]) -> tuple[float, float, float]:
    """Give the median of Walsh's means, and those that the test would not refuse."""
    pairs = itertools.combinations_with_replacement(logs, 2)
    means = sorted((one + other) / 2 for one, other in pairs)
    cut = _cut(len(logs))
    return statistics.median(means), means[cut], means[-1 - cut]


def _cut(count: int) -> int:
    """Give how many means at each end are left out, exactly, for this many pairs."""
    # how many sign patterns give each sum of ranks
    patterns = [1]
    for rank in range(1, count + 1):
        longer = patterns + [0] * rank
        for at, ways in enumerate(patterns):
            longer[at + rank] += ways
        patterns = longer
    below, cut = 0, 0
    for ways in patterns:
        below += ways
        if 2 * below > _OUTSIDE * 2**count:
            break
        cut += 1
    return max(cut - 1, 0)

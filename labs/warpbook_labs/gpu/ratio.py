"""How much faster the learner's kernel is than the baseline, and how sure that is.

The two take turns: learner, baseline, baseline, learner. The ratio of such a round is
the geometric mean of its two pairs, so what drifts, and what is slower because it
comes second, goes out of it. The median of the rounds stays where it is if a few of
them were disturbed; how sure it is comes from drawing the rounds again (bootstrap).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from warpbook_labs.results.measurements import Ratio

Side = Literal["learner", "baseline"]
Verdict = Literal["fast", "slow", "can't tell"]

_ROUND: tuple[Side, ...] = ("learner", "baseline", "baseline", "learner")
_RESAMPLES = 2000
#: who looks again and again, and stops when it looks good, is wrong more often: of
#: intervals of 97 %, looked at as `Stopping` does, 95 % hold the truth
_LEVEL = 0.97
#: half of the range of five launches that took 15.0 to 16.9 us in 60 processes on an
#: H100; the output of that measurement is not kept
_BETWEEN_PROCESSES_NS = 1_000.0


class Stopping(Struct, frozen=True):
    """When there are enough pairs; each look is at twice as many as the last."""

    least_pairs: int = 40
    most_pairs: int = 640
    precision: float = 0.003

    def looks(self) -> Iterator[int]:
        """Give the numbers of pairs after which to look, all of them even."""
        pairs = self.least_pairs
        while pairs < self.most_pairs:
            yield pairs
            pairs *= 2
        yield self.most_pairs

    def is_done(
        self, measured: Ratio, wanted: Sequence[tuple[Ratio, float]] = ()
    ) -> bool:
        """Whether more pairs would tell nothing more.

        Args:
            wanted: what a mark asks, each with the least that it must be.
        """
        if measured.pairs >= self.most_pairs:
            return True
        is_decided = all(
            verdict(ratio, least) != "can't tell" for ratio, least in wanted
        )
        return is_decided and measured.precision < self.precision


def sides(pairs: int) -> Iterator[Side]:
    """Give whose turn it is, call by call; the number of pairs is even."""
    for _ in range(pairs // 2):
        yield from _ROUND


def compared(learner_ns: Sequence[float], baseline_ns: Sequence[float]) -> Ratio:
    """Say how many times faster than the baseline the learner is.

    Args:
        learner_ns: what each call took, in the order of `sides`.
        baseline_ns: the same of the baseline; as many.
    """
    learner, baseline = _times(learner_ns), _times(baseline_ns)
    if len(learner) != len(baseline) or len(learner) < 2:
        raise ValueError(f"{len(learner)} and {len(baseline)} times are no rounds.")
    ratios = np.log(baseline / learner)[: len(learner) // 2 * 2]
    rounds = ratios.reshape(-1, 2).mean(axis=1)
    median, low, high = (math.exp(logarithm) for logarithm in _median(rounds))
    return Ratio(median, low, high, 2 * len(rounds))


def fraction(limit_ns: float, learner_ns: Sequence[float]) -> Ratio:
    """Say what part of the speed at the limit the learner has."""
    median, low, high = _median(limit_ns / _times(learner_ns))
    return Ratio(median, low, high, len(learner_ns))


def between_processes(ratio: Ratio, *sides_ns: float) -> Ratio:
    """Widen an interval by how much the same calls differ from process to process.

    One process sees one placement of its memory, programs and queues, so its own calls
    tell nothing of it. For calls of many microseconds it is next to nothing.

    Args:
        sides_ns: what a call took, of each side that is in the ratio.
    """
    share = sum(min(_BETWEEN_PROCESSES_NS / side_ns, 0.5) for side_ns in sides_ns)
    return structs.replace(
        ratio, low=ratio.low / (1 + share), high=ratio.high * (1 + share)
    )


def verdict(ratio: Ratio, least: float) -> Verdict:
    """Judge by the whole interval, so that noise gives no mark and takes none."""
    if ratio.low >= least:
        return "fast"
    return "slow" if ratio.high < least else "can't tell"


def _times(given_ns: Sequence[float]) -> NDArray[np.float64]:
    times = np.asarray(given_ns, dtype=np.float64)
    wrong = times[~(np.isfinite(times) & (times > 0))]
    if wrong.size:
        raise ValueError(f"A call took {wrong[0]} ns: the clock can't be trusted.")
    return times


def _median(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Give the median and the ends of its interval, the same for the same values."""
    drawn = np.random.default_rng(0).integers(0, len(values), (_RESAMPLES, len(values)))
    medians = np.median(values[drawn], axis=1)
    low, high = np.quantile(medians, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(np.median(values)), float(low), float(high)

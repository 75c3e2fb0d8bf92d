"""How fast a submission is, judged beside its baseline and the limit of the GPU."""

from __future__ import annotations

import secrets
import statistics
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from warpbook_labs.cases.preparation import shape_of
from warpbook_labs.gpu.ratio import (
    Stopping,
    between_processes,
    compared,
    fraction,
    verdict,
)
from warpbook_labs.lab.expressions import value
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.spec import Lab, Speed
from warpbook_labs.results.device import Kind, SpeedResult, SpeedStatus
from warpbook_labs.results.measurements import LimitCard, Ratio

#: elements that are drawn; inputs are put together from pieces of them
_MOST_POOL = 1 << 20


def drawn_of_look(done: int, pairs: int) -> int | None:
    """Draw which pair up to the next look is compared on the CPU; maybe none of them.

    It takes the place of the one drawn before, so that each pair is as likely as any
    other in the end, however many there are (reservoir sampling).
    """
    if secrets.randbelow(pairs) < done:
        return None
    return done + secrets.randbelow(pairs - done)


def pool_sizes(loaded: LoadedLab, speed: Speed) -> dict[str, int]:
    """Make the timed sizes so small that no input has more elements than a pool."""
    sizes = dict(speed.sizes)

    def largest() -> int:
        return max(
            int(np.prod(shape_of(parameter, sizes), dtype=np.int64))
            for parameter in loaded.lab.parameters
            if parameter.shape
        )

    while largest() > _MOST_POOL:
        name = max(sizes, key=lambda size: sizes[size])
        sizes[name] //= 2
    return sizes


IsEnough = Callable[[list[float], list[float]], bool]


#: faster than the limit that was measured by more than the measurements may be off
_TOO_FAST = 1.05


class WrongOutput(Exception):
    """A timed call was wrong; the message is for the learner."""

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind: Kind = kind


class Times(NamedTuple):
    """What the calls took, in the order of `ratio.sides`."""

    learner_ns: list[float]
    baseline_ns: list[float]
    checked_on_host: int
    #: by `time.monotonic_ns`
    since_ns: int
    until_ns: int


class Timed(NamedTuple):
    """How fast it is, and when that was found."""

    result: SpeedResult
    flags: tuple[str, ...] = ()
    since_ns: int = 0
    until_ns: int = 0


class Judge:
    """What the lab asks, and whether it is met."""

    def __init__(self, lab: Lab, speed: Speed, card: LimitCard | None) -> None:
        self._speed = speed
        self._limit_ns: float | None = None
        #: work that reads more than it writes is faster than a copy
        self._over_copy = 1.0 if card is None else card.over_copy
        if card is not None:
            sizes = speed.sizes
            outputs = [
                parameter for parameter in lab.parameters if parameter.kind == "output"
            ]
            dtype = lab.work.dtype or (outputs or lab.parameters)[0].dtype
            work = value(lab.work.bytes, sizes), value(lab.work.flops, sizes)
            self._limit_ns = card.fastest_ns(*work, dtype)
            # the link's two ways and the GPU itself can all work at the same time
            over_link_ns = max(
                value(size, sizes) / rate * 1e9
                for size, rate in (
                    (lab.work.h2d_bytes, card.host_to_device_bytes_per_s),
                    (lab.work.d2h_bytes, card.device_to_host_bytes_per_s),
                )
            )
            if self._limit_ns is not None:
                self._limit_ns = max(self._limit_ns, over_link_ns)

    def _ratios(
        self, learner_ns: list[float], baseline_ns: list[float]
    ) -> tuple[Ratio, Ratio | None]:
        of_limit = None
        if self._limit_ns:
            of_limit = fraction(self._limit_ns, learner_ns)
        return compared(learner_ns, baseline_ns), of_limit

    def _wanted(
        self, of_baseline: Ratio, of_limit: Ratio | None
    ) -> list[tuple[Ratio, float]]:
        wanted = []
        if self._speed.of_baseline is not None:
            wanted.append((of_baseline, self._speed.of_baseline))
        if self._speed.of_limit is not None and of_limit is not None:
            wanted.append((of_limit, self._speed.of_limit))
        return wanted

    def is_enough(
        self, stopping: Stopping, learner_ns: list[float], baseline_ns: list[float]
    ) -> bool:
        """Whether more pairs would tell nothing more."""
        of_baseline, of_limit = self._ratios(learner_ns, baseline_ns)
        return stopping.is_done(of_baseline, self._wanted(of_baseline, of_limit))

    def result(self, times: Times) -> SpeedResult:
        of_baseline, of_limit = self._ratios(times.learner_ns, times.baseline_ns)
        learner_ns = statistics.median(times.learner_ns)
        baseline_ns = statistics.median(times.baseline_ns)
        of_baseline = between_processes(of_baseline, learner_ns, baseline_ns)
        if of_limit is not None:
            of_limit = between_processes(of_limit, learner_ns)
        status, message = self._judged(of_baseline, of_limit)
        return SpeedResult(
            status,
            message,
            self._speed.sizes,
            learner_ns,
            baseline_ns,
            self._limit_ns,
            of_baseline,
            of_limit,
            self._speed.of_baseline,
            self._speed.of_limit,
            len(times.learner_ns),
            times.checked_on_host,
        )

    def _judged(
        self, of_baseline: Ratio, of_limit: Ratio | None
    ) -> tuple[SpeedStatus, str]:
        if self._speed.of_limit is not None and of_limit is None:
            return "not graded", (
                "The lab asks for a part of this GPU's limit, which could not be "
                "measured."
            )
        wanted = self._wanted(of_baseline, of_limit)
        if not wanted:
            return "not graded", "The lab asks for no speed."
        said = [verdict(ratio, least) for ratio, least in wanted]
        if "slow" in said:
            return "too slow", "It is right, and slower than the lab asks."
        if "can't tell" in said:
            return "too noisy to tell", (
                "It is so near to what the lab asks that its calls, which do not all "
                "take the same time, do not tell. Submit it again."
            )
        return "fast enough", "It is as fast as the lab asks."

    def flags(self, times: Times) -> tuple[str, ...]:
        """Say what a person should look at."""
        _, of_limit = self._ratios(times.learner_ns, times.baseline_ns)
        if of_limit is None or of_limit.low <= _TOO_FAST * self._over_copy:
            return ()
        return (
            f"It takes {1 / of_limit.median:.2f} of the time that this GPU was "
            "measured to need at least: a person should look at it.",
        )

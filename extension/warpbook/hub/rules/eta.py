"""When a job in the queue will be done, as far as one can tell."""

from __future__ import annotations

from collections.abc import Sequence


def finish_times_s(
    durations_s: Sequence[float], slots: int, running_s: Sequence[float] = ()
) -> list[float]:
    """Give for each job of a queue in how many seconds it will be done.

    Args:
        durations_s: how long each is thought to take, the first of the queue first.
        slots: how many are done at the same time.
        running_s: how much longer each job that runs is thought to take.

    Returns:
        Infinity for all where there is no slot.
    """
    raise NotImplementedError


def expected_s(recent_s: Sequence[float], otherwise_s: float) -> float:
    """Estimate how long a job of a lab takes, by those that were done last."""
    raise NotImplementedError

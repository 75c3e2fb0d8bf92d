"""Runs of the unchanged and the changed cell in turns, each from the same state."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from IPython.utils.capture import CapturedIO, capture_output

from warpbook.kernel.trying.refusals import Refused
from warpbook.kernel.trying.snapshot import Snapshot
from warpbook_monitors import units
from warpbook_profiler.capture.torch_gpus import wait_for_gpu
from warpbook_profiler.compare.paired_ratio import LEAST_PAIRS
from warpbook_profiler.techniques.technique import Applied

#: even, so that what drifts meets both sides alike
MOST_PAIRS = 20
#: of them the interval is by ranks
_ENOUGH_PAIRS = 6

#: applies a change, and undoes it at the end
Changed = Callable[[], AbstractContextManager[Applied]]


@dataclass
class Times:
    """What the runs of both sides took, pair by pair."""

    unchanged_ns: list[int]
    changed_ns: list[int]


def run_once(
    snapshot: Snapshot,
    changed: Changed,
    look: Callable[[Any, CapturedIO], Any] | None = None,
) -> tuple[int, Any]:
    """Run once and put everything back; give what it took in ns, and what was seen.

    Args:
        snapshot: the state, in which everything is.
        changed: how the run is changed.
        look: is shown the last expression's value, and what was shown, before
            anything is put back.
    """
    seen = None
    try:
        with capture_output() as captured, changed() as applied:
            wait_for_gpu()
            began_ns = time.perf_counter_ns()
            value = applied.run()
            wait_for_gpu()
            took_ns = time.perf_counter_ns() - began_ns
            if look is not None:
                applied.publish()
                seen = look(value, captured)
            # before the state is put back, which may need its memory
            del value, applied
    finally:
        snapshot.restore()
    return took_ns, seen


def planned_pairs(pair_s: float, seconds: float) -> int:
    """Give how many pairs fit the time, before any is measured.

    Who looks at results and goes on until they please is wrong more often.

    Args:
        pair_s: what a run of each, and putting everything back, took.
        seconds: what the pairs may take.

    Raises:
        Refused: too few fit.
    """
    pairs = min(int(seconds / pair_s), MOST_PAIRS)
    if pairs < LEAST_PAIRS:
        needed = units.duration(LEAST_PAIRS * pair_s * 1e3)
        left = units.duration(max(seconds, 0) * 1e3)
        raise Refused(
            f"{LEAST_PAIRS} pairs of runs take {needed}, and {left} are left after "
            "those that warm it up; give more by --try-seconds."
        )
    return pairs if pairs < _ENOUGH_PAIRS else pairs // 2 * 2


def take_turns(
    snapshot: Snapshot,
    unchanged: Changed,
    changed: Changed,
    pairs: int,
    deadline_s: float,
) -> Times:
    """Run both sides in the order A, B, B, A.

    Args:
        snapshot: the state in which each run begins.
        unchanged: one side.
        changed: the other.
        pairs: of runs, as planned.
        deadline_s: runs that got slower end before all of them (monotonic time).
    """
    times = Times([], [])
    sides = ((unchanged, times.unchanged_ns), (changed, times.changed_ns))
    for pair in range(pairs):
        is_late = time.monotonic() > deadline_s
        if is_late and pair >= LEAST_PAIRS and pair % 2 == 0:
            break
        for side, noted_ns in sides if pair % 2 == 0 else sides[::-1]:
            took_ns, _ = run_once(snapshot, side)
            noted_ns.append(took_ns)
    return times

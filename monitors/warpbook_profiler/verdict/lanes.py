"""The rows of a cell's timeline, small enough to travel and to be drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpbook_profiler.events.columns import Columns, distinct
from warpbook_profiler.model.cell_profile import Lane

#: All lanes of a report together hold at most this many events ...
MAX_EVENTS = 3000
#: ... in at most this many lanes; further ones (worker threads) are left out.
MAX_LANES = 12


@dataclass(frozen=True)
class LaneEvents:
    """What is drawn: work on the GPU, calls that concern it, outermost operators."""

    on_gpu: Columns
    calls: Columns
    operators: Columns


def make_lanes(
    drawn: LaneEvents, origin_ns: int
) -> tuple[tuple[str, ...], tuple[Lane, ...], int]:
    """Give the names, the lanes with times from `origin_ns`, and how much is left out.

    Each lane keeps its longest events. The lanes share the room evenly, since
    otherwise the operators of a slow loop would push out its short kernels.
    """
    rows = _rows(drawn)
    kept_rows = rows[:MAX_LANES]
    omitted = sum(len(events) for _, events in rows[MAX_LANES:])
    room = MAX_EVENTS
    bounded: list[tuple[str, Columns]] = []
    # the short lanes first, so that what they don't need goes to the long ones
    for turn, (label, events) in enumerate(
        sorted(kept_rows, key=lambda row: len(row[1]))
    ):
        share = room // (len(kept_rows) - turn)
        longest = _longest(events, share)
        room -= len(longest)
        omitted += len(events) - len(longest)
        bounded.append((label, longest))
    order = [label for label, _ in kept_rows]
    bounded.sort(key=lambda row: order.index(row[0]))

    interned: dict[str, int] = {}
    lanes = []
    for label, events in bounded:
        name = [
            interned.setdefault(events.names[index], len(interned))
            for index in events.name
        ]
        lanes.append(
            Lane(
                label,
                tuple((events.start_ns - origin_ns).tolist()),
                tuple(events.duration_ns.tolist()),
                tuple(name),
            )
        )
    return tuple(interned), tuple(lanes), omitted


def _rows(drawn: LaneEvents) -> list[tuple[str, Columns]]:
    """Split by stream and by thread: streams first, the busiest thread next."""
    rows = []
    devices = distinct(drawn.on_gpu.device)
    for device in devices:
        on_device = drawn.on_gpu.where(drawn.on_gpu.device == device)
        prefix = f"GPU {device} stream" if len(devices) > 1 else "Stream"
        for stream in distinct(on_device.track):
            rows.append(
                (f"{prefix} {stream}", on_device.where(on_device.track == stream))
            )
    for what, events in (("Launches", drawn.calls), ("Operators", drawn.operators)):
        threads, counts = np.unique(events.track, return_counts=True)
        for rank, thread in enumerate(threads[np.argsort(-counts, kind="stable")]):
            label = what if rank == 0 else f"{what}, thread {thread}"
            rows.append((label, events.where(events.track == thread)))
    return rows


def _longest(events: Columns, count: int) -> Columns:
    if len(events) <= count:
        return events
    times = events.duration_ns
    least = np.partition(times, -count)[-count]
    chosen = times > least
    # of those that are equally long, the first
    equal = np.flatnonzero(times == least)
    chosen[equal[: count - np.count_nonzero(chosen)]] = True
    return events.where(chosen)

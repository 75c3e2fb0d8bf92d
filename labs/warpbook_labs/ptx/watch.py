"""Watches accesses: races, reads of what nobody wrote, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warpbook_labs.ptx.findings import Counts, Finding
from warpbook_labs.ptx.races import clashes_within
from warpbook_labs.ptx.reach import Ints, Place
from warpbook_labs.ptx.spaces import GLOBAL_BASE
from warpbook_labs.ptx.state import State
from warpbook_labs.ptx.traffic import global_traffic, shared_traffic
from warpbook_labs.ptx.values import Values


def _cells(place: Place, width: int, state: State) -> Iterator[tuple[Ints, int]]:
    """Give the cells of an access, with the bytes from its start."""
    size = (
        state.shared_cell_bytes if place.name == "shared" else state.global_cell_bytes
    )
    for offset in range(0, width, size):
        yield (place.at + offset) // size, offset


def count_traffic(place: Place, width: int, pc: int, state: State) -> None:
    """Count what an access asks of the memory."""
    if place.name not in ("global", "shared"):
        return
    active = np.zeros(state.lanes.count, np.bool_)
    active[place.chosen] = True
    at = np.zeros(state.lanes.count, np.int64)
    at[place.chosen] = place.at
    counts = Counts()
    if place.name == "global":
        counts.global_requests, counts.global_sectors, counts.least_global_sectors = (
            global_traffic(at, active, width)
        )
    else:
        counts.shared_requests, counts.bank_conflicts = shared_traffic(
            at, active, width
        )
    line = state.line(pc)
    state.report.counts.add(counts)
    if line is not None:
        state.report.lines.setdefault(line, Counts()).add(counts)


def tell_unwritten(place: Place, width: int, pc: int, state: State) -> None:
    """Tell of a read that meets what nobody has written."""
    written = place.space.is_written(place.at, width)
    if written.all():
        return
    at = int(np.flatnonzero(~written)[0])
    chosen = int(place.chosen[at])
    if place.name == "global":
        where = state.memory.place(GLOBAL_BASE + int(place.at[at]))
    elif place.name == "shared":
        where = f"byte {int(place.at[at]) % state.shared_stride:,} of shared memory"
    else:
        where = "a variable of its own"
    line = state.line(pc)
    on = "" if line is None else f" on line {line}"
    state.report.add(
        Finding(
            "uninitialised read",
            f"{state.lanes.name_of(int(state.lanes.thread[chosen]))} reads "
            f"{where}{on}, which nobody has written.",
            line,
        )
    )


def watch_read(
    place: Place, width: int, pc: int, state: State, is_atomic: bool
) -> None:
    """Watch a read."""
    tracker = state.shared_tracker if place.name == "shared" else state.global_tracker
    who = state.who(place.chosen, pc, is_atomic)
    for cells, _ in _cells(place, width, state):
        for race in tracker.read(cells, who):
            state.tell_race(race, place.name == "shared")


def watch_write(
    place: Place, values: list[Values], pc: int, state: State, is_atomic: bool
) -> None:
    """Watch a write, before it is done."""
    tracker = state.shared_tracker if place.name == "shared" else state.global_tracker
    who = state.who(place.chosen, pc, is_atomic)
    item = values[0].itemsize
    for cells, offset in _cells(place, item * len(values), state):
        part = values[offset // item]
        changes = np.ones(len(cells), np.bool_)
        if not is_atomic:
            within = clashes_within(cells, part, who)
            if within is not None:
                state.tell_race(within, place.name == "shared")
            old = place.space.read(place.at + offset // item * item, part.dtype)
            bits = f"u{item}"
            changes = old.view(bits) != part.view(bits)
        for race in tracker.write(cells, who, changes):
            state.tell_race(race, place.name == "shared")

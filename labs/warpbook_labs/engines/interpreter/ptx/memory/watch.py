"""Watches accesses: races, what nobody wrote, who wrote last, and what they cost.

Counts what a warp's access asks of the memory.

Global memory moves sectors of 32 bytes. Shared memory has 32 banks, each a word of
four bytes wide; accesses of 8 and 16 bytes are made for half and quarter warps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.interpreter.ptx.memory.races import (
    ATOMIC_IN_BLOCK,
    Who,
    clashes_within,
)
from warpbook_labs.engines.interpreter.ptx.memory.reach import Ints, Place
from warpbook_labs.engines.interpreter.ptx.memory.spaces import GLOBAL_BASE, Buffer
from warpbook_labs.engines.interpreter.ptx.memory.state import State
from warpbook_labs.engines.interpreter.ptx.text.errors import on_line
from warpbook_labs.engines.interpreter.ptx.text.values import Bools, Values
from warpbook_labs.results.findings import Counts, Finding

Offsets = NDArray[np.int64]

SECTOR_BYTES = 32
_BANKS = 32
_WORD_BYTES = 4
_WARP = 32
#: of a lane that does nothing, also with the words beside it
_NO_WORD = -1000


class GlobalTraffic(NamedTuple):
    """Of all warps of one instruction."""

    requests: int
    sectors: int
    #: that would do if the same bytes lay side by side
    least_sectors: int


class SharedTraffic(NamedTuple):
    """Of all warps of one instruction."""

    requests: int
    #: passes beyond those that the size of the access needs
    conflicts: int


def global_traffic(at: Offsets, active: Bools, width: int) -> GlobalTraffic:
    """Count the sectors of an access.

    Args:
        at: of each lane, where it reads or writes.
        width: bytes of each.
    """
    requests = _warps(active)
    distinct = _distinct(at // SECTOR_BYTES, active)
    places = _distinct(at, active)
    least = -(-places * width // SECTOR_BYTES)
    return GlobalTraffic(requests, int(distinct.sum()), int(least.sum()))


def _warps(active: Bools) -> int:
    return int(active.reshape(-1, _WARP).any(axis=1).sum())


def _distinct(numbers: Offsets, active: Bools) -> NDArray[np.int64]:
    """Count the different numbers of each warp's active lanes."""
    rows = np.where(active, numbers, -1).reshape(-1, _WARP)
    rows.sort(axis=1)
    changes = (rows[:, 1:] != rows[:, :-1]).sum(axis=1) + 1
    counts: NDArray[np.int64] = changes - (rows[:, 0] == -1)
    return counts


def shared_traffic(at: Offsets, active: Bools, width: int) -> SharedTraffic:
    """Count the passes of an access beyond one for each group of lanes."""
    words = max(width // _WORD_BYTES, 1)
    lanes = _WARP // words
    word = np.where(active, at // _WORD_BYTES, _NO_WORD)
    rows = (word[:, None] + np.arange(words)).reshape(-1, lanes * words)
    rows.sort(axis=1)
    # each word once for each group: lanes that want the same are served together
    is_new = rows >= 0
    is_new[:, 1:] &= rows[:, 1:] != rows[:, :-1]
    bank = rows % _BANKS + np.arange(len(rows))[:, None] * _BANKS
    passes = np.bincount(bank[is_new], minlength=len(rows) * _BANKS)
    most = passes.reshape(-1, _BANKS).max(axis=1)
    return SharedTraffic(_warps(active), int(np.maximum(most - 1, 0).sum()))


def _cells(place: Place, width: int, state: State) -> Iterator[tuple[Ints, int]]:
    """Give the cells of an access, with the bytes from its start."""
    size = (
        state.shared_cell_bytes if place.name == "shared" else state.global_cell_bytes
    )
    for offset in range(0, width, size):
        yield (place.at + offset) // size, offset


def count_traffic(
    place: Place, width: int, pc: int, state: State, atomics: int = 0
) -> None:
    """Count an access, of whose lanes each does so many atomics."""
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
        counts.global_atomics = atomics * len(place.at)
    else:
        counts.shared_requests, counts.bank_conflicts = shared_traffic(
            at, active, width
        )
    line = state.line(pc)
    state.report.counts.add(counts)
    if line is not None:
        state.report.lines.setdefault(line, Counts()).add(counts)


def tell_unwritten(place: Place, width: int, pc: int, state: State) -> None:
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
    state.report.add(
        Finding(
            "uninitialised read",
            f"{state.lanes.words_of(chosen)} reads {where}{on_line(line)}, which "
            "nobody has written.",
            line,
        )
    )


def _tell_early(place: Place, width: int, pc: int, state: State) -> None:
    """Tell of an access to shared memory into which something is being copied."""
    early = state.copies.meets(place.at, width)
    if early is None:
        return
    line, other = state.line(pc), state.line(early.pc)
    first = state.lanes.words_of(place.chosen[early.number])
    second = state.lanes.words_of(early.copier)
    where = state.shared_place(int(place.at[early.number]))
    state.report.add(
        Finding(
            "unfinished copy",
            f"{first} uses {where}{on_line(line)}, into which {second} copies by "
            f"`cp.async`{on_line(other)} without having waited for it "
            "(`cp.async.wait_group`).",
            line,
        )
    )


def watch_read(place: Place, width: int, pc: int, state: State, strength: int) -> None:
    tracker = state.shared_tracker if place.name == "shared" else state.global_tracker
    who = state.who(place.chosen, pc, strength)
    is_shared = place.name == "shared"
    if is_shared:
        _tell_early(place, width, pc, state)
    for number, (cells, _) in enumerate(_cells(place, width, state)):
        if strength and not number:
            state.causality.read(place.chosen, is_shared, cells)
        for race in tracker.read(cells, who):
            state.tell_race(race, is_shared)


def tell_flags(place: Place, state: State, wrote: Bools | None = None) -> None:
    """Note a strong write, which may be a flag for others, after it is done.

    Args:
        wrote: of an atomic operation: for which threads it did.
    """
    is_shared = place.name == "shared"
    size = state.shared_cell_bytes if is_shared else state.global_cell_bytes
    chosen, cells = place.chosen, place.at // size
    if wrote is not None:
        state.causality.read(chosen, is_shared, cells)
        chosen, cells = chosen[wrote], cells[wrote]
    state.causality.wrote(chosen, is_shared, cells, wrote is not None)


def _tell_within(
    cells: Ints, values: Values, who: Who, place: Place, state: State
) -> None:
    why: Literal["", "volatile", "scope"] = ""
    if who.strength:
        why = "scope" if who.strength == ATOMIC_IN_BLOCK else "volatile"
    within = clashes_within(cells, values, who, why)
    if within is not None:
        state.tell_race(within, place.name == "shared")


def watch_write(
    place: Place, values: list[Values], pc: int, state: State, strength: int
) -> None:
    tracker = state.shared_tracker if place.name == "shared" else state.global_tracker
    who = state.who(place.chosen, pc, strength)
    if strength:
        # who reads a flag knows of it, and not only of what was before its fence
        who = dataclasses.replace(who, time=state.causality.as_flag(place.chosen))
    item = values[0].itemsize
    if place.name == "shared":
        _tell_early(place, item * len(values), pc, state)
    for cells, offset in _cells(place, item * len(values), state):
        part = values[offset // item]
        changes = np.ones(len(cells), np.bool_)
        if strength == ATOMIC_IN_BLOCK and place.name == "global":
            # at the same time they disturb each other if they are of other blocks
            _tell_within(cells, who.thread // state.lanes.per_block, who, place, state)
        elif strength < ATOMIC_IN_BLOCK:
            _tell_within(cells, part, who, place, state)
            old = place.space.read(place.at + offset // item * item, part.dtype)
            bits = f"u{item}"
            changes = old.view(bits) != part.view(bits)
        for race in tracker.write(cells, who, changes):
            state.tell_race(race, place.name == "shared")


_LINE_WORD_BYTES = 4
_MOST_LINE = 2**16 - 1


class Writers:
    """The lines, over the launches of a program."""

    def __init__(self) -> None:
        """Begin with nothing written."""
        #: by word; 0 is no line that is known
        self._lines = np.zeros(0, np.uint16)

    def note(self, state: State) -> None:
        """Take over what a launch has written, where it has."""
        words = len(state.memory.space.data) // _LINE_WORD_BYTES + 1
        self._lines.resize(max(words, len(self._lines)), refcheck=False)
        code = state.linked.code
        line_of = np.array(
            [min(instruction.line or 0, _MOST_LINE) for instruction in code] or [0]
        )
        cells, places = state.global_tracker.writers()
        at = cells * state.global_cell_bytes // _LINE_WORD_BYTES
        self._lines[at] = line_of[places]

    def lines(self, buffer: Buffer) -> NDArray[np.uint16]:
        """Give the line of each word of a buffer, from its beginning on."""
        begin = buffer.address - GLOBAL_BASE
        starts = np.arange(begin, begin + buffer.size_bytes, _LINE_WORD_BYTES)
        at = starts // _LINE_WORD_BYTES
        if not len(self._lines):
            return np.zeros(len(at), np.uint16)
        return self._lines[np.minimum(at, len(self._lines) - 1)]

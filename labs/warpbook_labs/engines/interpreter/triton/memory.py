"""The memory that a Triton kernel is given without a GPU, and who touches what there.

Triton's interpreter reads and writes real addresses, so each access is looked at before
it is made: what lies beyond a buffer is told and left out. Zones of a known pattern lie
between the buffers and show what would have got past that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.cases.execution import Memory
from warpbook_labs.engines.interpreter.triton.locks import Counters, Locks
from warpbook_labs.results.findings import Counts, Finding, Kind, Report, written_input

_ZONE_BYTES, _ALIGNMENT, _PATTERN = 4096, 256, 0xA5
_SECTOR_BYTES, _WARP = 32, 32
#: of a byte: nobody, and more than one
_NOBODY, _MANY = -1, -2

Addresses = NDArray[np.uint64]
Mask = NDArray[np.bool_]
Offsets = NDArray[np.int64]
Program = tuple[int, int, int]


@dataclass
class _Spot:
    """Where and by whom an access is made."""

    program: Program = (-1, 0, 0)
    #: of what the program does up to its next barrier; later ones are larger
    number: int = 0
    line: int | None = None


@dataclass
class TritonMemory:
    """Buffers in one piece of memory, with zones between them."""

    given: Sequence[Memory]

    def __post_init__(self) -> None:
        """Lay the buffers out."""
        self._starts, at = [], _ZONE_BYTES
        for memory in self.given:
            self._starts.append(at)
            room = -(-memory.size_bytes // _ALIGNMENT) * _ALIGNMENT
            at += room + _ZONE_BYTES
        held = np.full(at + _ALIGNMENT, _PATTERN, np.uint8)
        skipped = -held.ctypes.data % _ALIGNMENT
        self._held = held[skipped : skipped + at]
        self._base = self._held.ctypes.data
        self._ends = [
            start + memory.size_bytes
            for start, memory in zip(self._starts, self.given, strict=True)
        ]
        self._zones = np.ones(at, np.bool_)
        self._written = np.zeros(at, np.bool_)
        for start, end, memory in zip(
            self._starts, self._ends, self.given, strict=True
        ):
            self._zones[start:end] = False
            if memory.data is not None:
                self._held[start:end] = np.frombuffer(memory.data, np.uint8)
                self._written[start:end] = True
        #: the line that wrote each byte last; 0 if not known
        self._lines = np.zeros(at, np.uint16)
        self._programs: dict[int, Program] = {}
        self.begin(Report())

    def begin(self, report: Report, grid: Program = (1, 1, 1)) -> None:
        """Begin a launch of a grid, whose findings go into a report."""
        self.report = report
        self._sides = max((at for at in range(1, 4) if grid[at - 1] > 1), default=1)
        self._writer = np.full(len(self._held), _NOBODY, np.int64)
        self._reader = np.full(len(self._held), _NOBODY, np.int64)
        self._programs.clear()
        self.locks, self._counters = Locks(len(self._held)), Counters()
        self.spot = _Spot()
        #: the first number of the program that runs
        self._first = 0

    def at(self, program: Program, line: int | None) -> None:
        """Say whose accesses follow, and where in the source."""
        if program != self.spot.program:
            # one program runs after another
            self._first = self._begin_part(program)
            self.locks.runs(self._first)
            self._counters.runs()
        self.spot = _Spot(program, self.spot.number, line)

    def meet_barrier(self) -> None:
        """Say that all threads of the program have done what comes before."""
        self._begin_part(self.spot.program)
        self.locks.meet_barrier()

    def count(self, address: int) -> None:
        """Say that the program has come to an atomic counter that orders accesses."""
        self._counters.come(address - self._base, self._first, self.spot.number)

    def _begin_part(self, program: Program) -> int:
        number = len(self._programs)
        self._programs[number] = program
        self.spot = _Spot(program, number, self.spot.line)
        return number

    def address(self, name: str) -> int:
        return self._base + self._starts[self._named(name)]

    def left(self) -> tuple[Memory, ...]:
        """Give what the buffers hold in the end, of those that are told."""
        memories = []
        for start, end, memory in zip(
            self._starts, self._ends, self.given, strict=True
        ):
            if not memory.is_told:
                continue
            unwritten = np.flatnonzero(~self._written[start:end])
            first = int(unwritten[0]) if len(unwritten) else None
            data = self._held[start:end].tobytes()
            lines = self._lines[start:end:4].astype("<u2").tobytes()
            memories.append(
                Memory(
                    memory.name,
                    memory.size_bytes,
                    data,
                    first_unwritten=first,
                    writer_lines=lines,
                )
            )
        return tuple(memories)

    def look_at_zones(self) -> None:
        """Tell what was written between the buffers, whoever did it."""
        touched = np.flatnonzero(self._zones & (self._held != _PATTERN))
        if len(touched):
            where = self._place(int(touched[0]), 1)
            self.report.add(
                Finding("out of bounds", f"Something was written {where}.", None)
            )

    def look_at_inputs(self) -> None:
        """Tell of inputs that hold something else than at first."""
        for start, end, memory in zip(
            self._starts, self._ends, self.given, strict=True
        ):
            if memory.is_input and self._held[start:end].tobytes() != memory.data:
                line = int(self._lines[start:end].max(initial=0))
                self.report.add(written_input(memory.name, line))

    def read(self, addresses: Addresses, mask: Mask, width: int) -> Mask:
        """Look at a load; give the mask of what may be loaded."""
        inside, at = self._within("reads", addresses, mask, width)
        if len(at):
            cells = self._cells(at, width)
            self._race("reads", cells, self._writer, "wrote", width)
            fresh = cells[~self._written[cells]]
            if len(fresh):
                where = self._place(int(fresh[0]), width)
                self._find("uninitialised read", f"reads {where}, which nobody wrote")
            reader = self._reader[cells]
            alone = (reader == _NOBODY) | (reader >= self._first)
            alone |= self.locks.excused(self.locks.read, cells)
            self.locks.note(self.locks.read, cells, reader == _NOBODY)
            self._reader[cells] = np.where(alone, self.spot.number, _MANY)
        return inside

    def write(self, addresses: Addresses, values: NDArray[Any], mask: Mask) -> Mask:
        """Look at a store; give the mask of what may be stored."""
        width = values.dtype.itemsize
        inside, at = self._within("writes", addresses, mask, width)
        if len(at):
            self._twice(at, np.broadcast_to(values, inside.shape)[inside], width)
            cells = self._cells(at, width)
            self._race("writes", cells, self._writer, "wrote, too", width)
            self._race("writes", cells, self._reader, "reads", width)
            is_new = self._writer[cells] == _NOBODY
            self.locks.note(self.locks.written, cells, is_new)
            self._writer[cells] = self.spot.number
            self._written[cells] = True
            self._note_line(cells)
            stored = np.broadcast_to(values, inside.shape)[inside]
            self.change_locks(addresses[inside], stored, does_release=False)
        return inside

    def update(self, addresses: Addresses, mask: Mask, width: int) -> Mask:
        """Look at an atomic; give the mask of what may be done."""
        inside, at = self._within("updates", addresses, mask, width)
        if len(at):
            self._add(Counts(global_atomics=len(at)))
            cells = self._cells(at, width)
            self._race("updates", cells, self._writer, "wrote", width)
            self._race("updates", cells, self._reader, "reads", width)
            fresh = cells[~self._written[cells]]
            if len(fresh):
                where = self._place(int(fresh[0]), width)
                self._find("uninitialised read", f"updates {where}, which nobody wrote")
            # a store of before stays noted: an atomic of this program orders no other's
            self._written[cells] = True
            self._note_line(cells)
        return inside

    def take_lock(self, address: int, free: object) -> None:
        """Note that the program has taken what may be a lock."""
        self.locks.take(address - self._base, free)

    def change_locks(
        self, addresses: Addresses, values: NDArray[Any], does_release: bool
    ) -> None:
        """Look at a change of what may be locks; `values` stand there from now on."""
        if not self.locks.known:
            return
        places = (addresses - np.uint64(self._base)).astype(np.int64)
        for at in np.flatnonzero(np.isin(places, list(self.locks.known))):
            place = int(places[at])
            if not self.locks.change(place, values[at].item(), does_release):
                where = self._place(place, 1)
                self._find("race", f"changes the lock {where}, which it does not hold")

    def _note_line(self, cells: Offsets) -> None:
        line = self.spot.line or 0
        self._lines[cells] = line if line < 2**16 else 0

    def _named(self, name: str) -> int:
        return [memory.name for memory in self.given].index(name)

    def _cells(self, at: Offsets, width: int) -> Offsets:
        return (at[:, None] + np.arange(width)).ravel()

    def _within(
        self, does: str, addresses: Addresses, mask: Mask, width: int
    ) -> tuple[Mask, Offsets]:
        """Tell what lies beyond; give the mask of the rest and where that is."""
        mask = np.broadcast_to(mask, addresses.shape)
        # what is far below the base wraps round to far above it
        at = (addresses - np.uint64(self._base)).astype(np.int64)
        near = np.searchsorted(self._starts, at, "right") - 1
        ends = np.asarray(self._ends, np.int64)[np.maximum(near, 0)]
        good = mask & (near >= 0) & (at + width <= ends)
        bad = at[mask & ~good]
        if len(bad):
            more = f"{len(bad) - 1:,} more element{'s' if len(bad) > 2 else ''}"
            many = f"; and {more} beyond it" if len(bad) > 1 else ""
            where = self._place(int(bad[0]), width)
            self._find("out of bounds", f"{does} {where}{many}")
        crooked = good & (at % width != 0)
        if crooked.any():
            where = self._place(int(at[crooked][0]), width)
            self._find(
                "misaligned", f"{does} {width} bytes at no multiple of it, {where}"
            )
        self._count(at[good], width)
        return good, at[good]

    def _count(self, at: Offsets, width: int) -> None:
        sectors = len(np.unique(at // _SECTOR_BYTES))
        self._add(
            Counts(
                global_requests=-(-len(at) // _WARP),
                global_sectors=sectors,
                least_global_sectors=-(-len(at) * width // _SECTOR_BYTES),
            )
        )

    def _add(self, counts: Counts) -> None:
        self.report.counts.add(counts)
        if self.spot.line is not None:
            self.report.lines.setdefault(self.spot.line, Counts()).add(counts)

    def _twice(self, at: Offsets, values: NDArray[Any], width: int) -> None:
        """Tell a store whose elements go to one place with different values."""
        order = np.argsort(at, kind="stable")
        same = np.flatnonzero(at[order][1:] == at[order][:-1])
        held = values[order].tobytes()
        for element in same:
            first, second = element * width, (element + 1) * width
            if held[first : first + width] != held[second : second + width]:
                where = self._place(int(at[order][element]), width)
                self._find("race", f"writes {where} twice at once, with other values")
                return

    def _race(
        self, does: str, cells: Offsets, other: NDArray[np.int64], did: str, width: int
    ) -> None:
        """Tell a cell that another program touched in the same launch."""
        others = other[cells]
        alien = (others != _NOBODY) & (others < self._first)
        if alien.any():
            is_written = other is self._writer
            under = self.locks.written if is_written else self.locks.read
            alien &= ~self.locks.excused(under, cells)
            alien &= ~self._counters.ordered(others)
        if not alien.any():
            return
        first = int(np.flatnonzero(alien)[0])
        whose = "others" if others[first] == _MANY else self._whose(int(others[first]))
        where = self._place(int(cells[first]) // width * width, width)
        verb = "read" if did == "reads" and whose == "others" else did
        self._find(
            "race",
            f"{does} {where}, which {whose} {verb}: nothing says which comes first",
        )

    def _whose(self, number: int) -> str:
        return self._words(self._programs.get(number, (number, 0, 0)))

    def _words(self, program: Program) -> str:
        """Name a program by as many numbers as its grid has sides."""
        place = ", ".join(str(index) for index in program[: self._sides])
        return f"program ({place})" if self._sides > 1 else f"program {place}"

    def _place(self, at: int, width: int) -> str:
        """Name a byte by the buffer that it is in, or nearest to."""
        distances = [
            max(start - at, at - (end - 1), 0)
            for start, end in zip(self._starts, self._ends, strict=True)
        ]
        nearest = int(np.argmin(distances))
        memory, start = self.given[nearest], self._starts[nearest]
        size = np.dtype(memory.dtype).itemsize
        element, length = (at - start) // size, memory.size_bytes // size
        where = f"`{memory.name}[{element}]`"
        if 0 <= at - start <= memory.size_bytes - width:
            return where
        if abs(element) > 1 << 40:
            return "far from every buffer"
        return f"{where}, and `{memory.name}` has {length:,} elements"

    def _find(self, kind: Kind, what: str) -> None:
        words = self._words(self.spot.program)
        self.report.add(
            Finding(kind, f"{words[0].upper()}{words[1:]} {what}.", self.spot.line)
        )

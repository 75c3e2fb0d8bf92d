"""What the instructions of a running kernel share, and copies not yet waited for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import Lanes
from warpbook_labs.engines.interpreter.ptx.memory.causality import (
    Causality,
    Clock,
    joined,
)
from warpbook_labs.engines.interpreter.ptx.memory.races import Race, Tracker, Who
from warpbook_labs.engines.interpreter.ptx.memory.spaces import (
    GLOBAL_BASE,
    Memory,
    Space,
)
from warpbook_labs.engines.interpreter.ptx.text.errors import on_line
from warpbook_labs.engines.interpreter.ptx.text.loops import Polling
from warpbook_labs.engines.interpreter.ptx.text.program import Linked, Register
from warpbook_labs.engines.interpreter.ptx.text.values import Bools
from warpbook_labs.results.findings import Finding, Report

Ints = NDArray[np.int64]


@dataclass
class Batch:
    """Copies of one instruction that have begun."""

    lanes: Ints
    #: of each: which group of its thread's
    groups: Ints
    #: of each: the bytes of shared memory where it begins
    at: Ints
    size_bytes: int
    pc: int


class Early(NamedTuple):
    """Of an access: which of its places meets what copy too early."""

    number: int
    copier: int
    pc: int


class Copies:
    """The copies of the threads that run now."""

    def __init__(self, lanes: int) -> None:
        #: of each lane: groups that it has closed
        self._closed: Ints = np.zeros(lanes, np.int64)
        self._pending: list[Batch] = []

    def begin(self, lanes: Ints, at: Ints, size_bytes: int, pc: int) -> None:
        groups = self._closed[lanes].copy()
        self._pending.append(Batch(lanes, groups, at, size_bytes, pc))

    def close(self, lanes: Ints) -> None:
        """Make a group of what these threads have begun."""
        self._closed[lanes] += 1

    def wait(self, lanes: Ints, left: int) -> list[Batch]:
        """Have threads wait for all but their last groups; give what arrived."""
        waits = np.zeros(len(self._closed), np.bool_)
        waits[lanes] = True
        kept: list[Batch] = []
        arrived: list[Batch] = []
        for batch in self._pending:
            done = waits[batch.lanes]
            done &= batch.groups < self._closed[batch.lanes] - left
            for chosen, to in ((done, arrived), (~done, kept)):
                if chosen.any():
                    to.append(
                        Batch(
                            batch.lanes[chosen],
                            batch.groups[chosen],
                            batch.at[chosen],
                            batch.size_bytes,
                            batch.pc,
                        )
                    )
        self._pending = kept
        return arrived

    def forget(self) -> None:
        self._closed[:] = 0
        self._pending = []

    def meets(self, at: Ints, width: int) -> Early | None:
        """Find an access to where something is being copied.

        Args:
            at: bytes of shared memory where accesses begin.
            width: bytes of each.
        """
        for batch in self._pending:
            order = np.argsort(batch.at)
            nearest = np.searchsorted(batch.at[order], at + width) - 1
            near = order[np.maximum(nearest, 0)]
            early = (nearest >= 0) & (batch.at[near] + batch.size_bytes > at)
            early &= batch.at[near] < at + width
            if early.any():
                number = int(np.flatnonzero(early)[0])
                return Early(number, int(batch.lanes[near[number]]), batch.pc)
        return None


@dataclass
class Phases:
    """A barrier in shared memory: arrivals that it waits for, and its phase."""

    count: int
    left: int
    phase: int = 0
    #: what those told who arrived in this phase, and all who did in those before
    arriving: list[Clock | None] = field(default_factory=list)
    arrived: Clock | None = None

    def arrive(self, threads: int) -> bool:
        """Have so many arrive; the last of them ends the phase, which is told."""
        self.left -= threads
        if self.left > 0:
            return False
        self.phase, self.left = self.phase + 1, self.count
        return True

    def tell(self, clock: Clock, is_last: bool) -> None:
        """Note what arrivals told, of which one may have ended the phase."""
        self.arriving.append(clock)
        if is_last:
            self.arrived = joined((self.arrived, *self.arriving))
            self.arriving.clear()


@dataclass
class State:
    """One launch: its program, its threads and all of their memory."""

    linked: Linked
    lanes: Lanes
    memory: Memory
    #: of all slots, and of all lanes, one after the other
    shared: Space
    local: Space
    #: that a block has
    shared_bytes: int
    #: bytes of each slot, and of each lane, with what fills them up
    shared_stride: int
    local_stride: int
    report: Report
    #: bytes of a cell that is watched for races
    global_cell_bytes: int
    shared_cell_bytes: int
    global_tracker: Tracker
    shared_tracker: Tracker
    #: by name: what the kernel was given
    parameters: dict[str, bytes]
    #: where the program's own global variables are
    variables: dict[str, int]
    #: where constant memory begins and ends
    constants: tuple[int, int]
    #: registers that some instruction reads
    read_registers: frozenset[str]
    #: what waits for other threads
    polling: Polling
    #: what comes before what, beside what the trackers of memory know
    causality: Causality
    #: the blocks that come last in the grid have begun first
    is_reversed: bool = False
    #: the line of a barrier at which more threads of a block waited than it counts
    crowded_line: int | None = None
    #: what is mixed into a number that a shuffle takes from a thread that gives none
    poison: int = 0
    #: the first shuffle that did so, if it matters
    from_nobody: Finding | None = None
    #: asynchronous ones
    copies: Copies = field(init=False)
    #: by their bytes of shared memory
    mbarriers: dict[int, Phases] = field(default_factory=dict)
    #: threads that have not ended
    alive: Bools = field(init=False)

    def __post_init__(self) -> None:
        """Start without any threads."""
        self.copies = Copies(self.lanes.count)
        self.alive = np.zeros(self.lanes.count, np.bool_)

    def line(self, pc: int) -> int | None:
        return self.linked.code[pc].line

    def who(self, chosen: NDArray[np.int64], pc: int, strength: int) -> Who:
        causality = self.causality
        return Who(
            chosen,
            self.lanes.thread[chosen],
            causality.block_epoch[chosen],
            causality.warp_epoch[chosen],
            causality.time[chosen],
            pc,
            strength,
        )

    def active(self, mask: Bools | None) -> Bools:
        return np.ones(self.lanes.count, np.bool_) if mask is None else mask

    def chosen(self, mask: Bools | None) -> NDArray[np.int64]:
        if mask is None:
            return np.arange(self.lanes.count)
        return np.flatnonzero(mask)

    def is_read(self, operand: object) -> bool:
        return isinstance(operand, Register) and operand.name in self.read_registers

    def read_from_nobody(self, lane: int, sources: NDArray[np.int64], pc: int) -> None:
        """Note that a lane shuffles a number from one that does not take part."""
        if self.from_nobody is not None:
            return
        line, source = self.line(pc), int(sources[lane])
        self.from_nobody = Finding(
            "inactive lane",
            f"{self.lanes.words_of(lane)} takes by a shuffle{on_line(line)} the number "
            f"of lane {source} of its warp, which does not take part: it has ended, "
            "does not exist or is not in the mask. What it gets is undefined, and the "
            "result depends on it.",
            line,
        )

    def tell_race(self, race: Race, is_shared: bool) -> None:
        words = {True: "writes", False: "reads"}
        if is_shared:
            place = self.shared_place(race.cell * self.shared_cell_bytes)
        else:
            at = GLOBAL_BASE + race.cell * self.global_cell_bytes
            place = self.memory.place(at)
        name = self.lanes.name_of
        first, second = self.line(race.first_pc), self.line(race.second_pc)
        self.report.add(
            Finding(
                "race",
                f"{name(race.second_thread)} {words[race.second_wrote]} {place}"
                f"{on_line(second)}, and {name(race.first_thread)} "
                f"{words[race.first_wrote]} it{on_line(first)}: nothing says who comes "
                f"first.{_WHY[race.why]}{self._crowded()}",
                second,
            )
        )

    def _crowded(self) -> str:
        if self.crowded_line is None:
            return ""
        return (
            f" At the barrier on line {self.crowded_line} more threads wait than it "
            "counts: which of them it releases together is undefined."
        )

    def shared_place(self, at: int) -> str:
        """Say in words which byte of shared memory this is."""
        inside = at % self.shared_stride
        for name, placed in self.linked.shared.items():
            size = placed.variable.size_bytes or self.shared_bytes - placed.offset
            if placed.offset <= inside < placed.offset + size:
                plain = plain_name(name)
                return f"byte {inside - placed.offset:,} of the shared `{plain}`"
        return f"byte {inside:,} of shared memory"


_WHY = {
    "": "",
    "volatile": " `volatile` does not: it makes the compiler read and write each time, "
    "and orders no threads.",
    "no fence": " The second has seen a flag, but does no `__threadfence()` after it.",
    "scope": " An atomic operation is one for its block alone (`_block`).",
}


def plain_name(name: str) -> str:
    """Give the name that a variable has in the source, of one within a function."""
    mangled = re.search(r"^_ZZ.*E(\d+)(.*?)(?:_\d+)?$", name.split("/")[0])
    if mangled is None:
        return name.split("/")[0]
    return mangled[2][: int(mangled[1])]

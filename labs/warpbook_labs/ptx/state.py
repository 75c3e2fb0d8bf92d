"""What the instructions of a running kernel share."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.ptx.findings import Finding, Report
from warpbook_labs.ptx.lanes import WARP, Lanes
from warpbook_labs.ptx.link import Linked
from warpbook_labs.ptx.program import Register
from warpbook_labs.ptx.races import Race, Tracker, Who
from warpbook_labs.ptx.spaces import GLOBAL_BASE, Memory, Space
from warpbook_labs.ptx.values import Bools


@dataclass
class State:
    """One launch: its program, its threads and all of their memory."""

    linked: Linked
    lanes: Lanes
    memory: Memory
    #: of all slots, and of all lanes, one after the other
    shared: Space
    local: Space
    #: bytes of each slot, and of each lane
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
    #: registers that some instruction reads
    read_registers: frozenset[str]
    block_epoch: NDArray[np.int32] = field(init=False)
    warp_epoch: NDArray[np.int32] = field(init=False)

    def __post_init__(self) -> None:
        """Start before all barriers."""
        self.block_epoch = np.zeros(self.lanes.count, np.int32)
        self.warp_epoch = np.zeros(self.lanes.count, np.int32)

    def line(self, pc: int) -> int | None:
        """Give the line of the source."""
        return self.linked.code[pc].line

    def who(self, chosen: NDArray[np.int64], pc: int, is_atomic: bool) -> Who:
        """Give the threads of an access."""
        return Who(
            self.lanes.thread[chosen],
            self.block_epoch[chosen],
            self.warp_epoch[chosen],
            pc,
            is_atomic,
        )

    def active(self, mask: Bools | None) -> Bools:
        """Give the lanes that are meant; None is all."""
        return np.ones(self.lanes.count, np.bool_) if mask is None else mask

    def chosen(self, mask: Bools | None) -> NDArray[np.int64]:
        """Give the positions of the lanes that are meant."""
        if mask is None:
            return np.arange(self.lanes.count)
        return np.flatnonzero(mask)

    def is_read(self, operand: object) -> bool:
        """Tell whether anything reads what an instruction gives."""
        return isinstance(operand, Register) and operand.name in self.read_registers

    def warp_barrier(self, mask: Bools | None) -> None:
        """Put in order what these threads' warps did before and do after."""
        if mask is None:
            self.warp_epoch += 1
        else:
            rows = mask.reshape(-1, WARP).any(axis=1)
            self.warp_epoch.reshape(-1, WARP)[rows] += 1

    def tell_race(self, race: Race, is_shared: bool) -> None:
        """List two accesses without an order."""
        words = {True: "writes", False: "reads"}
        if is_shared:
            place = self._shared_place(race.cell * self.shared_cell_bytes)
        else:
            at = GLOBAL_BASE + race.cell * self.global_cell_bytes
            place = self.memory.place(at)
        name = self.lanes.name_of
        first, second = self.line(race.first_pc), self.line(race.second_pc)
        self.report.add(
            Finding(
                "race",
                f"{name(race.second_thread)} {words[race.second_wrote]} {place}"
                f"{_on(second)}, and {name(race.first_thread)} "
                f"{words[race.first_wrote]} it{_on(first)}: nothing says who comes "
                "first.",
                second,
            )
        )

    def _shared_place(self, at: int) -> str:
        inside = at % self.shared_stride
        for name, placed in self.linked.shared.items():
            size = placed.variable.size_bytes or self.shared_stride - placed.offset
            if placed.offset <= inside < placed.offset + size:
                plain = plain_name(name)
                return f"byte {inside - placed.offset:,} of the shared `{plain}`"
        return f"byte {inside:,} of shared memory"


def plain_name(name: str) -> str:
    """Give the name that a variable has in the source, of one within a function."""
    mangled = re.search(r"^_ZZ.*E(\d+)(.*?)(?:_\d+)?$", name.split("/")[0])
    if mangled is None:
        return name.split("/")[0]
    return mangled[2][: int(mangled[1])]


def _on(line: int | None) -> str:
    return "" if line is None else f" on line {line}"

"""Runs the threads of some blocks: who goes next, who waits, who has ended.

Of all threads that can go on, those at the lowest instruction go first, together. So
threads that went different ways meet again where the ways do, as compilers lay code
out in that order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.ptx.errors import Fault, TooLong
from warpbook_labs.ptx.findings import Counts, Finding
from warpbook_labs.ptx.lanes import WARP
from warpbook_labs.ptx.program import Instruction
from warpbook_labs.ptx.state import State
from warpbook_labs.ptx.steps import Code
from warpbook_labs.ptx.values import Bools
from warpbook_labs.ptx.warp import is_warp_wide, members

#: after so many turns those who wait behind get one, or a lock would never be freed
_FAIR_TURNS = 4096


@dataclass
class Budget:
    """How many instructions may still be run, each for many threads at once."""

    left: int
    #: tells whether there is no time left
    is_over: Callable[[], bool] = lambda: False
    #: threads' instructions and warps', by the stretch of code
    stretches: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    def spend(
        self, begin: int, end: int, warps: int, threads: int, line: int | None
    ) -> None:
        """Take a stretch's instructions, which begin on this line of the source.

        Raises:
            TooLong: none are left, or no time.
        """
        self.left -= end - begin
        if self.left < 0 or self.is_over():
            raise TooLong(line)
        known = self.stretches.setdefault((begin, end), [0, 0])
        known[0] += warps
        known[1] += threads


class Schedule:
    """The threads of the blocks that run now."""

    def __init__(self, code: Code, state: State, budget: Budget, works: Bools) -> None:
        """Start all threads that have work."""
        self._code, self._state, self._budget = code, state, budget
        count = state.lanes.count
        self._pc: NDArray[np.int32] = np.zeros(count, np.int32)
        self._alive = works.copy()
        #: threads that wait for others of their warp, or of their block
        self._parked = np.zeros(count, np.bool_)
        self._at_barrier = np.zeros(count, np.bool_)
        #: threads that their block began with
        per_block = state.lanes.per_block
        self._begun = works.reshape(-1, per_block).sum(axis=1)
        self._turn = 0

    def run(self) -> None:
        """Go on until all have ended.

        Raises:
            Fault: they never can, or one of them did what ends a kernel.
            TooLong: they take too long.
        """
        while True:
            ready = self._alive & ~self._parked & ~self._at_barrier
            if not ready.any():
                if not self._alive.any():
                    return
                self._open_barriers()
                continue
            self._turn += 1
            places = self._pc[ready]
            late = self._turn % _FAIR_TURNS == 0
            pc = int(places.max() if late else places.min())
            mask = ready & (self._pc == pc)
            self._go(pc, mask)

    def _go(self, pc: int, mask: Bools) -> None:
        code = self._code
        if pc >= len(code.instructions):
            self._alive &= ~mask
            return
        instruction = code.instructions[pc]
        if is_warp_wide(instruction):
            self._warp_wide(pc, instruction, mask)
            return
        end = code.ends[pc]
        whole = None if mask.all() else mask
        threads = int(mask.sum())
        warps = int(mask.reshape(-1, WARP).any(axis=1).sum())
        self._budget.spend(pc, end + 1, warps, threads, instruction.line)
        for at in range(pc, end):
            code.steps[at](whole)
        self._leave(end, mask)

    def _leave(self, at: int, mask: Bools) -> None:
        """Do what ends a stretch: it goes somewhere, waits, or ends."""
        code = self._code
        if at >= len(code.instructions):
            self._pc[mask] = at
            return
        instruction = code.instructions[at]
        going = mask
        guard = code.guards.get(at)
        if guard is not None:
            going = mask & guard()
        if at in code.jumps:
            target = code.jumps[at]
            self._pc[mask] = at + 1
            self._pc[going] = target if isinstance(target, int) else target()[going]
            if guard is not None:
                self._count_divergence(mask, going, instruction)
        elif instruction.name in ("ret", "exit"):
            self._pc[mask] = at + 1
            self._alive &= ~going
        elif instruction.name in ("bar", "barrier") and not is_warp_wide(instruction):
            self._pc[mask] = at
            self._pc[mask & ~going] = at + 1
            self._at_barrier |= going
        else:
            # here others join, or wait
            self._pc[mask] = at

    def _count_divergence(
        self, mask: Bools, going: Bools, instruction: Instruction
    ) -> None:
        rows = mask.reshape(-1, WARP), going.reshape(-1, WARP)
        taken, stayed = rows[1].any(axis=1), (rows[0] & ~rows[1]).any(axis=1)
        divergent = int((taken & stayed).sum())
        if divergent:
            report = self._state.report
            report.counts.divergent_branches += divergent
            if instruction.line is not None:
                counts = report.lines.setdefault(instruction.line, Counts())
                counts.divergent_branches += divergent

    def _warp_wide(self, pc: int, instruction: Instruction, mask: Bools) -> None:
        """Let those warps go on of which all that are named have come."""
        code, state = self._code, self._state
        here = mask | (self._parked & (self._pc == pc))
        guard = code.guards.get(pc)
        skips = np.zeros_like(here) if guard is None else mask & ~guard()
        here &= ~skips
        self._pc[skips] = pc + 1
        named = np.broadcast_to(members(instruction, state.lanes), (state.lanes.count,))
        bits = (named[:, None] >> np.arange(WARP, dtype=np.uint32)) & np.uint32(1)
        wanted = bits.astype(np.bool_).reshape(-1, WARP, WARP)
        alive = self._alive.reshape(-1, 1, WARP)
        come = here.reshape(-1, 1, WARP)
        complete = ~(wanted & alive & ~come).any(axis=2)
        # the warp waits for all whom any of its threads names
        whole = (complete | ~here.reshape(-1, WARP)).all(axis=1)
        going = here & np.repeat(whole, WARP)
        self._parked = (self._parked & ~going) | (here & ~going)
        if not going.any():
            return
        warps = int(going.reshape(-1, WARP).any(axis=1).sum())
        self._budget.spend(pc, pc + 1, warps, int(going.sum()), instruction.line)
        code.steps[pc](None if going.all() else going)
        self._pc[going] = pc + 1

    def _open_barriers(self) -> None:
        """Let those blocks go on of which all threads that are left have come."""
        state = self._state
        shape = (-1, state.lanes.per_block)
        alive = self._alive.reshape(shape)
        come = self._at_barrier.reshape(shape)
        complete = (alive == come).all(axis=1) & alive.any(axis=1)
        if not complete.any():
            self._tell_deadlock()
        going = self._at_barrier & np.repeat(complete, state.lanes.per_block)
        for slot in np.flatnonzero(complete):
            self._check_barrier(int(slot))
        for pc in np.unique(self._pc[going]):
            here = going & (self._pc == pc)
            self._code.steps[pc](None if here.all() else here)
        self._pc[going] += 1
        state.block_epoch[going] += 1
        self._at_barrier &= ~going

    def _check_barrier(self, slot: int) -> None:
        state = self._state
        per_block = state.lanes.per_block
        lanes = np.arange(slot * per_block, (slot + 1) * per_block)
        waiting = lanes[self._at_barrier[lanes]]
        places = self._pc[waiting]
        line = state.line(int(places[0]))
        gone = int(self._begun[slot]) - len(waiting)
        block = state.lanes.name_of(int(state.lanes.thread[waiting[0]])).split(" of ")[
            1
        ]
        on = "" if line is None else f" on line {line}"
        if (places != places[0]).any():
            other = waiting[int(np.flatnonzero(places != places[0])[0])]
            second = state.line(int(self._pc[other]))
            state.report.add(
                Finding(
                    "divergent barrier",
                    f"Threads of {block} wait at different barriers: "
                    f"{state.lanes.name_of(int(state.lanes.thread[waiting[0]]))}{on}, "
                    f"{state.lanes.name_of(int(state.lanes.thread[other]))} on line "
                    f"{second}. All threads of a block must come to the same.",
                    line,
                )
            )
        elif gone:
            state.report.add(
                Finding(
                    "divergent barrier",
                    f"{gone:,} of the {int(self._begun[slot]):,} threads of {block} "
                    f"have ended before the barrier{on}, at which the others wait. All "
                    "threads of a block must come to it.",
                    line,
                )
            )

    def _tell_deadlock(self) -> None:
        lanes, state = np.flatnonzero(self._parked & self._alive), self._state
        first = int(lanes[0]) if len(lanes) else int(np.flatnonzero(self._alive)[0])
        line = state.line(int(self._pc[first]))
        raise Fault(
            "deadlock",
            f"{state.lanes.name_of(int(state.lanes.thread[first]))} waits on line "
            f"{line} for threads of its warp that never come: the "
            "mask of a `_sync` function names threads that do not call it.",
            line,
        )

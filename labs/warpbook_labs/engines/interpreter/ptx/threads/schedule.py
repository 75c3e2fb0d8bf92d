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

from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import WARP
from warpbook_labs.engines.interpreter.ptx.memory.state import State
from warpbook_labs.engines.interpreter.ptx.text.errors import Fault, TooLong
from warpbook_labs.engines.interpreter.ptx.text.program import Instruction
from warpbook_labs.engines.interpreter.ptx.text.values import Bools
from warpbook_labs.engines.interpreter.ptx.threads.barriers import Barriers
from warpbook_labs.engines.interpreter.ptx.threads.endless import EndlessLoops, Stalled
from warpbook_labs.engines.interpreter.ptx.threads.steps import Code
from warpbook_labs.engines.interpreter.ptx.threads.warp import members
from warpbook_labs.results.findings import Counts

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
    #: instructions of the warp that has run most of them, without those that only poll
    longest_warp: int = 0

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

    def __init__(
        self,
        code: Code,
        state: State,
        budget: Budget,
        works: Bools,
        endless: EndlessLoops,
    ) -> None:
        self._code, self._state, self._budget = code, state, budget
        count = state.lanes.count
        self._pc: NDArray[np.int32] = np.zeros(count, np.int32)
        self._alive = state.alive
        self._alive[:] = works
        #: threads that wait for others of their warp
        self._parked = np.zeros(count, np.bool_)
        self._barriers = Barriers(code, state, works)
        self._may_spin = bool(code.waits.any())
        self._stalled = Stalled(state) if self._may_spin else None
        self._warp_instructions = np.zeros(count // WARP, np.int64)
        self._turn = 0
        self._endless = endless

    def run(self) -> None:
        """Go on until all have ended.

        Raises:
            Fault: they never can, or one of them did what ends a kernel.
            TooLong: they take too long.
            Endless: they never leave a loop.
        """
        while True:
            ready = self._alive & ~self._parked & ~self._barriers.waits
            if not ready.any():
                if not self._alive.any():
                    most = int(self._warp_instructions.max(initial=0))
                    self._budget.longest_warp = max(self._budget.longest_warp, most)
                    return
                if not (self._release_parked() or self._open_barriers()):
                    self._tell_deadlock()
                continue
            self._turn += 1
            if self._may_spin:
                # who waits for others lets them go first
                busy = ready & ~self._code.waits[self._pc]
                if busy.any():
                    ready = busy
                elif self._open_barriers():
                    continue
            pc = self._next(self._pc[ready])
            mask = ready & (self._pc == pc)
            self._go(pc, mask)
            if self._stalled is not None:
                self._stalled.went(pc, mask, self._pc, ready)

    def _next(self, places: NDArray[np.int32]) -> int:
        """Choose where to go on, of the places of those that can."""
        if self._may_spin and self._code.waits[places].all():
            # all wait for one another: each in turn
            different = np.unique(places)
            return int(different[self._turn % len(different)])
        late = self._turn % _FAIR_TURNS == 0
        return int(places.max() if late else places.min())

    def _go(self, pc: int, mask: Bools) -> None:
        code = self._code
        if pc >= len(code.instructions):
            self._alive &= ~mask
            return
        instruction = code.instructions[pc]
        self._endless.came_to(pc, mask)
        if instruction.is_warp_wide:
            self._warp_wide(pc, instruction, mask)
            return
        end = code.ends[pc]
        if end > pc and code.barriers:
            self._barriers.went(mask, pc)
        whole = None if mask.all() else mask
        threads = int(mask.sum())
        in_warp = mask.reshape(-1, WARP).any(axis=1)
        if not code.waits[pc]:
            self._warp_instructions[in_warp] += end + 1 - pc
        warps = int(in_warp.sum())
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
            if at in self._endless.loops:
                self._endless.began_round(at, going)
            if guard is not None:
                self._count_divergence(mask, going, instruction)
        elif instruction.name in ("ret", "exit"):
            self._pc[mask] = at + 1
            self._alive &= ~going
        elif at in code.barriers:
            self._pc[mask] = at
            on = self._barriers.come(at, going)
            self._pc[(mask & ~going) | on] = at + 1
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
        bit = np.arange(state.lanes.count, dtype=np.uint32) % np.uint32(WARP)
        unnamed = here & ((named >> bit) & np.uint32(1) == 0)
        if unnamed.any():
            raise Fault(
                "inactive lane",
                f"{state.lanes.words_of(int(np.flatnonzero(unnamed)[0]))} calls a "
                f"`_sync` function on line {instruction.line}, and is not in its mask.",
                instruction.line,
            )
        going = here if self._is_whole(here) else self._complete(here, named)
        self._parked = (self._parked & ~going) | (here & ~going)
        if not going.any():
            return
        warps = int(going.reshape(-1, WARP).any(axis=1).sum())
        self._budget.spend(pc, pc + 1, warps, int(going.sum()), instruction.line)
        if code.barriers:
            self._barriers.went(going, pc)
        masks = named[going]
        if (masks == masks[0]).all():
            code.steps[pc](None if going.all() else going)
        else:
            for warp_mask in np.unique(masks):
                code.steps[pc](going & (named == warp_mask))
        self._pc[going] = pc + 1

    def _release_parked(self) -> bool:
        """Let warps go on that waited for threads which have ended since."""
        before = int(self._parked.sum())
        nobody = np.zeros_like(self._parked)
        for pc in np.unique(self._pc[self._parked]):
            self._warp_wide(int(pc), self._code.instructions[pc], nobody)
        return int(self._parked.sum()) < before

    def _is_whole(self, here: Bools) -> bool:
        """Tell whether all threads of these warps have come that are left."""
        rows = here.reshape(-1, WARP)
        missing = self._alive.reshape(-1, WARP) & ~rows
        return not missing[rows.any(axis=1)].any()

    def _complete(self, here: Bools, named: NDArray[np.uint32]) -> Bools:
        """Give the threads whose warps have all come that any of them names."""
        bits = (named[:, None] >> np.arange(WARP, dtype=np.uint32)) & np.uint32(1)
        wanted = bits.astype(np.bool_).reshape(-1, WARP, WARP)
        alive = self._alive.reshape(-1, 1, WARP)
        come = here.reshape(-1, 1, WARP)
        complete = ~(wanted & alive & ~come).any(axis=2)
        # the warp waits for all whom any of its threads names
        whole = (complete | ~here.reshape(-1, WARP)).all(axis=1)
        return here & np.repeat(whole, WARP)

    def _open_barriers(self) -> bool:
        """Let threads go on for whom enough have come to a barrier."""
        going = self._barriers.open(self._pc)
        if going is None:
            return False
        self._pc[going] += 1
        return True

    def _tell_deadlock(self) -> None:
        lanes, state = np.flatnonzero(self._parked & self._alive), self._state
        first = int(lanes[0]) if len(lanes) else int(np.flatnonzero(self._alive)[0])
        line = state.line(int(self._pc[first]))
        why = "of its warp that never come: the mask of a `_sync` function names "
        why += "threads that do not call it."
        if not len(lanes):
            why = "at a barrier, to which fewer come than it waits for."
        raise Fault(
            "deadlock",
            f"{state.lanes.words_of(first)} waits on line {line} for threads {why}",
            line,
        )

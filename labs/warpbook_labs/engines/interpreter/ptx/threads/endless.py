"""Finds loops that never end, long before the time is up.

A loop without a way out never ends for who is in it. Nor does one whose control
(`loops.py`) is, after a round, as it was before: its exits depend on nothing else, so
each round is like the last. That is looked at only now and then, and only for threads
that stay in the loop meanwhile.

Finds threads that all wait for others, none of which can ever let them go.

In a loop that polls (`loops.py`) nothing changes but by other threads. Once all that
can go on are in such loops, and after rounds of all of them no register, no place and
no memory is another than before, each further round is like the last.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import Lanes
from warpbook_labs.engines.interpreter.ptx.memory.state import State
from warpbook_labs.engines.interpreter.ptx.text.errors import (
    Endless,
    Fault,
    TooLong,
    on_line,
)
from warpbook_labs.engines.interpreter.ptx.text.loops import Loop, loop_ranges, sources
from warpbook_labs.engines.interpreter.ptx.text.program import Linked, Register
from warpbook_labs.engines.interpreter.ptx.text.values import Bools, Values

#: turns without any work before all is looked at, and then twice as many each time
_FIRST_STALL_LOOK = 256


class Stalled:
    """Watches the loops of a kernel that wait for other threads."""

    def __init__(self, state: State) -> None:
        self._state = state
        code, labels = state.linked.code, state.linked.labels
        self._inside = np.zeros(len(code) + 1, np.bool_)
        loops = sorted(loop_ranges(code, labels), key=lambda loop: loop[1] - loop[0])
        self._polls = state.polling.reads | state.polling.takes
        for pc in self._polls:
            begin, end = next(loop for loop in loops if loop[0] <= pc <= loop[1])
            self._inside[begin : end + 1] = True
        self._turns, self._next_look = 0, _FIRST_STALL_LOOK
        self._look: _StallLook | None = None

    def went(self, pc: int, mask: Bools, pcs: NDArray[np.int32], ready: Bools) -> None:
        """Note a turn.

        Raises:
            Fault: they wait for ever.
        """
        if not self._inside[pc]:
            self._turns, self._next_look, self._look = 0, _FIRST_STALL_LOOK, None
            return
        self._turns += 1
        look = self._look
        if look is not None:
            look.moved |= mask
            if look.is_same(pcs, ready):
                self._tell(int(np.flatnonzero(ready)[0]), int(pcs[ready][0]))
        if self._turns >= self._next_look:
            self._next_look = 2 * self._turns
            self._look = _StallLook(self._state, pcs)

    def _tell(self, lane: int, pc: int) -> None:
        state = self._state
        poll = min(self._polls, key=lambda place: abs(place - pc))
        line = state.line(poll)
        words = f"{state.lanes.words_of(lane)} waits{on_line(line)} for "
        if state.is_reversed:
            words += (
                "what no thread writes that has begun. CUDA promises no order in which "
                "blocks begin, and a GPU may hold only some of them at a time."
                f"{self._taken_from()}"
            )
        else:
            words += "what no thread writes any more."
        raise Fault("deadlock", words, line)

    def _taken_from(self) -> str:
        """Say where blocks take their work by their index."""
        lines = dict.fromkeys(
            instruction.line
            for instruction in self._state.linked.code
            if instruction.line is not None
            and any(
                isinstance(source, Register) and source.name.startswith("%ctaid")
                for source in sources(instruction)
            )
        )
        if not lines:
            return ""
        named = ", ".join(f"line {line}" for line in list(lines)[:2])
        return (
            f" `blockIdx` is read on {named}: a number taken by `atomicAdd` is that of "
            "a block that has begun."
        )


class _StallLook:
    """All that the threads and their memory hold."""

    def __init__(self, state: State, pcs: NDArray[np.int32]) -> None:
        self._state, self._pcs = state, pcs.copy()
        self.moved = np.zeros(len(pcs), np.bool_)
        self._before = [array.copy() for array in self._held()]

    def _held(self) -> list[NDArray[Any]]:
        state = self._state
        spaces = (state.memory.space, state.shared, state.local)
        return [*state.lanes.registers(), *(space.data for space in spaces)]

    def is_same(self, pcs: NDArray[np.int32], ready: Bools) -> bool:
        """Tell whether all have had a turn, and nothing is another than before."""
        if not self.moved[ready].all() or not np.array_equal(pcs, self._pcs):
            return False
        pairs = zip(self._held(), self._before, strict=True)
        return all(
            np.array_equal(held.view(np.uint8), before.view(np.uint8))
            for held, before in pairs
        )


#: rounds before a loop is looked at, and then twice as many each time
_FIRST_LOOK = 128


class EndlessLoops:
    """Watches the loops of a kernel."""

    def __init__(self, linked: Linked, lanes: Lanes) -> None:
        self._lanes = lanes
        self.loops = {
            end: Loop(linked.code, linked.labels, begin, end)
            for begin, end in loop_ranges(linked.code, linked.labels)
        }
        self._rounds: Counter[int] = Counter()
        self._next_look = dict.fromkeys(self.loops, _FIRST_LOOK)
        self._look: _Look | None = None

    def began_round(self, end: int, going: Bools) -> None:
        """Note that threads have gone back to a loop's beginning.

        Args:
            end: of the loop: the place of the branch.

        Raises:
            Endless: they never leave it.
        """
        if not going.any():
            return
        loop = self.loops[end]
        if not loop.exits:
            raise _endless(loop, "it has no way out")
        self._rounds[end] += 1
        look = self._look
        if look is not None and look.loop is loop:
            if look.is_unchanged(going):
                raise _endless(loop, "nothing that its end depends on changes any more")
            if not look.watched.any():
                self._look = None
        elif look is None and self._rounds[end] >= self._next_look[end]:
            self._next_look[end] = 2 * self._rounds[end]
            if loop.control is not None:
                self._look = _Look(loop, self._lanes, going)

    def came_to(self, pc: int, mask: Bools) -> None:
        """Note where threads go on: outside of a loop nothing of it counts."""
        look = self._look
        if look is not None and pc not in look.loop.places:
            look.watched &= ~mask
            if not look.watched.any():
                self._look = None

    def too_long(self, line: int | None) -> TooLong:
        """Say in which loop the time was spent."""
        inner = max(self._rounds, key=self._rounds.__getitem__, default=None)
        if inner is None or (lines := self.loops[inner].lines) is None:
            return TooLong(line)
        rounds = self._rounds[inner]
        return TooLong(line, f", {rounds:,} rounds of the loop {_on(lines)} among it")


class _Look:
    """The control of a loop for some threads, at the beginning of a round."""

    def __init__(self, loop: Loop, lanes: Lanes, watched: Bools) -> None:
        self.loop, self.watched = loop, watched.copy()
        self._registers = [lanes.register(name) for name in loop.control or ()]
        self._before: list[Values] = [values.copy() for values in self._registers]

    def is_unchanged(self, going: Bools) -> bool:
        """Tell whether it is the same for any thread; who went back is done."""
        same = self.watched & going
        self.watched &= ~going
        for values, before in zip(self._registers, self._before, strict=True):
            bits = f"u{values.itemsize}"
            same &= values.view(bits) == before.view(bits)
        return bool(same.any())


def _endless(loop: Loop, why: str) -> Endless:
    if loop.lines is None:
        return Endless(f"One of its loops never ends: {why}.", None)
    return Endless(f"The loop {_on(loop.lines)} never ends: {why}.", loop.lines[0])


def _on(lines: tuple[int, int]) -> str:
    first, last = lines
    return f"on line {first}" if first == last else f"of lines {first} to {last}"

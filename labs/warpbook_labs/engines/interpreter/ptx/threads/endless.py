"""Finds loops that never end, long before the time is up.

A loop without a way out never ends for who is in it. Nor does one whose control
(`loops.py`) is, after a round, as it was before: its exits depend on nothing else, so
each round is like the last. That is looked at only now and then, and only for threads
that stay in the loop meanwhile.
"""

from __future__ import annotations

from collections import Counter

from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import Lanes
from warpbook_labs.engines.interpreter.ptx.text.errors import Endless, TooLong
from warpbook_labs.engines.interpreter.ptx.text.link import Linked
from warpbook_labs.engines.interpreter.ptx.text.loops import Loop, loop_ranges
from warpbook_labs.engines.interpreter.ptx.text.values import Bools, Values

#: rounds before a loop is looked at, and then twice as many each time
_FIRST_LOOK = 128


class EndlessLoops:
    """Watches the loops of a kernel."""

    def __init__(self, linked: Linked, lanes: Lanes) -> None:
        """Find the loops."""
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
            going: who goes back.

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

"""Which accesses come before which: fences with their flags, and barriers of some.

This is causality order of the PTX ISA ("Memory Consistency Model"), on the order that
this machine took. A fence (`membar`, `fence`) of a thread is its own: it releases what
this thread did before, and what the thread knows to come before that, by barriers or by
fences of others ("cumulativity"). It counts when the thread then writes a flag by a
strong access (atomic or volatile), and only for who reads that flag, and then has
a fence as well ("release pattern", "acquire pattern", "synchronizes").

Two things are taken more kindly than the ISA has them, since NVIDIA's own samples are
written so (`threadFenceReduction`): who has seen a flag may read by strong accesses
without a second fence; and a barrier of the block after the flag was seen will do.

What a thread knows to have happened, beyond what barriers of whole blocks tell.

A clock names accesses that come before all that its holder does from now on: of a
thread those before its n-th fence, of a block or a warp those before its n-th barrier.
It is the vector clock of Lamport's happened-before, kept sparse, and joined only when
somebody asks: a counter that thousands of blocks add to would else cost their square.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.interpreter.ptx.text.values import Bools

Keys = NDArray[np.int64]
Counts = NDArray[np.int64]

#: kinds of keys; the number of a thread, a block or a warp is in the lower bits
THREAD, BLOCK, WARP_OF = 0, 1 << 40, 2 << 40
_NO_KEYS: Keys = np.zeros(0, np.int64)


@dataclass(eq=False)
class Clock:
    """Accesses that come before, as own entries and those of other clocks."""

    keys: Keys = field(default_factory=lambda: _NO_KEYS)
    counts: Counts = field(default_factory=lambda: _NO_KEYS)
    parents: tuple[Clock, ...] = ()

    def knows(self, keys: Keys, counts: Counts) -> Bools:
        """Tell which accesses come before, each of a key, at a count of it."""
        self._resolve()
        if not len(self.keys):
            return np.zeros(len(keys), np.bool_)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        is_known: Bools = (self.keys[at] == keys) & (self.counts[at] > counts)
        return is_known

    def _resolve(self) -> None:
        """Join the parents' entries into own ones; a chain may be very long."""
        if not self.parents:
            return
        pending, seen, keys, counts = [self], {id(self)}, [], []
        while pending:
            clock = pending.pop()
            keys.append(clock.keys)
            counts.append(clock.counts)
            for parent in clock.parents:
                if id(parent) not in seen:
                    seen.add(id(parent))
                    pending.append(parent)
        every, number = np.concatenate(keys), np.concatenate(counts)
        order = np.lexsort((number, every))
        every, number = every[order], number[order]
        last = np.ones(len(every), np.bool_)
        last[:-1] = every[1:] != every[:-1]
        # the largest count of each key
        self.keys, self.counts, self.parents = every[last], number[last], ()


def joined(clocks: Iterable[Clock | None]) -> Clock | None:
    """Give what any of these clocks knows; None if they know nothing."""
    distinct = {id(clock): clock for clock in clocks if clock is not None}
    if len(distinct) < 2:
        return next(iter(distinct.values()), None)
    return Clock(parents=tuple(distinct.values()))


Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]
#: scopes: all threads of a block, and all that there are
CTA, GPU = 0, 1


class _Flag:
    """What those know who read a cell."""

    def __init__(self) -> None:
        #: told to all, and to threads of a block
        self.to_all: Clock | None = None
        self.to_block: dict[int, Clock | None] = {}


#: by lane: of flags that it read, what they told then
_Seen = dict[int, dict[_Flag, Clock]]


class Causality:
    """What the threads that run now know, beside the barriers that all passed."""

    def __init__(self, thread: Numbers, per_block: int) -> None:
        """Take the threads' numbers, which change with the blocks, and a block's size.

        Args:
            thread: of each lane, where it is in the grid.
        """
        count = len(thread)
        self._thread, self._per_block = thread, per_block
        self.block_epoch: Numbers = np.zeros(count, np.int32)
        self.warp_epoch: Numbers = np.zeros(count, np.int32)
        #: of each lane: fences and other releases of its own
        self.time: Numbers = np.zeros(count, np.int32)
        #: clocks by number; 0 is none
        self._clocks: list[Clock | None] = [None]
        #: of each lane: what comes before what it does now
        self._known: Numbers = np.zeros(count, np.int32)
        #: and what would after a fence, by the scope of the fence: flags that it read
        self._has_seen = np.zeros((2, count), np.bool_)
        self._seen: tuple[_Seen, _Seen] = ({}, {})
        #: flags whose clocks the lane has in what it knows
        self._acquired: _Seen = {}
        #: its next strong write is the first after a fence
        self._is_next_a_flag = np.zeros(count, np.bool_)
        #: by scope: what the last fence released, as of then; no time is no fence
        self._released_time: Numbers = np.zeros((2, count), np.int32)
        self._released_block: Numbers = np.zeros((2, count), np.int32)
        self._released_warp: Numbers = np.zeros((2, count), np.int32)
        self._released_known: Numbers = np.zeros((2, count), np.int32)
        self._flags: dict[tuple[bool, int], _Flag] = {}

    def begin(self) -> None:
        """Other blocks run now: flags of global memory stay, all else is new."""
        for array in (self.block_epoch, self.warp_epoch, self.time, self._known):
            array[:] = 0
        self._has_seen[:] = False
        self._is_next_a_flag[:] = False
        self._seen, self._acquired = ({}, {}), {}
        self._released_time[:] = 0
        self._clocks = [None]
        self._flags = {key: flag for key, flag in self._flags.items() if not key[0]}

    def covers(self, lanes: Ints, keys: tuple[Numbers, ...], is_strong: bool) -> Bools:
        """Tell which earlier accesses come before what these lanes do now.

        Args:
            keys: of each: its thread, and the thread's time, barriers of the block, and
                of the warp.
            is_strong: what they do is atomic or volatile.
        """
        is_covered = np.zeros(len(lanes), np.bool_)
        thread, *counts = (column.astype(np.int64) for column in keys)
        names = (
            THREAD + thread,
            BLOCK + thread // self._per_block,
            WARP_OF + thread // 32,
        )

        def look(clock: Clock | None, here: Ints) -> None:
            if clock is not None:
                for name, count in zip(names, counts, strict=True):
                    is_covered[here] |= clock.knows(name[here], count[here])

        numbers = self._known[lanes]
        for number in np.unique(numbers):
            look(self._clocks[number], np.flatnonzero(numbers == number))
        if is_strong and self._has_seen[:, lanes].any():
            for lane in np.unique(lanes):
                here = np.flatnonzero(lanes == lane)
                for clock in self._seen_by(int(lane)):
                    look(clock, here)
        return is_covered

    def is_seen(self, lane: int) -> bool:
        """Tell whether a lane has read a flag, and done no fence since."""
        return bool(self._has_seen[:, lane].any())

    def fence(self, lanes: Ints, scope: int) -> None:
        """Have each of these threads do a fence of its own."""
        self.acquire(lanes, scope)
        self.release(lanes, scope)

    def acquire(self, lanes: Ints, scope: int) -> None:
        """Let what these threads have seen come before what they do from now on."""
        for lane in lanes[self._has_seen[: scope + 1, lanes].any(axis=0)].tolist():
            clocks: list[Clock | None] = [self._clocks[self._known[lane]]]
            for level in range(scope + 1):
                seen = self._seen[level].pop(lane, {})
                self._acquired.setdefault(lane, {}).update(seen)
                clocks += seen.values()
            self._known[lane] = self._number(joined(clocks))
            self._has_seen[: scope + 1, lane] = False

    def release(self, lanes: Ints, scope: int) -> None:
        """Note what these threads may tell by a flag from now on."""
        self.time[lanes] += 1
        self._is_next_a_flag[lanes] = True
        for level in range(scope + 1):
            self._released_time[level, lanes] = self.time[lanes]
            self._released_block[level, lanes] = self.block_epoch[lanes]
            self._released_warp[level, lanes] = self.warp_epoch[lanes]
            self._released_known[level, lanes] = self._known[lanes]

    def as_flag(self, lanes: Ints) -> Numbers:
        """Give the times of strong writes; the first after a fence is told with it."""
        released = self._released_time[CTA, lanes]
        is_flag = self._is_next_a_flag[lanes]
        times: Numbers = np.where(is_flag, released - 1, self.time[lanes])
        return times

    def wrote(self, lanes: Ints, is_shared: bool, cells: Ints, keeps: bool) -> None:
        """Note that threads wrote cells by a strong access.

        Args:
            is_shared: whether the cells are of shared memory.
            keeps: the access is an atomic operation, which reads as well: who reads the
                cell later has seen what others told by it, too ("observation order").
        """
        if not self._flags and not self._released_time[CTA, lanes].any():
            return
        self._is_next_a_flag[lanes] = False
        for lane, cell in zip(lanes.tolist(), cells.tolist(), strict=True):
            key = (is_shared, cell)
            if keeps:
                self._see(lane, key)
            if self._released_time[CTA, lane]:
                self._tell(lane, key, keeps)
            elif not keeps:
                self._flags.pop(key, None)

    def read(self, lanes: Ints, is_shared: bool, cells: Ints) -> None:
        """Note that threads read cells by a strong access."""
        if not self._flags:
            return
        for lane, cell in zip(lanes.tolist(), cells.tolist(), strict=True):
            self._see(lane, (is_shared, cell))

    def _tell(self, lane: int, key: tuple[bool, int], keeps: bool) -> None:
        flag = self._flags.get(key) if keeps else None
        if flag is None:
            flag = self._flags[key] = _Flag()
        block = int(self._thread[lane]) // self._per_block
        # what this thread knows already, it tells as well
        known = self._acquired.get(lane, {}).get(flag)
        before = flag.to_block.get(block)
        clock = self._released(CTA, lane)
        flag.to_block[block] = clock if before is known else joined((before, clock))
        if self._released_time[GPU, lane]:
            clock = self._released(GPU, lane)
            before = flag.to_all
            flag.to_all = clock if before is known else joined((before, clock))

    def _see(self, lane: int, key: tuple[bool, int]) -> None:
        flag = self._flags.get(key)
        if flag is None:
            return
        block = int(self._thread[lane]) // self._per_block
        for scope, clock in ((CTA, flag.to_block.get(block)), (GPU, flag.to_all)):
            if clock is not None:
                # what a flag tells only grows, until another is written there
                self._seen[scope].setdefault(lane, {})[flag] = clock
                self._has_seen[scope, lane] = True

    def meet(self, lanes: Ints, is_block: bool) -> None:
        """Have threads that passed a barrier of all know what each of them knew."""
        if not (self._known[lanes].any() or self._has_seen[:, lanes].any()):
            return
        of = self._thread[lanes] // (self._per_block if is_block else 32)
        for group in np.unique(of):
            here = lanes[of == group]
            if is_block:
                # a barrier of the block after the flag was seen will do for a fence
                self.acquire(here, GPU)
            numbers = set(np.unique(self._known[here]).tolist()) - {0}
            if len(numbers) > 1:
                known = joined(self._clocks[number] for number in numbers)
                self._known[here] = self._number(known)
            elif numbers:
                self._known[here] = numbers.pop()

    def meet_some(self, lanes: Ints, arrived: Sequence[Clock | None] = ()) -> None:
        """Have some threads of a block or a warp pass a barrier of their own.

        Args:
            arrived: what others told that came there and did not wait.
        """
        clocks = [self.clock_of(lanes), *arrived]
        self._known[lanes] = self._number(joined(clocks))

    def learn(self, lanes: Ints, clock: Clock | None) -> None:
        """Have threads know what a clock tells, besides what each knows."""
        numbers = self._known[lanes]
        for number in np.unique(numbers):
            known = joined((self._clocks[number], clock))
            self._known[lanes[numbers == number]] = self._number(known)

    def clock_of(self, lanes: Ints) -> Clock:
        """Give all that comes before what these threads of a block do next."""
        self.time[lanes] += 1
        thread = self._thread[lanes].astype(np.int64)
        warps, first = np.unique(thread // 32, return_index=True)
        # all of them are of one block, and lanes of a warp passed the same barriers
        block = thread[:1] // self._per_block
        known = [self._clocks[number] for number in np.unique(self._known[lanes])]
        return Clock(
            np.concatenate((THREAD + thread, BLOCK + block, WARP_OF + warps)),
            np.concatenate(
                (
                    self.time[lanes],
                    self.block_epoch[lanes[:1]],
                    self.warp_epoch[lanes[first]],
                )
            ).astype(np.int64),
            tuple(clock for clock in known if clock is not None),
        )

    def _released(self, scope: int, lane: int) -> Clock:
        then = (
            self._released_time,
            self._released_block,
            self._released_warp,
            self._released_known,
        )
        return self._clock(lane, [int(row[scope, lane]) for row in then])

    def _clock(self, lane: int, then: list[int]) -> Clock:
        """Give all that came before, by a thread's time, barriers and knowledge."""
        thread = int(self._thread[lane])
        keys = (THREAD + thread, BLOCK + thread // self._per_block)
        known = self._clocks[then[3]]
        return Clock(
            np.array([*keys, WARP_OF + thread // 32], np.int64),
            np.array(then[:3], np.int64),
            () if known is None else (known,),
        )

    def _seen_by(self, lane: int) -> list[Clock]:
        return [clock for seen in self._seen for clock in seen.get(lane, {}).values()]

    def _number(self, clock: Clock | None) -> int:
        if clock is None:
            return 0
        self._clocks.append(clock)
        return len(self._clocks) - 1

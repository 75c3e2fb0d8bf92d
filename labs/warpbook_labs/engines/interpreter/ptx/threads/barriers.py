"""Barriers of a block: who waits where, and when they go on.

A barrier waits for the threads that have not ended (CUDA C++ Programming Guide, on
independent thread scheduling: "until reached by all non-exited threads"); a named one
with a count waits for so many, in whole warps (PTX ISA, `barrier.sync`). The guide
calls `__syncthreads()` in conditional code undefined unless the condition is the same
for the whole block: threads at different places, or that went past it, are told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.interpreter.ptx.arithmetic.lanes import WARP
from warpbook_labs.engines.interpreter.ptx.memory.causality import Clock
from warpbook_labs.engines.interpreter.ptx.memory.state import State
from warpbook_labs.engines.interpreter.ptx.text.errors import on_line
from warpbook_labs.engines.interpreter.ptx.text.values import Bools
from warpbook_labs.engines.interpreter.ptx.threads.steps import Code
from warpbook_labs.results.findings import Finding

_MOST_BARRIERS = 16


@dataclass
class _Arrived:
    """Threads that came to a named barrier and went on."""

    threads: int
    clocks: list[Clock | None]


class Barriers:
    """The barriers of the blocks that run now."""

    def __init__(self, code: Code, state: State, works: Bools) -> None:
        self._code, self._state = code, state
        count = state.lanes.count
        self.waits: Bools = np.zeros(count, np.bool_)
        self._number: NDArray[np.int64] = np.zeros(count, np.int64)
        #: threads that it waits for; 0 is all of the block
        self._needs: NDArray[np.int64] = np.zeros(count, np.int64)
        self._began = works.copy()
        #: of each thread: where its last two stretches with any work in them begin
        self._last: NDArray[np.int32] = np.full((2, count), -1, np.int32)
        self._arrived: dict[tuple[int, int], _Arrived] = {}
        self._beyond: dict[int, Bools] = {}

    def come(self, at: int, lanes: Bools) -> Bools:
        """Have threads come to a barrier; give those that need not wait."""
        barrier = self._code.barriers[at]
        here = np.flatnonzero(lanes)
        self._number[here] = _of(barrier.number, here)
        self._needs[here] = _of(barrier.threads, here)
        if not barrier.only_arrives:
            self.waits |= lanes
            return np.zeros_like(lanes)
        state = self._state
        slots = state.lanes.slot[here]
        for slot in np.unique(slots):
            mine = here[slots == slot]
            for number in np.unique(self._number[mine]):
                some = mine[self._number[mine] == number]
                held = self._arrived.setdefault(
                    (int(slot), int(number)), _Arrived(0, [])
                )
                held.threads += WARP * len(np.unique(some // WARP))
                held.clocks.append(state.causality.clock_of(some))
        return lanes

    def went(self, lanes: Bools, pc: int) -> None:
        """Note that threads go through a stretch that has some work in it."""
        self._last[1, lanes] = self._last[0, lanes]
        self._last[0, lanes] = pc

    def open(self, pcs: NDArray[np.int32]) -> Bools | None:
        """Let those go on for whom enough have come.

        Returns:
            Who goes on; None if nobody does.
        """
        shape = (-1, self._state.lanes.per_block)
        all_come = (self._state.alive == self.waits).reshape(shape).all(axis=1)
        all_come &= self.waits.reshape(shape).any(axis=1)
        plain = (~self.waits | (self._needs == 0)).reshape(shape).all(axis=1)
        whole = np.repeat(all_come & plain, shape[1]) & self.waits
        going = whole.copy()
        if whole.any():
            self._open_whole(whole, pcs)
        for key, lanes in self._named(whole):
            arrived = self._arrived.get(key)
            threads = arrived.threads if arrived else 0
            needed = (int(self._needs[lanes[0]]) - threads) // WARP
            warps = np.unique(lanes // WARP)
            if len(warps) < needed:
                continue
            if len(warps) > max(needed, 1):
                self._state.crowded_line = self._state.line(int(pcs[lanes[0]]))
                some = _from_both_ends(warps)[: max(needed, 1)]
                lanes = lanes[np.isin(lanes // WARP, some)]
            self._arrived.pop(key, None)
            self._state.causality.meet_some(lanes, arrived.clocks if arrived else ())
            self._do(lanes, pcs)
            going[lanes] = True
        if not going.any():
            return None
        self.waits &= ~going
        return going

    def _open_whole(self, going: Bools, pcs: NDArray[np.int32]) -> None:
        state = self._state
        for slot in np.unique(state.lanes.slot[going]):
            self._check(int(slot), pcs)
        lanes = np.flatnonzero(going)
        self._do(lanes, pcs)
        state.causality.block_epoch[lanes] += 1
        state.causality.meet(lanes, is_block=True)

    def _do(self, lanes: NDArray[np.int64], pcs: NDArray[np.int32]) -> None:
        """Do what the barrier itself does, such as to count votes."""
        mask = np.zeros(len(self.waits), np.bool_)
        mask[lanes] = True
        for pc in np.unique(pcs[lanes]):
            here = mask & (pcs == pc)
            self._code.steps[pc](None if here.all() else here)

    def _named(self, whole: Bools) -> list[tuple[tuple[int, int], NDArray[np.int64]]]:
        """Give the threads at barriers for some of a block, whole warps of them."""
        state = self._state
        left = np.flatnonzero(self.waits & ~whole & (self._needs > 0))
        if not len(left):
            return []
        keys = state.lanes.slot[left] * _MOST_BARRIERS + self._number[left]
        waiting = []
        for key in np.unique(keys):
            lanes = left[keys == key]
            here = np.zeros(len(self.waits), np.bool_)
            here[lanes] = True
            rows = here.reshape(-1, WARP)
            late = (state.alive.reshape(-1, WARP) & ~rows).any(axis=1)
            lanes = np.flatnonzero(here & ~np.repeat(late, WARP))
            if len(lanes):
                slot, number = divmod(int(key), _MOST_BARRIERS)
                waiting.append(((slot, number), lanes))
        return waiting

    def _check(self, slot: int, pcs: NDArray[np.int32]) -> None:
        state = self._state
        per_block = state.lanes.per_block
        lanes = np.arange(slot * per_block, (slot + 1) * per_block)
        waiting = lanes[self.waits[lanes]]
        places = pcs[waiting]
        if (places != places[0]).any():
            self._tell_apart(waiting, pcs)
            return
        ended = lanes[self._began[lanes] & ~state.alive[lanes]]
        if not len(ended):
            return
        # a single one that only stores may be the end of a thread that returned before,
        # since compilers share what ends have in common
        last = self._last[:, ended]
        beyond = self._behind(int(places[0]))[last] & (last >= 0)
        loads = np.array([self._loads(int(pc)) for pc in last[0]])
        past = int((beyond[0] & (beyond[1] | loads)).sum())
        if past:
            line = state.line(int(places[0]))
            began = int(self._began[lanes].sum())
            state.report.add(
                Finding(
                    "divergent barrier",
                    f"{past:,} of the {began:,} threads of {self._block(waiting[0])} "
                    f"have gone past the barrier{on_line(line)} and ended, and the "
                    "others wait at it. It is undefined in code that not all threads "
                    "of the block go through alike (CUDA C++ Programming Guide, "
                    "__syncthreads).",
                    line,
                )
            )

    def _tell_apart(self, waiting: NDArray[np.int64], pcs: NDArray[np.int32]) -> None:
        state = self._state
        other = waiting[int(np.flatnonzero(pcs[waiting] != pcs[waiting[0]])[0])]
        lines = [state.line(int(pcs[lane])) for lane in (waiting[0], other)]
        first, second = (
            f"{state.lanes.words_of(lane)}{on_line(line)}"
            for lane, line in zip((waiting[0], other), lines, strict=True)
        )
        state.report.add(
            Finding(
                "divergent barrier",
                f"Threads of {self._block(waiting[0])} wait at different barriers: "
                f"{first}, {second}. All threads of a block that have not ended must "
                "come to the same.",
                lines[0],
            )
        )

    def _block(self, lane: int) -> str:
        return self._state.lanes.words_of(lane).split(" of ")[1]

    def _loads(self, pc: int) -> bool:
        """Tell whether a stretch reads memory, other than its parameters."""
        return pc >= 0 and any(
            instruction.name == "ld"
            and not {"param", "const"} & set(instruction.modifiers)
            for instruction in self._code.instructions[pc : self._code.ends[pc]]
        )

    def _behind(self, pc: int) -> Bools:
        """Tell which instructions a thread may come to after this one."""
        known = self._beyond.get(pc)
        if known is not None:
            return known
        code = self._code
        is_behind = np.zeros(len(code.instructions) + 1, np.bool_)
        pending = [pc + 1]
        while pending:
            at = pending.pop()
            if at >= len(code.instructions) or is_behind[at]:
                continue
            is_behind[at] = True
            instruction = code.instructions[at]
            always = instruction.guard is None
            if instruction.name == "bra":
                pending += [int(self._state.linked.labels[_name(instruction)])]
            elif instruction.name == "brx":
                targets = self._state.linked.targets.values()
                pending += [
                    self._state.linked.labels[label] for of in targets for label in of
                ]
            if not always or instruction.name not in ("bra", "brx", "ret", "exit"):
                pending.append(at + 1)
        self._beyond[pc] = is_behind
        return is_behind


def _from_both_ends(warps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the first, the last, the second and so on.

    Any of them may go on together; those that are meant to are most often neighbours.
    """
    order = np.empty_like(warps)
    order[::2] = warps[: (len(warps) + 1) // 2]
    order[1::2] = warps[::-1][: len(warps) // 2]
    return order


def _name(branch: Any) -> str:
    return str(branch.operands[0].name)


def _of(source: Any, lanes: NDArray[np.int64]) -> Any:
    return source[lanes] if np.ndim(source) else int(source)

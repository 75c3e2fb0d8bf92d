"""Finds the loops in which threads wait for others.

A loop that stores nothing, and goes on or ends by what it reads, waits for who writes
there: its volatile read is meant to meet a write at any time. A volatile read anywhere
else takes the first value that comes, whatever other threads are about.
"""

from __future__ import annotations

from dataclasses import dataclass

from warpbook_labs.engines.interpreter.ptx.text.loops import (
    loop_ranges,
    results,
    sources,
)
from warpbook_labs.engines.interpreter.ptx.text.program import Instruction

_TESTS = frozenset({"test_wait", "try_wait"})


@dataclass(frozen=True)
class Polling:
    """What waits, by its place in the program."""

    #: reads that are meant to meet a write
    reads: frozenset[int]
    #: atomic operations by which threads take turns, as of a lock
    takes: frozenset[int]


def polling(code: list[Instruction], labels: dict[str, int]) -> Polling:
    """Find what waits in a program."""
    reads, takes = set(), set()
    loops = sorted(loop_ranges(code, labels), key=lambda loop: loop[1] - loop[0])
    for pc, instruction in enumerate(code):
        of_loop = next((loop for loop in loops if loop[0] <= pc <= loop[1]), None)
        if of_loop is None:
            continue
        inside = code[of_loop[0] : of_loop[1] + 1]
        if instruction.name == "mbarrier" and _TESTS & set(instruction.modifiers):
            takes.add(pc)
        if instruction.name == "atom" and _takes(instruction, inside):
            takes.add(pc)
        if instruction.name == "ld" and _waits(instruction, inside):
            reads.add(pc)
    return Polling(frozenset(reads), frozenset(takes))


def _takes(atomic: Instruction, loop: list[Instruction]) -> bool:
    if "cas" in atomic.modifiers:
        return True
    alone = sum(instruction.name in ("atom", "red") for instruction in loop) == 1
    return alone and _waits(atomic, loop)


def _waits(reading: Instruction, loop: list[Instruction]) -> bool:
    """Tell whether a loop stores nothing, and branches by what it reads."""
    if any(instruction.name in ("st", "bar", "barrier") for instruction in loop):
        return False
    known = set(results(reading))
    while True:
        more = {
            result
            for instruction in loop
            if known & set(sources(instruction))
            for result in results(instruction)
        }
        if more <= known:
            break
        known |= more
    return any(
        instruction.name in ("bra", "brx") and known & set(sources(instruction))
        for instruction in loop
    )

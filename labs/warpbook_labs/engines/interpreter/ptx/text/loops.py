"""The loops of a program, and what decides whether threads leave them.

Compilers lay a loop out as a stretch of code that ends with a branch back to its
beginning. Its *control* is what its exits depend on: the registers of their conditions
and all that these are computed from within the loop, in turn.

Finds the loops in which threads wait for others.

A loop that stores nothing, and goes on or ends by what it reads, waits for who writes
there: its volatile read is meant to meet a write at any time. A volatile read anywhere
else takes the first value that comes, whatever other threads are about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from warpbook_labs.engines.interpreter.ptx.text.program import (
    Address,
    Instruction,
    Negated,
    Operand,
    Register,
    Symbol,
    parts_of,
)


def deciding_branches(successors: Sequence[Sequence[int]]) -> list[set[int]] | None:
    """Give for each node the nodes on whose choice it depends, directly or not.

    Args:
        successors: by node, which may come next; the number of nodes stands for the
            end.

    Returns:
        By node; None if some node can't reach the end.
    """
    parents = _post_dominators(successors)
    if parents is None:
        return None
    deciding: list[set[int]] = [set() for _ in successors]
    for branch, nodes in enumerate(successors):
        if len(set(nodes)) < 2:
            continue
        for first in nodes:
            node = first
            while node != parents[branch]:
                deciding[node].add(branch)
                node = parents[node]
    return [_with_deciding(direct, deciding) for direct in deciding]


def _with_deciding(direct: set[int], deciding: list[set[int]]) -> set[int]:
    """Add what decides about the branches themselves."""
    known, left = set(direct), list(direct)
    while left:
        new = deciding[left.pop()] - known
        known |= new
        left += new
    return known


def _post_dominators(successors: Sequence[Sequence[int]]) -> list[int] | None:
    """Give for each node the next one that every way from it to the end takes."""
    end = len(successors)
    order = _from_end(successors)
    if len(order) <= end:
        return None
    rank = {node: position for position, node in enumerate(order)}
    unknown = -1
    parents = [unknown] * (end + 1)
    parents[end] = end
    has_changed = True
    while has_changed:
        has_changed = False
        for node in reversed(order[:-1]):
            parent = unknown
            for following in successors[node]:
                if parents[following] == unknown:
                    continue
                if parent == unknown:
                    parent = following
                    continue
                other = following
                while parent != other:
                    if rank[parent] < rank[other]:
                        parent = parents[parent]
                    else:
                        other = parents[other]
            if parent != parents[node]:
                parents[node] = parent
                has_changed = True
    return parents


def _from_end(successors: Sequence[Sequence[int]]) -> list[int]:
    """Give the nodes that reach the end, in postorder of the reversed graph."""
    end = len(successors)
    predecessors: list[list[int]] = [[] for _ in range(end + 1)]
    for node, nodes in enumerate(successors):
        for following in nodes:
            predecessors[following].append(node)
    order: list[int] = []
    seen = {end}
    stack = [(end, iter(predecessors[end]))]
    while stack:
        node, left = stack[-1]
        before = next((other for other in left if other not in seen), None)
        if before is None:
            order.append(node)
            stack.pop()
        else:
            seen.add(before)
            stack.append((before, iter(predecessors[before])))
    return order


_TESTS = frozenset({"test_wait", "try_wait"})


@dataclass(frozen=True)
class Polling:
    """What waits, by its place in the program."""

    #: reads that are meant to meet a write
    reads: frozenset[int]
    #: atomic operations by which threads take turns, as of a lock
    takes: frozenset[int]


def polling(code: list[Instruction], labels: dict[str, int]) -> Polling:
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


#: they give no result in their first operand
_NO_RESULT = frozenset(
    {"st", "red", "bra", "brx", "bar", "barrier", "ret", "exit", "call"}
)
#: calls that may end the kernel
_GIVE_UP = frozenset({"__assertfail", "%room", "%no_function"})
_LEAVES = frozenset({"ret", "exit", "trap", "brkpt", "brx"})
#: what they give is not of the thread's own registers alone
_OUTSIDE = frozenset(
    {
        "ld",
        "ldu",
        "atom",
        "mbarrier",
        "tex",
        "tld4",
        "suld",
        "bar",
        "barrier",
        "call",
        "activemask",
    }
)
#: they read or write a flag that is no operand
_CARRIES = frozenset({"addc", "subc", "madc"})
_CHANGING = ("%clock", "%globaltimer", "%pm")


def sources(instruction: Instruction) -> Iterator[Operand]:
    """Give the operands that decide what an instruction does or gives."""
    guard = instruction.guard
    if guard is not None:
        yield guard.register if isinstance(guard, Negated) else guard
    operands = instruction.operands
    if instruction.name not in _NO_RESULT:
        operands = operands[1:]
    for operand in operands:
        if isinstance(operand, Negated):
            yield operand.register
        elif isinstance(operand, Address):
            yield operand.base
        else:
            yield from parts_of(operand)


def results(instruction: Instruction) -> tuple[Operand, ...]:
    if instruction.name in _NO_RESULT or not instruction.operands:
        return ()
    return parts_of(instruction.operands[0])


def name_of(operand: object) -> str:
    """Name a register that holds something; nothing for what is none."""
    if isinstance(operand, Register) and operand.name != "_":
        return operand.name
    return ""


def names_of(operands: Iterable[object]) -> list[str]:
    """Name the registers among operands."""
    return [name for operand in operands if (name := name_of(operand))]


def loop_ranges(
    code: list[Instruction], labels: dict[str, int]
) -> Iterator[tuple[int, int]]:
    """Give the first and the last instruction of each loop."""
    for pc, instruction in enumerate(code):
        target = _target(instruction, labels)
        if target is not None and target <= pc:
            yield target, pc


def _target(instruction: Instruction, labels: dict[str, int]) -> int | None:
    if instruction.name != "bra" or not isinstance(instruction.operands[0], Symbol):
        return None
    return labels.get(instruction.operands[0].name)


@dataclass(frozen=True)
class Loop:
    """One loop; it ends with the branch back."""

    code: list[Instruction]
    labels: dict[str, int]
    begin: int
    end: int

    @property
    def places(self) -> range:
        return range(self.begin, self.end + 1)

    @property
    def lines(self) -> tuple[int, int] | None:
        """Give its first and its last line of the source, if they are known."""
        lines = [line for pc in self.places if (line := self.code[pc].line)]
        return (min(lines), max(lines)) if lines else None

    @cached_property
    def exits(self) -> tuple[int, ...]:
        """Give the places at which threads may leave it."""
        return tuple(pc for pc in self.places if self._leaves(pc))

    def _leaves(self, pc: int) -> bool:
        instruction = self.code[pc]
        if instruction.name in _LEAVES:
            return True
        if instruction.name == "call" and _GIVE_UP & set(instruction.modifiers):
            return True
        if pc == self.end:
            return instruction.guard is not None
        target = _target(instruction, self.labels)
        return target is not None and target not in self.places

    @cached_property
    def control(self) -> frozenset[str] | None:
        """Name the registers on which its exits depend.

        None where memory, other threads or a clock have a part in it.
        """
        names: set[str] = set()
        for pc in self.exits:
            conditions = self._conditions(pc)
            if self.code[pc].name == "brx" or conditions is None:
                return None
            names |= conditions
        while True:
            more = set(names)
            for pc in self.places:
                instruction = self.code[pc]
                given = {register.name for register in _registers(results(instruction))}
                if _reduces(instruction):
                    given |= {
                        register.name for register in _registers(instruction.operands)
                    }
                if not given & names:
                    continue
                if not _is_own(instruction):
                    return None
                more |= {register.name for register in _registers(sources(instruction))}
                more |= self._conditions(pc) or set()
            if any(name.startswith(_CHANGING) for name in more):
                return None
            if more == names:
                return frozenset(names)
            names = more

    @cached_property
    def _deciding(self) -> list[set[int]] | None:
        """Give for each place the branches that decide whether a round reaches it.

        A round ends with a branch back to the beginning, or where threads leave.
        """
        end = len(self.places)
        successors = []
        for pc in self.places:
            instruction = self.code[pc]
            target = _target(instruction, self.labels)
            nodes = []
            if instruction.name == "bra":
                if target is None:
                    return None
                stays = target in self.places and target != self.begin
                nodes.append(target - self.begin if stays else end)
            elif self._leaves(pc) and instruction.name != "call":
                nodes.append(end)
            if not nodes or instruction.guard is not None:
                nodes.append(pc + 1 - self.begin)
            successors.append(nodes)
        return deciding_branches(successors)

    def _conditions(self, at: int) -> set[str] | None:
        """Name what decides whether a place is reached, and whether it does anything.

        None if that can't be told.
        """
        if self._deciding is None:
            return None
        names = _guard(self.code[at])
        return names.union(
            *(
                _guard(self.code[self.begin + branch])
                for branch in self._deciding[at - self.begin]
            )
        )


def _registers(operands: object) -> list[Register]:
    assert isinstance(operands, Iterator | tuple)
    return [operand for operand in operands if isinstance(operand, Register)]


def _guard(instruction: Instruction) -> set[str]:
    guard = instruction.guard
    if guard is None:
        return set()
    return {guard.register.name if isinstance(guard, Negated) else guard.name}


def _reduces(instruction: Instruction) -> bool:
    """Tell a barrier that gives a result."""
    return instruction.name in ("bar", "barrier") and "red" in instruction.modifiers


def _is_own(instruction: Instruction) -> bool:
    """Tell whether a result comes of the thread's own registers alone."""
    if instruction.name in _OUTSIDE or instruction.is_warp_wide:
        return False
    return not ("cc" in instruction.modifiers or instruction.name in _CARRIES)

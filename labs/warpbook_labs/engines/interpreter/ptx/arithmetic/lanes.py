"""The threads that run at once, and their registers: one array for each register.

Whole blocks run side by side, each in a slot of its own. A block has a whole number
of warps; lanes beyond its threads do not exist.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.interpreter.ptx.text.errors import Unsupported
from warpbook_labs.engines.interpreter.ptx.text.program import (
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Symbol,
)
from warpbook_labs.engines.interpreter.ptx.text.values import DTYPES, Bools, Values

WARP = 32
Dim = tuple[int, int, int]
#: does what an instruction does, for some lanes or (None) for all
Step = Callable[[Bools | None], None]


class Lanes:
    """The registers of all threads that run at once."""

    def __init__(
        self,
        grid: Dim,
        block: Dim,
        slots: int,
        types: dict[str, str],
        address_of: Callable[[Symbol], int | Values],
    ) -> None:
        """Make room for some blocks.

        Args:
            block: threads of a block in x, y and z.
            address_of: tells where a variable is; for each lane, if that differs.
        """
        self.grid, self.block = grid, block
        self.threads = block[0] * block[1] * block[2]
        self.warps = -(-self.threads // WARP)
        self.per_block = self.warps * WARP
        self.slots = slots
        self.count = slots * self.per_block
        self._address_of = address_of
        self._registers = {
            name: np.zeros(self.count, _container(type_))
            for name, type_ in types.items()
        }
        in_block = np.arange(self.count, dtype=np.int64) % self.per_block
        self.slot: NDArray[np.int64] = np.arange(self.count) // self.per_block
        self.lane: NDArray[np.int64] = np.arange(self.count) % WARP
        self.in_block = in_block
        self.exists: Bools = in_block < self.threads
        #: in the grid, with room for lanes that do not exist
        self.thread = np.zeros(self.count, np.int32)
        #: what a clock tells each time that it is read
        self.ticks = itertools.count(37, 37)
        self._special = self._fixed(in_block)
        for name in ("%ctaid.x", "%ctaid.y", "%ctaid.z"):
            self._special[name] = np.zeros(self.count, np.uint32)

    def _fixed(self, in_block: NDArray[np.int64]) -> dict[str, Values]:
        x, y, _ = self.block
        bit = np.uint32(1) << self.lane.astype(np.uint32)
        special: dict[str, Values] = {
            "%tid.x": in_block % x,
            "%tid.y": in_block // x % y,
            "%tid.z": in_block // (x * y),
            "%laneid": self.lane,
            "%warpid": in_block // WARP,
            "%nwarpid": np.full(self.count, self.warps),
            "%lanemask_eq": bit,
            "%lanemask_lt": bit - np.uint32(1),
            "%lanemask_le": (bit - np.uint32(1)) | bit,
            "%lanemask_gt": ~((bit - np.uint32(1)) | bit),
            "%lanemask_ge": ~(bit - np.uint32(1)),
        }
        for at, axis in enumerate("xyz"):
            special[f"%ntid.{axis}"] = np.full(self.count, self.block[at])
            special[f"%nctaid.{axis}"] = np.full(self.count, self.grid[at])
        return {name: values.astype(np.uint32) for name, values in special.items()}

    def begin(self, first: int) -> Bools:
        """Take the blocks from this number on; give the lanes that have work."""
        block = first + self.slot
        x, y, z = self.grid
        self._special["%ctaid.x"][:] = block % x
        self._special["%ctaid.y"][:] = block // x % y
        self._special["%ctaid.z"][:] = block // (x * y)
        self.thread[:] = block * self.per_block + self.in_block
        for register in self._registers.values():
            register[:] = 0
        works: Bools = self.exists & (block < x * y * z)
        return works

    def name_of(self, thread: int) -> str:
        block, inside = divmod(int(thread), self.per_block)
        return (
            f"thread {_place(inside, self.block)} of block {_place(block, self.grid)}"
        )

    def words_of(self, lane: int) -> str:
        """Name the thread that a lane is now."""
        return self.name_of(int(self.thread[lane]))

    def source(self, operand: Operand, type_: str) -> Any:
        """Give what an instruction reads: an array, or a number for all lanes.

        The array stays the same for as long as the lanes live.
        """
        dtype = _dtype(type_)
        if isinstance(operand, Register):
            return self._array(operand.name).view(dtype)
        if isinstance(operand, Immediate):
            return _constant(operand, dtype)
        if isinstance(operand, Symbol):
            address = self._address_of(operand)
            if isinstance(address, int):
                return np.uint64(address).astype(dtype)
            return address.astype(dtype)
        raise Unsupported(f"an operand {operand}")

    def target(self, operand: Operand, type_: str) -> Values:
        """Give the array that an instruction writes."""
        if not isinstance(operand, Register) or operand.name.startswith("%ctaid"):
            raise Unsupported(f"writing to {operand}")
        if operand.name == "_":
            return np.zeros(self.count, _container(type_)).view(_dtype(type_))
        return self._array(operand.name).view(_dtype(type_))

    def width_bytes(self, operand: Operand) -> int | None:
        """Give a register's width; None for what is none."""
        if isinstance(operand, Register) and operand.name != "_":
            return int(self._array(operand.name).itemsize)
        return None

    def register(self, name: str) -> Values:
        """Give a register of all lanes, which stays the same array.

        Raises:
            Unsupported: there is none of this name.
        """
        return self._array(name)

    def registers(self) -> list[Values]:
        return list(self._registers.values())

    def condition(self, guard: Register | Negated) -> Callable[[], Bools]:
        """Give what tells the lanes for which a predicate holds."""
        if isinstance(guard, Negated):
            negated = self._array(guard.register.name)
            return lambda: np.logical_not(negated)
        array = self._array(guard.name)
        return lambda: array

    def predicate(self, operand: Operand) -> Callable[[], Bools]:
        """Give the lanes for which an operand holds, asked at each step."""
        if isinstance(operand, Negated):
            return self.condition(operand)
        values = self.source(operand, "pred")
        return lambda: values

    def _array(self, name: str) -> Values:
        values = self._registers.get(name)
        if values is None:
            values = self._special.get(name)
        if values is None:
            raise Unsupported(f"the register {name.split('/')[0]}")
        return values


def _place(number: int, sizes: Dim) -> str:
    x, y, _ = sizes
    return f"({number % x}, {number // x % y}, {number // (x * y)})"


def _container(type_: str) -> np.dtype[Any]:
    dtype = _dtype(type_)
    return dtype if dtype == np.bool_ else np.dtype(f"u{dtype.itemsize}")


def _dtype(type_: str) -> np.dtype[Any]:
    dtype = DTYPES.get(type_)
    if dtype is None:
        raise Unsupported(f"the type .{type_}")
    return dtype


def _constant(operand: Immediate, dtype: np.dtype[Any]) -> Any:
    if operand.float_bits:
        bits = np.array(operand.bits, f"u{operand.float_bits // 8}")
        number = bits.view(f"f{operand.float_bits // 8}")
        if dtype.kind == "f":
            return number.astype(dtype)[()]
        return bits.astype(dtype)[()]
    if dtype == np.bool_:
        return np.bool_(operand.bits)
    if dtype.kind == "f":
        return dtype.type(operand.bits)
    mask = (1 << 8 * dtype.itemsize) - 1
    unsigned = np.array(operand.bits & mask, f"u{dtype.itemsize}")
    return unsigned.view(dtype)[()]


def put(target: Values, values: Any, mask: Bools | None) -> None:
    """Write values of some lanes, or of all."""
    if mask is None:
        target[...] = values
    else:
        np.copyto(target, values, where=mask)


def computed(target: Values, compute: Callable[[], Any]) -> Step:
    """Make the step that writes what is computed then."""
    return lambda mask: put(target, compute(), mask)


def type_of(instruction: Instruction) -> str:
    """Give the last modifier, which is the type of most instructions."""
    if not instruction.modifiers:
        raise Unsupported(instruction.text, instruction.line)
    return instruction.modifiers[-1]

"""How many warps a multiprocessor holds at once, and what allows no more.

The limits are those of the CUDA C++ Programming Guide ("Technical Specifications per
Compute Capability"), and the arithmetic is what NVIDIA's own `cuda_occupancy.h` does:
registers are given to whole warps in units, from four files of which each serves a
quarter of the warps; shared memory is given to blocks in units.
"""

from __future__ import annotations

from typing import NamedTuple

WARP = 32
#: registers are given out to a warp in units of so many
REGISTER_UNIT = 256
_MOST_REGISTERS = 256
_MOST_THREADS_PER_BLOCK = 1024
_REGISTERS_PER_BLOCK = 65536
#: parts of a multiprocessor, each with registers and a scheduler of its own
PARTS = 4


class Multiprocessor(NamedTuple):
    """What one multiprocessor can hold."""

    max_warps: int
    max_blocks: int
    shared_bytes: int
    registers: int = 65536
    #: of shared memory, taken by CUDA itself in each block
    reserved_shared_bytes: int = 1024
    #: shared memory is given out in units of so many bytes
    shared_unit_bytes: int = 128


class Occupancy(NamedTuple):
    """What a multiprocessor holds of one kernel."""

    blocks: int
    warps: int
    max_warps: int
    #: what allows no more blocks: "threads", "blocks", "registers", "shared memory";
    #: empty where not even one fits
    limited_by: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Give the warps held, of those that there is room for."""
        return self.warps / self.max_warps


_TURING_UNITS = {"reserved_shared_bytes": 0, "shared_unit_bytes": 256}
#: by compute capability
MULTIPROCESSORS = {
    (7, 0): Multiprocessor(64, 32, 96 << 10, **_TURING_UNITS),
    (7, 5): Multiprocessor(32, 16, 64 << 10, **_TURING_UNITS),
    (8, 0): Multiprocessor(64, 32, 164 << 10),
    (8, 6): Multiprocessor(48, 16, 100 << 10),
    (8, 7): Multiprocessor(48, 16, 164 << 10),
    (8, 9): Multiprocessor(48, 24, 100 << 10),
    (9, 0): Multiprocessor(64, 32, 228 << 10),
    (10, 0): Multiprocessor(64, 32, 228 << 10),
    (10, 3): Multiprocessor(64, 32, 228 << 10),
    (12, 0): Multiprocessor(48, 24, 100 << 10),
    (12, 1): Multiprocessor(48, 24, 100 << 10),
}


def occupancy(
    held: Multiprocessor, threads: int, registers: int, shared_bytes: int
) -> Occupancy:
    """Count the blocks of a kernel that a multiprocessor holds at once.

    Args:
        held: the multiprocessor.
        threads: of a block.
        registers: of a thread, as the compiler tells them.
        shared_bytes: of a block, static and dynamic.
    """
    warps = -(-threads // WARP)
    a_warp = -(-registers * WARP // REGISTER_UNIT) * REGISTER_UNIT
    shared = shared_bytes + held.reserved_shared_bytes
    shared = -(-shared // held.shared_unit_bytes) * held.shared_unit_bytes
    # when a block is launched, registers are asked of all four parts alike
    registers_needed = a_warp * -(-warps // PARTS) * PARTS
    if (
        not 0 < threads <= _MOST_THREADS_PER_BLOCK
        or registers > _MOST_REGISTERS
        or registers_needed > _REGISTERS_PER_BLOCK
    ):
        return Occupancy(0, 0, held.max_warps, ())
    allowed = {
        "threads": held.max_warps // warps,
        "blocks": held.max_blocks,
        "shared memory": held.shared_bytes // shared if shared else held.max_blocks,
    }
    if a_warp:
        by_registers = held.registers // PARTS // a_warp * PARTS
        allowed["registers"] = by_registers // warps
    blocks = min(allowed.values())
    limited_by = tuple(name for name, most in allowed.items() if most == blocks)
    return Occupancy(
        blocks, blocks * warps, held.max_warps, limited_by if blocks else ()
    )

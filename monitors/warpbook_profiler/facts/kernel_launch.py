"""What a launch tells: what somebody's own kernel is, and why one is slow.

A kernel that passes over arrays once holds what it reads in registers, needs next to no
shared memory, and is over when as much has been moved. A product of tiles in Triton
stages its operands in much shared memory and adds up in many registers. What is
neither, a loop in each thread or a grid that strides, stays unknown.

A kernel that stays far below its GPU's ceilings is short, leaves multiprocessors
without blocks, ends with a round that few blocks fill, or holds too few warps to hide
its waits; else its launch does not tell why, and samples of its warps may.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from warpbook_profiler.events.columns import KernelShape
from warpbook_profiler.events.run import GpuLimits
from warpbook_profiler.facts.kernels import resident, uses_tensor_cores
from warpbook_profiler.model.ceilings import ceilings
from warpbook_profiler.model.figures import Slowness, Wait

#: a reduction among the warps of a block needs no more
_LITTLE_SHARED_BYTES = 2048
#: of a register; one that a thread fills from memory once
_REGISTER_BYTES = 4
#: threads of a GPU with fewer have not begun at about the same time
_LEAST_BLOCKS_PER_SM = 2
_TILES_SHARED_BYTES, _TILES_REGISTERS = 24 << 10, 64
#: what people call products that they write in Triton, whose kernels are plain names
_TILES = re.compile(r"\w*(matmul|gemm|attn|attention|flash|mha)\w*$")
#: beginning and ending take a few microseconds
_SHORT_NS = 10_000
#: of all rounds of blocks, what is filled, below which the last one costs too much
_FILLED = 0.8
#: of a multiprocessor's warps, below which waits for memory show
_FEW_WARPS = 0.25


class Launched(NamedTuple):
    """Kernels of one name and one launch shape."""

    name: str
    shape: KernelShape | None
    gpu: GpuLimits | None
    #: the mean of them
    time_ns: float
    #: what most of its warps wait for, where they were sampled
    wait: Wait | None = None


def passes_once(kernel: Launched) -> bool:
    """Tell whether a kernel takes as long as one pass over what its threads can hold.

    At the GPU's ceiling of memory its threads move no more in its time than fits into
    their registers. Who computes long with each number, or loops, takes longer.
    """
    shape, gpu = kernel.shape, kernel.gpu
    if shape is None or gpu is None or not gpu.sm_count:
        return False
    best = ceilings(gpu.name) or gpu.reached
    threads = shape.blocks * shape.threads_per_block
    if best is None or not threads:
        return False
    if shape.shared_memory_bytes > _LITTLE_SHARED_BYTES:
        return False
    if shape.blocks < _LEAST_BLOCKS_PER_SM * gpu.sm_count:
        return False
    moved_bytes = kernel.time_ns * 1e-9 * best.memory_bytes_per_s / threads
    return moved_bytes <= _REGISTER_BYTES * shape.registers_per_thread


def computes_tiles(kernel: Launched) -> bool:
    """Tell whether a kernel is a product of tiles, by its name and its launch."""
    shape = kernel.shape
    if shape is None or not _TILES.match(kernel.name):
        return False
    # Triton's blocks are whole warps in one dimension
    _, block_y, block_z = shape.block
    return (
        block_y == block_z == 1
        and shape.shared_memory_bytes >= _TILES_SHARED_BYTES
        and shape.registers_per_thread >= _TILES_REGISTERS
    )


def slowness(kernel: Launched) -> Slowness:
    """Tell why a kernel that is far from its roof is: by its launch, or its samples."""
    shape, gpu = kernel.shape, kernel.gpu
    untold: Slowness = kernel.wait or "untold"
    if kernel.time_ns < _SHORT_NS:
        return "short"
    if shape is None or gpu is None or not gpu.sm_count:
        return untold
    if shape.blocks < gpu.sm_count:
        return "few blocks"
    held = resident(shape, gpu)
    if held is None or not held.blocks:
        return untold
    rounds = shape.blocks / (held.blocks * gpu.sm_count)
    if rounds > 1 and rounds / math.ceil(rounds) < _FILLED:
        return "last round"
    # a product of tiles needs no more warps: it has its operands at hand
    if held.ratio < _FEW_WARPS and uses_tensor_cores(kernel.name) is not True:
        return "few warps"
    return untold

"""What would make copies and arithmetic faster, and by which technique."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook_monitors.units import size
from warpbook_profiler.facts.kernel_work import (
    FP64,
    TENSOR,
    TENSOR_4_BIT,
    TENSOR_8_BIT,
)
from warpbook_profiler.model.figures import CopyTotal, KernelWork, Slowness, Topic

#: the technique, where it has a name here, and what to do in words
Advice = tuple[Topic | None, str]

_ON_TENSOR_CORES: Advice = (
    "tensor-cores",
    "Use the tensor cores: bf16, or TF32 by "
    "torch.set_float32_matmul_precision('high').",
)
_IN_FP8: Advice = (
    "fp8",
    "The tensor cores are the right unit: only a smaller dtype (this GPU has FP8) or "
    "fewer FLOPs make it faster.",
)
#: of a unit, the technique and the change; any other should be the tensor cores
_FASTER: dict[str, Advice] = {
    TENSOR: (
        "int8",
        "The tensor cores are the right unit: only a smaller dtype or fewer FLOPs "
        "make it faster.",
    ),
    TENSOR_8_BIT: (
        None,
        "The dtype is already small: only fewer FLOPs, or matrices large enough for "
        "larger tiles, make it faster.",
    ),
    TENSOR_4_BIT: (
        None,
        "No dtype is smaller: only fewer FLOPs, or matrices large enough for larger "
        "tiles, make it faster.",
    ),
    FP64: (
        "tensor-cores",
        "Is float64 needed? bf16, or float32 as TF32 by "
        "torch.set_float32_matmul_precision('high'), is many times as fast on the "
        "tensor cores.",
    ),
}
#: of kernels that are far from their roof, by why they are
_NEARER: dict[Slowness, str] = {
    "short": "Give each launch more to do: larger batches, or fuse (torch.compile).",
    "few blocks": (
        "Split the work into more blocks, also along the summed dimension, or run "
        "other kernels at the same time on another stream."
    ),
    "last round": (
        "Make the blocks fill whole waves: choose other tiles or sizes, a larger "
        "batch, or persistent blocks that take the next tile."
    ),
    "few warps": (
        "Use fewer registers or less shared memory, or smaller blocks, so that more "
        "warps hide the waits."
    ),
    "untold": (
        "Another kernel may come nearer: try sizes in multiples of 8, contiguous "
        "tensors, another backend or a newer library."
    ),
    "device memory": (
        "Let the threads of a warp access neighbouring addresses, keep reused data in "
        "registers or shared memory, and start more loads before the first is used."
    ),
    "shared memory": (
        "Look for bank conflicts, use fewer and wider reads of shared memory, and look "
        "for sines, exponentials and roots."
    ),
    "barriers": (
        "Give the warps of a block equal work before a barrier, or use fewer barriers "
        "or smaller blocks."
    ),
    "arithmetic": (
        "Do less arithmetic, or on another unit: a smaller dtype, tensor cores, no "
        "double precision."
    ),
    "latency": (
        "Let each thread compute several independent results, or launch more warps."
    ),
    "issue": "Warps are always ready: only fewer instructions make it faster.",
}
#: of so many copies that carry less each, most of the time lies between them: 2.3 µs
#: were measured between two, in which PCIe 5 carries 127 KB
_MANY_COPIES, _SMALL_COPY_BYTES = 50, 64 << 10
#: of the kernels' time, from which the others are too little to fuse with
_ALONE_SHARE = 0.95
#: of the ceiling, below which a kernel is slow for another reason than its bytes
_LOW_SHARE = 0.5


def copied_better(copies: CopyTotal) -> Advice:
    """Say what to change about copies between host and GPU."""
    if not copies.host_memory:
        return "copy-overlap", (
            "Copy less, or overlap copies with kernels on another stream. The trace "
            "does not show the kind of memory."
        )
    if copies.host_memory != "pinned":
        return "pinned-memory", (
            "Copy from pinned memory with non_blocking=True, and overlap copies with "
            "kernels on another stream."
        )
    if copies.calls >= _MANY_COPIES and copies.size_bytes is not None:
        each_bytes = copies.size_bytes / copies.calls
        if each_bytes < _SMALL_COPY_BYTES:
            return "zero-copy", (
                f"The memory is already pinned, and {copies.calls:,} copies carry "
                f"{size(each_bytes)} each: copy adjacent data at once, or let one "
                "kernel read scattered rows over the link itself."
            )
    return "copy-overlap", (
        "The memory is already pinned: copy less, or overlap copies with kernels on "
        "another stream."
    )


def computed_better(unit: str, has_fp8: bool) -> Advice:
    """Say what to change about kernels that a unit's arithmetic bounds.

    Args:
        unit: one of `kernel_work`.
        has_fp8: the GPU's tensor cores take FP8.
    """
    if unit == TENSOR and has_fp8:
        return _IN_FP8
    return _FASTER.get(unit, _ON_TENSOR_CORES)


def nearer(why: Slowness, *, of_nvidia: bool) -> str:
    """Say what brings kernels nearer to their roof, which a smaller dtype does not."""
    looks = " Its stalls (%%gpuprof --stalls) show where its warps wait."
    return _NEARER[why] + (looks if why == "untold" and of_nvidia else "")


def moved_better(work: KernelWork, all_work: Sequence[KernelWork]) -> str:
    """Say what to change about kernels that the device's memory bounds.

    Args:
        work: these kernels.
        all_work: the kernels of the window by their limit, these among them.
    """
    total_ns = sum(row.time_ns for row in all_work)
    if work.kinds != 1 or work.time_ns < _ALONE_SHARE * total_ns:
        return "Move fewer bytes: fuse kernels (torch.compile) or use a smaller dtype."
    reached = work.of_ceiling if work.of_measured is None else work.of_measured
    fewer = "A smaller dtype moves fewer bytes."
    if reached is not None and reached < _LOW_SHARE:
        fewer = "Another layout of its tensors, or another kernel, may come nearer."
    if work.kernels == 1:
        return f"That is one kernel: there is nothing to fuse. {fewer}"
    return (
        f"That is one kernel, launched {work.kernels:,} times: there is nothing to "
        f"fuse unless one launch reads what the launch before it wrote. {fewer}"
    )

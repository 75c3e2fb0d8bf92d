"""What torch's caching allocator counts, read without disturbing torch.

torch is never imported, CUDA never set up, and nothing waits for the GPU.
"""

from __future__ import annotations

import sys
from typing import Any

from warpbook.protocol import Allocator

#: by CUDA's index: how often memory had been freed and asked for again
Retries = dict[int, int]


def begin_cell() -> Retries:
    """Let the peaks count from now on; give what `end_cell` compares with."""
    cuda = _cuda_in_use()
    if cuda is None:
        return {}
    retries = {}
    for index in range(cuda.device_count()):
        stats = _stats(cuda, index)
        if stats is not None:
            cuda.reset_peak_memory_stats(index)
            retries[index] = stats["num_alloc_retries"]
    return retries


def end_cell(before: Retries) -> tuple[Allocator, ...]:
    """Give the counts of each GPU where torch had memory; their UUIDs are left out."""
    cuda = _cuda_in_use()
    if cuda is None:
        return ()
    allocators = []
    for index in range(cuda.device_count()):
        stats = _stats(cuda, index)
        if stats is None or not stats["reserved_bytes"]["all"]["peak"]:
            continue
        allocated = stats["allocated_bytes"]["all"]
        allocators.append(
            Allocator(
                index=index,
                uuid=None,
                allocated_bytes=allocated["current"],
                reserved_bytes=stats["reserved_bytes"]["all"]["current"],
                peak_allocated_bytes=allocated["peak"],
                # a cell may have had torch count from zero
                retries=max(stats["num_alloc_retries"] - before.get(index, 0), 0),
            )
        )
    return tuple(allocators)


def gpu_uuid(index: int) -> str | None:
    """Give the UUID of a GPU as NVML writes it; asking takes longer than counting."""
    cuda = _cuda_in_use()
    # the index may come from a message, which may say anything
    if cuda is None or index >= cuda.device_count():
        return None
    # torch tells it since 2.5
    uuid = getattr(cuda.get_device_properties(index), "uuid", None)
    return None if uuid is None else f"GPU-{uuid}"


def _cuda_in_use() -> Any:
    """Give torch.cuda if this process has set CUDA up, else None."""
    cuda = sys.modules.get("torch.cuda")
    # while another thread imports torch, the module may be half there
    is_initialized = getattr(cuda, "is_initialized", None)
    return cuda if is_initialized is not None and is_initialized() else None


def _stats(cuda: Any, index: int) -> dict[str, Any] | None:
    """Give the counts as torch keeps them: memory_stats() only sorts them anew."""
    try:
        stats: dict[str, Any] = cuda.memory.memory_stats_as_nested_dict(index)
        return stats if "allocated_bytes" in stats else None
    except RuntimeError:
        # an allocator that was plugged in counts nothing
        return None

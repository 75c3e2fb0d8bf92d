"""What a program asks of the GPU itself: which one is current, what it is, its memory.

PyTorch's Python asks `torch._C`, of which a build for the CPU lacks these functions:
they are answered here, and all that is built upon them works.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from warpbook_labs.engines.simulated.pytorch import current

#: as `torch.cuda.get_device_properties` gives them of an NVIDIA H200, driver 580.159.04
_PROPERTIES = SimpleNamespace(
    name="simulated H200",
    major=9,
    minor=0,
    total_memory=150_109_880_320,
    multi_processor_count=132,
    warp_size=32,
    max_threads_per_block=1024,
    max_threads_per_multi_processor=2048,
    regs_per_multiprocessor=65_536,
    shared_memory_per_block=49_152,
    shared_memory_per_block_optin=232_448,
    shared_memory_per_multiprocessor=233_472,
    L2_cache_size=62_914_560,
    memory_bus_width=6016,
    is_integrated=0,
    is_multi_gpu_board=0,
    gcnArchName="simulated H200",
)
_POOLS = ("all", "small_pool", "large_pool")
_HELD = ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes")
#: that `torch.cuda.memory_summary` shows, beside these
_NEVER_MORE = ("allocation", "segment", "active", "inactive_split")
_NEVER = ("inactive_split_bytes", *_NEVER_MORE)


def _memory_stats(device: int) -> dict[str, Any]:
    """Tell what tensors hold; the simulated GPU caches nothing beside it."""
    memories = current.machine().memories
    held = {"current": memories.allocated, "peak": memories.most_allocated}
    none = dict.fromkeys(("current", "peak", "allocated", "freed"), 0)
    stats: dict[str, Any] = {
        name: {pool: {**none, **(held if name in _HELD else {})} for pool in _POOLS}
        for name in (*_HELD, *_NEVER)
    }
    return {
        **stats,
        "oversize_allocations": none,
        "oversize_segments": none,
        **dict.fromkeys(("num_alloc_retries", "num_ooms", "max_split_size"), 0),
    }


def _memory_info(device: Any = None) -> tuple[int, int]:
    """Give the bytes that are free, and all that there are."""
    total = _PROPERTIES.total_memory
    return total - current.machine().memories.allocated, total


def _exchange(device: int) -> int:
    """Make a device the current one, and give the one before.

    Raises:
        RuntimeError: there is one GPU only.
    """
    if device > 0:
        raise RuntimeError("CUDA error: invalid device ordinal")
    return min(device, 0)


def _reset_peak(device: int) -> None:
    current.machine().memories.reset_peak()


def _synchronize(device: int) -> None:
    current.machine().order.synchronize_device()


def _nothing(*_: Any) -> None:
    """Change nothing: there is no cache, and no other process."""


def install() -> None:
    """Answer in the place of the functions that are missing."""
    by_name: dict[str, Callable[..., Any]] = {
        "_cuda_getDevice": lambda: 0,
        "_cuda_setDevice": _exchange,
        "_cuda_exchangeDevice": _exchange,
        "_cuda_maybeExchangeDevice": _exchange,
        "_cuda_memoryStats": _memory_stats,
        "_cuda_resetPeakMemoryStats": _reset_peak,
        "_cuda_resetAccumulatedMemoryStats": _nothing,
        "_cuda_emptyCache": _nothing,
        "_cuda_ipc_collect": _nothing,
        "_cuda_canDeviceAccessPeer": lambda device, other: False,
        "_cuda_getAllocatorBackend": lambda: "native",
        "_accelerator_getDeviceIndex": lambda: 0,
        "_accelerator_setDeviceIndex": _exchange,
        "_accelerator_exchangeDevice": _exchange,
        "_accelerator_maybeExchangeDevice": _exchange,
        "_accelerator_synchronizeDevice": _synchronize,
        "_accelerator_isAllocatorInitialized": lambda: True,
        "_accelerator_getDeviceStats": _memory_stats,
        "_accelerator_resetPeakStats": _reset_peak,
        "_accelerator_resetAccumulatedStats": _nothing,
        "_accelerator_getMemoryInfo": _memory_info,
        "_accelerator_emptyCache": _nothing,
        "_host_emptyCache": _nothing,
    }
    for name, function in by_name.items():
        setattr(torch._C, name, function)
    torch.cuda._exchange_device = torch.cuda._maybe_exchange_device = _exchange
    torch.cuda._get_device_properties = lambda device: _PROPERTIES
    torch.cuda.mem_get_info = torch.cuda.memory.mem_get_info = _memory_info
    torch.cuda.default_generators = (torch.default_generator,)
    torch.cuda.get_arch_list = lambda: ["sm_90"]
    torch.cuda.device_count = torch.accelerator.device_count = lambda: 1
    torch.backends.cuda.is_built = lambda: True
    torch.version.cuda = "13.0"

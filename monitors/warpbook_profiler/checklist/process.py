"""What only the process that ran the code knows; this module needs no torch."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from msgspec import Struct


class ProcessState(Struct, frozen=True):
    """Settings and sizes; None is "not known"."""

    #: torch.backends.cudnn.benchmark
    cudnn_benchmark: bool | None = None
    #: of the first GPU
    gpu_memory_bytes: int | None = None


def state_of_this_process() -> ProcessState:
    """Ask torch, if this process has loaded it; CUDA is not set up for it."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return ProcessState()
    total_bytes = None
    # a GPU that failed tells nothing
    with suppress(RuntimeError):
        if torch.cuda.is_initialized():
            total_bytes = int(torch.cuda.get_device_properties(0).total_memory)
    return ProcessState(bool(torch.backends.cudnn.benchmark), total_bytes)

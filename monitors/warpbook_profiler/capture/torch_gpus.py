"""What torch knows of the GPUs that this process works on, once CUDA is set up."""

from __future__ import annotations

import torch

from warpbook_profiler.capture.limits import LimitsUnreadable, limits_here
from warpbook_profiler.events.run import GpuLimits
from warpbook_profiler.model.errors import CaptureFailed
from warpbook_profiler.model.memory import Counts


def used_devices() -> list[int]:
    """Give the GPUs that hold this process's work; none without CUDA."""
    if not torch.cuda.is_initialized():
        return []
    current = torch.cuda.current_device()
    return [
        device
        for device in range(torch.cuda.device_count())
        if device == current or torch.cuda.memory_reserved(device)
    ]


def wait_for_gpu() -> None:
    """Wait until all work that this process has put on its GPUs is done.

    Raises:
        CaptureFailed: a GPU is in a state in which it can't be waited for.
    """
    try:
        for device in used_devices():
            torch.cuda.synchronize(device)
    except RuntimeError as problem:
        # torch adds lines about debugging
        said = str(problem).partition("\n")[0]
        raise CaptureFailed(
            f"Waiting for the GPU failed ({said}). After an error on the GPU itself, "
            "such as a failed assertion, only a restart of the kernel helps."
        ) from None


def launch_once() -> None:
    """Put a tiny kernel on the GPU and wait for it.

    The profiler's first buffer and the slow first launch under it, some 2 ms, are then
    over before the cell begins.
    """
    if torch.cuda.is_initialized():
        torch.cuda._sleep(1)
        torch.cuda.synchronize()


def gpu_name() -> str | None:
    """Name the GPUs that hold this process's work; None without CUDA."""
    if not torch.cuda.is_initialized():
        return None
    return ", ".join(map(torch.cuda.get_device_name, used_devices()))


def limits() -> tuple[tuple[GpuLimits, ...], tuple[str, ...]]:
    """Return what each GPU that this process sees can hold, by CUDA's index.

    Beside them is what is wrong with limits that were measured, in words.
    """
    if not torch.cuda.is_initialized():
        return (), ()
    gpus, problems = [], dict[str, None]()
    for device in range(torch.cuda.device_count()):
        properties, measured = torch.cuda.get_device_properties(device), None
        try:
            measured = limits_here(properties.name, str(torch.__version__))
        except LimitsUnreadable as problem:
            problems[str(problem)] = None
        gpus.append(
            GpuLimits(
                properties.name,
                (properties.major, properties.minor),
                properties.multi_processor_count,
                getattr(properties, "max_threads_per_multi_processor", None),
                getattr(properties, "regs_per_multiprocessor", None),
                getattr(properties, "shared_memory_per_multiprocessor", None),
                measured,
                properties.total_memory,
            )
        )
    return tuple(gpus), tuple(problems)


def allocator_counts() -> list[Counts]:
    """Give what torch's allocator counts on each GPU; nothing without CUDA."""
    if not torch.cuda.is_initialized():
        return []
    try:
        return [
            torch.cuda.memory_stats(device)
            for device in range(torch.cuda.device_count())
        ]
    except RuntimeError:
        # an allocator that was plugged in counts nothing
        return []

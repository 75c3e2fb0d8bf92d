"""A failed allocation of GPU memory: what its message tells, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from warpbook_monitors import units
from warpbook_monitors.memory.holders import DeviceHolders, Holder

_UNITS = {
    "b": 1,
    "byte": 1,
    "bytes": 1,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
#: digits are bounded: a person's message may hold any number of them
_SIZE = r"\b(\d[\d,]{0,20}(?:\.\d{1,6})?) ?([KMGT]iB|bytes?|B)\b"
#: no memory is larger
_MOST_BYTES = 2**60

#: in the words of torch since 2.1, torch before, CuPy and JAX
_ASKED = (rf"[Tt]ried to allocate {_SIZE}", rf"[Oo]ut of memory.*allocat\w+ {_SIZE}")
_FREE = (rf"of which {_SIZE} is free", rf"{_SIZE} free;")
_TOTAL = (rf"total capacity of {_SIZE}", rf"{_SIZE} total capacity")
_ALLOCATED = (
    rf"{_SIZE} is allocated by PyTorch",
    rf"{_SIZE} already allocated",
    rf"allocated so far: {_SIZE}",
)
_UNUSED = (rf"{_SIZE} is reserved by PyTorch but unallocated",)
_RESERVED = (rf"{_SIZE} reserved in total by PyTorch",)
_INDEX = re.compile(r"\bGPU (\d{1,3})\b")
#: a person's message may be of any length
_MAX_MESSAGE_LENGTH = 10_000


class FailedAllocation(Struct, frozen=True):
    """What a program knows of an allocation that failed; sizes are rounded."""

    asked_bytes: int | None = None
    free_bytes: int | None = None
    total_bytes: int | None = None
    #: by the library's own count, in this process
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    #: CUDA's index in this process, and the UUID where it is known
    device_index: int | None = None
    device_uuid: str | None = None


def parse(message: str) -> FailedAllocation:
    """Read the message of torch, CuPy or JAX; what is not in it is None."""
    message = message[:_MAX_MESSAGE_LENGTH]
    allocated = _find(_ALLOCATED, message)
    reserved = _find(_RESERVED, message)
    unused = _find(_UNUSED, message)
    if reserved is None and allocated is not None and unused is not None:
        reserved = allocated + unused
    index = _INDEX.search(message)
    return FailedAllocation(
        asked_bytes=_find(_ASKED, message),
        free_bytes=_find(_FREE, message),
        total_bytes=_find(_TOTAL, message),
        allocated_bytes=allocated,
        reserved_bytes=reserved,
        device_index=int(index[1]) if index else None,
    )


def explain(
    failed: FailedAllocation,
    gpu: str | None,
    holders: DeviceHolders | None,
    kernel_id: str,
) -> str:
    """Say in words what happened and what to do.

    Args:
        failed: what the program knew.
        gpu: which GPU it was, for a person.
        holders: who held its memory right afterwards; None where that is not known.
        kernel_id: whose allocation it was.
    """
    return " ".join(_sentences(failed, gpu, holders, kernel_id))


def with_counted(
    holders: DeviceHolders, failed: FailedAllocation, kernel_id: str
) -> DeviceHolders:
    """Put what the program counted into the holder that it is."""
    if failed.allocated_bytes is None:
        return holders
    return replace(
        holders,
        holders=tuple(
            replace(
                holder,
                allocated_bytes=failed.allocated_bytes,
                reserved_bytes=failed.reserved_bytes,
            )
            if holder.kernel_id == kernel_id and kernel_id
            else holder
            for holder in holders.holders
        ),
    )


def _sentences(
    failed: FailedAllocation,
    gpu: str | None,
    holders: DeviceHolders | None,
    kernel_id: str,
) -> Iterator[str]:
    request, free, total = failed.asked_bytes, failed.free_bytes, failed.total_bytes
    what = "Memory" if request is None else units.size(request)
    yield f"{what} was asked for on {gpu or 'the GPU'}" + _left(free, total) + "."
    unused = None
    if failed.reserved_bytes is not None and failed.allocated_bytes is not None:
        unused = failed.reserved_bytes - failed.allocated_bytes
    if request is not None and total is not None and request > total:
        yield "No GPU of this size has that much: allocate less at a time."
    elif request is not None and free is not None and request <= free:
        yield (
            "That much was free, so a limit set by the program itself stopped it "
            "(torch.cuda.set_per_process_memory_fraction, CuPy's set_limit)."
        )
    elif request is not None and unused is not None and request <= unused:
        yield (
            f"torch holds {units.size(unused)} that it does not use, in blocks that "
            "are too small: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
            "before torch is imported, or call torch.cuda.empty_cache() before this "
            "cell."
        )
    elif holders is None or not holders.holders:
        yield from _alone(failed)
    else:
        missing = None if request is None or free is None else request - free
        yield _advice(holders.holders, kernel_id, missing)


def _left(free: int | None, total: int | None) -> str:
    if free is None:
        return ""
    of = "" if total is None else f" of {units.size(total)}"
    return f", where {units.size(free)}{of} was free"


def _alone(failed: FailedAllocation) -> Iterator[str]:
    held = failed.reserved_bytes or failed.allocated_bytes
    if held is not None:
        yield f"This process holds {units.size(held)}."
    yield "It is not known here who else holds memory; nvidia-smi lists the processes."


def _advice(
    holders: tuple[Holder, ...], kernel_id: str, missing_bytes: int | None
) -> str:
    idle = [
        holder
        for holder in holders
        if holder.kind == "kernel"
        and holder.kernel_id != kernel_id
        and holder.execution_state == "idle"
        and holder.used_bytes is not None
        and holder.used_bytes >= (missing_bytes or 0)
    ]
    if idle:
        seconds = idle[0].idle_s
        since = "" if seconds is None else f" for {units.duration_about(seconds)}"
        return (
            f"“{idle[0].name}” holds {_held(idle[0])} and has run nothing{since}: "
            "restarting its kernel would free that."
        )
    most = max(holders, key=lambda holder: holder.used_bytes or 0)
    if most.used_bytes is None:
        return "The driver does not report how much each process holds."
    if most.kernel_id == kernel_id and kernel_id:
        return (
            f"This notebook itself holds most of it, {_held(most)}: process less at a "
            "time, delete what is not needed (%xdel, %reset), or restart its kernel."
        )
    if most.kind == "kernel":
        state = "is at work" if most.execution_state == "busy" else "may be at work"
        return (
            f"“{most.name}” holds {_held(most)} and {state}: wait for it, or restart "
            "its kernel."
        )
    if most.kind == "program":
        pids = ", ".join(map(str, most.pids))
        return (
            f"{most.name} (process {pids}) holds {_held(most)}: end it if it is not "
            "needed."
        )
    return (
        f"Other users hold {_held(most)}: wait, or use another GPU "
        "(CUDA_VISIBLE_DEVICES)."
    )


def _held(holder: Holder) -> str:
    return units.size(holder.used_bytes or 0)


def _find(patterns: tuple[str, ...], message: str) -> int | None:
    for pattern in patterns:
        match = re.search(pattern, message)
        if match:
            size = float(match[1].replace(",", "")) * _UNITS[match[2].lower()]
            return round(size) if size < _MOST_BYTES else None
    return None

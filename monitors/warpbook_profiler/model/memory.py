"""What one run did to the memory that torch's caching allocator holds.

torch keeps its peaks for the whole process, and can only forget them. They are the
user's, so they are never reset: a peak that rose in the run is the run's, one that did
not rise says nothing, and then only the recorded allocations tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

#: torch.cuda.memory_stats() of one GPU
Counts = Mapping[str, int]

_ALLOCATED = "allocated_bytes.all"
_RESERVED = "reserved_bytes.all"
_SPLIT = "inactive_split_bytes.all"


class MemoryUse(Struct, frozen=True):
    """One GPU; of other libraries' memory torch knows nothing."""

    device: int
    #: None where it is not known
    peak_allocated_bytes: int | None
    peak_reserved_bytes: int | None
    #: at the end; the changes since the start are negative where memory was freed
    allocated_bytes: int
    allocated_change_bytes: int
    reserved_bytes: int
    reserved_change_bytes: int
    #: of the reserved memory at the end, what lies unused in blocks that were split:
    #: it can't be given back to the driver, and serves only what fits in the pieces
    fragmentation_share: float | None
    #: how often memory was full, was given back, and was asked for again
    retries: int
    #: how often the driver was asked for memory (cudaMalloc), each a wait
    driver_allocations: int


def memory_use(
    before: Sequence[Counts],
    after: Sequence[Counts],
    peaks: Mapping[int, int] | None,
) -> tuple[MemoryUse, ...]:
    """Compare the counts of each GPU on which torch had memory.

    Args:
        before: the run.
        after: it.
        peaks: the most that was seen allocated on each GPU that allocated; None if
            allocations were not recorded.
    """
    # CUDA may have been set up by the run itself
    earlier = [*before, *({} for _ in after[len(before) :])]
    return tuple(
        _of_one(device, was, now, None if peaks is None else peaks.get(device, 0))
        for device, (was, now) in enumerate(zip(earlier, after, strict=True))
        if now.get(f"{_RESERVED}.peak", 0)
    )


def highest(peaks: Iterable[int | None]) -> int | None:
    """Give the highest of all GPUs; None if one is not known, or there is none."""
    listed = list(peaks)
    known = [peak for peak in listed if peak is not None]
    return max(known) if known and len(known) == len(listed) else None


def _of_one(device: int, was: Counts, now: Counts, seen: int | None) -> MemoryUse:
    def change(name: str) -> int:
        return now.get(name, 0) - was.get(name, 0)

    allocated, reserved = f"{_ALLOCATED}.current", f"{_RESERVED}.current"
    peak = _risen(was, now, _ALLOCATED)
    if seen is not None:
        peak = max(peak or 0, was.get(allocated, 0), seen)
    peak_reserved = _risen(was, now, _RESERVED)
    if peak_reserved is None and not change(_driver_count("free", now)):
        # nothing was given back, so it only grew
        peak_reserved = now[reserved]
    return MemoryUse(
        device=device,
        peak_allocated_bytes=peak,
        peak_reserved_bytes=peak_reserved,
        allocated_bytes=now[allocated],
        allocated_change_bytes=change(allocated),
        reserved_bytes=now[reserved],
        reserved_change_bytes=change(reserved),
        fragmentation_share=(
            now.get(f"{_SPLIT}.current", 0) / now[reserved] if now[reserved] else None
        ),
        # the run may have had torch count from zero
        retries=max(change("num_alloc_retries"), 0),
        driver_allocations=max(change(_driver_count("alloc", now)), 0),
    )


def _driver_count(what: str, counts: Counts) -> str:
    """Name the count of requests to the driver; before torch 2.5 segments stand for it.

    Segments that expand are only in the newer one.
    """
    newer = f"num_device_{what}"
    older = {"alloc": "segment.all.allocated", "free": "segment.all.freed"}
    return newer if newer in counts else older[what]


def _risen(was: Counts, now: Counts, name: str) -> int | None:
    """Give the process's peak if it is this run's: it is above the one before."""
    peak = now[f"{name}.peak"]
    return peak if peak > was.get(f"{name}.peak", 0) else None

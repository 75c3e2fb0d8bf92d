"""Which processes hold a GPU now, and how busy each has kept it since the last look."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec import Struct

from warpbook_monitors.errors import MonitorError
from warpbook_monitors.frames import Device
from warpbook_monitors.holders.identity import NOBODY_KNOWN, Identities
from warpbook_monitors.holders.shares import MOST_HOLDERS, Holder
from warpbook_monitors.nvml.gate import call
from warpbook_monitors.nvml.processes import GpuProcess, read_processes


class Held(Struct, frozen=True):
    """What a holder has of a GPU at one moment."""

    holder: Holder
    processes: int
    #: None where the driver does not tell
    memory_bytes: int | None
    #: share of time in which its kernels ran, 0 to 1; None where the driver can't tell
    busy_ratio: float | None


class HolderReader:
    """Asks NVML and the system; every call may block as long as the driver does."""

    def __init__(self) -> None:
        self._identities = Identities()
        self._asked_s: float | None = None

    def look(self, devices: Sequence[Device]) -> dict[str, tuple[Held, ...]]:
        """Give the holders by id of a GPU; those that can't be listed are left out.

        Those of a MIG instance count as holders of its GPU.
        """
        now_s = time.time()
        since_s = now_s if self._asked_s is None else self._asked_s
        processes: dict[str, list[GpuProcess]] = defaultdict(list)
        unlisted: set[str] = set()
        for device in devices:
            gpu = device.id if device.kind == "gpu" else str(device.facts.get("parent"))
            try:
                listing = read_processes(device)
            except MonitorError:
                unlisted.add(gpu)
                continue
            processes[gpu] += listing.processes
            if not listing.is_listed:
                unlisted.add(gpu)
        held = {}
        for device in devices:
            if device.kind == "gpu" and device.id not in unlisted:
                busy = _busy_by_pid(device, since_s)
                listed = {p.pid: p for p in processes[device.id] if p.pid is not None}
                nameless = [p for p in processes[device.id] if p.pid is None]
                held[device.id] = self._held((*listed.values(), *nameless), busy, now_s)
        self._asked_s = now_s
        return held

    def _held(
        self,
        processes: Iterable[GpuProcess],
        busy: dict[int, float] | None,
        listed_s: float,
    ) -> tuple[Held, ...]:
        by_holder: dict[Holder, list[GpuProcess]] = defaultdict(list)
        for process in processes:
            holder = NOBODY_KNOWN
            if process.pid is not None:
                holder = self._identities.holder(process.pid, listed_s)
            by_holder[holder].append(process)
        whole = [_sum(holder, listed, busy) for holder, listed in by_holder.items()]
        if len(whole) <= MOST_HOLDERS:
            return tuple(whole)
        # of a crowd, those who hold most; the rest is one that nobody knows
        whole.sort(key=lambda held: held.memory_bytes or 0, reverse=True)
        rest = {held.holder for held in whole[MOST_HOLDERS - 1 :]} | {NOBODY_KNOWN}
        crowd = [p for holder in rest for p in by_holder.get(holder, ())]
        kept = [held for held in whole if held.holder not in rest]
        return (*kept, _sum(NOBODY_KNOWN, crowd, busy))


def _sum(
    holder: Holder, processes: Sequence[GpuProcess], busy: dict[int, float] | None
) -> Held:
    sizes = [p.used_bytes for p in processes if p.used_bytes is not None]
    known = len(sizes) == len(processes)
    ratio = None
    if busy is not None and all(p.pid is not None for p in processes):
        ratios = [busy.get(p.pid, 0.0) for p in processes if p.pid]
        # of one that is unknown the sum is
        if not any(math.isnan(ratio) for ratio in ratios):
            ratio = min(sum(ratios), 1.0)
    return Held(holder, len(processes), sum(sizes) if known else None, ratio)


def _busy_by_pid(device: Device, since_s: float) -> dict[int, float] | None:
    """Give by PID the share of time in which its kernels ran; None if unknown.

    NaN is of a process of which the driver gave only what can't be.
    """
    if device.facts.get("mig_mode") == "enabled":
        return None
    try:
        uuid = device.id.partition(":")[2].encode()
        handle = call("nvmlDeviceGetHandleByUUID", uuid)
        samples = call("nvmlDeviceGetProcessUtilization", handle, int(since_s * 1e6))
    except MonitorError as problem:
        # no process has worked since
        return {} if "Not Found" in str(problem) else None
    ratios: dict[int, list[float]] = defaultdict(list)
    for sample in samples:
        seen = ratios[int(sample.pid)]
        if sample.smUtil <= 100:
            seen.append(sample.smUtil / 100)
    return {
        pid: sum(seen) / len(seen) if seen else math.nan for pid, seen in ratios.items()
    }

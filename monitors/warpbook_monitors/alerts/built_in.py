"""The rules that hold unless a rules file says otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from msgspec import Meta, Struct

from warpbook_monitors import units
from warpbook_monitors.alerts.faults import (
    CorrectedEcc,
    GpuLost,
    GpuStale,
    Monitor,
    Temperature,
    Throttling,
    UncorrectedEcc,
    Xid,
)
from warpbook_monitors.alerts.rule import Finding, Rule, Seconds, is_above
from warpbook_monitors.alerts.situation import Seen, Situation
from warpbook_monitors.memory.holders import Holder

Ratio = Annotated[float, Meta(ge=0, le=1)]


#: a GPU that does less, by NVML and by GPM, is idle
_IDLE_RATIO = 0.02


class MemoryFull(Rule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The next allocation may fail."""

    above_ratio: Ratio = 0.95
    #: it ends so far below
    clear_ratio: Ratio = 0.03

    def look(self, now: Situation) -> Iterable[Finding]:
        """Hold the used memory of each GPU against all that it has."""
        for gpu in now.gpus():
            used, total = gpu.most("memory_used_bytes"), gpu.fact("memory_total_bytes")
            share = used / total if used is not None and total else None
            yield Finding(
                gpu.device.id,
                is_above(share, self.above_ratio, self.above_ratio - self.clear_ratio),
                "warning",
                gpu.device.id,
                f"{gpu.label}: memory is almost full",
                f"{100 * (share or 0):.0f} % is in use: the next allocation may fail. "
                "Restart kernels that no longer need the GPU, or use smaller batches.",
            )


class IdleWhileBusy(Rule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cell runs on a kernel that uses the GPU, and the GPU does nothing."""

    for_s: Seconds = 60.0

    def look(self, now: Situation) -> Iterable[Finding]:
        """Find busy kernels all of whose GPUs are idle."""
        busy: dict[str, list[tuple[Seen, Holder]]] = {}
        for gpu, holder, kernel_id in _kernels(now):
            if holder.execution_state == "busy":
                busy.setdefault(kernel_id, []).append((gpu, holder))
        for kernel_id, uses in busy.items():
            idle = [is_idle(gpu) for gpu, _ in uses]
            gpu, holder = uses[0]
            labels = " and ".join(gpu.label for gpu, _ in uses)
            yield Finding(
                kernel_id,
                # one that works is enough, also where another can't be told
                False if False in idle else None if None in idle else True,
                "warning",
                gpu.device.id,
                f"{labels} idle while a cell runs",
                f"{_short(holder.name)} has been busy for "
                f"{units.duration_about(self.for_s)} without using "
                f"{labels}. It may wait for data or for the CPU, or hang: "
                "interrupt it, or profile a shorter run.",
                kernel_id,
            )


class HeldIdle(Rule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kernel keeps memory of a GPU and has run nothing for long."""

    for_s: Seconds = 10.0
    minutes: Annotated[float, Meta(gt=0, le=10_080)] = 30.0
    #: a bare CUDA context is no news
    least_bytes: Annotated[int, Meta(ge=0)] = 1 << 30

    def look(self, now: Situation) -> Iterable[Finding]:
        """Find kernels that hold much for nothing."""
        for gpu, holder, kernel_id in _kernels(now):
            held = holder.used_bytes is not None and (
                holder.used_bytes >= self.least_bytes
            )
            rested = holder.idle_s is not None and holder.idle_s >= self.minutes * 60
            yield Finding(
                f"{gpu.device.id}/{kernel_id}",
                is_idle(gpu) if held and rested else False,
                "warning",
                gpu.device.id,
                f"{gpu.label} is held by an idle kernel",
                f"{_short(holder.name)} holds {(holder.used_bytes or 0) / 2**30:.1f} "
                "GiB and has run nothing for "
                f"{units.duration_about(holder.idle_s or 0)}. Restart its kernel to "
                "free the memory; its variables are then lost.",
                kernel_id,
            )


def is_idle(gpu: Seen) -> bool | None:
    """Whether it did nothing in this second; None where nobody can tell."""
    # NVML counts copies too, GPM does not
    activity = [
        value
        for metric in ("sm_active_ratio", "gpu_utilization_ratio")
        if (value := gpu.most(metric)) is not None
    ]
    return max(activity) < _IDLE_RATIO if activity else None


def _kernels(now: Situation) -> Iterator[tuple[Seen, Holder, str]]:
    """Give each kernel that holds memory, with its GPU."""
    for gpu in now.gpus():
        holders = now.holders.get(gpu.device.id)
        for holder in holders.holders if holders else ():
            if holder.kernel_id is not None:
                yield gpu, holder, holder.kernel_id


def _short(name: str) -> str:
    return name if len(name) <= 60 else f"…{name[-59:]}"


class BuiltIn(Struct, frozen=True, forbid_unknown_fields=True):
    """Each rule by its name, as `[built_in.NAME]` of a rules file tunes it."""

    xid: Xid = Xid()
    ecc_uncorrected: UncorrectedEcc = UncorrectedEcc()
    ecc_corrected: CorrectedEcc = CorrectedEcc()
    temperature: Temperature = Temperature()
    throttling: Throttling = Throttling()
    gpu_lost: GpuLost = GpuLost()
    gpu_stale: GpuStale = GpuStale()
    memory_full: MemoryFull = MemoryFull()
    idle_while_busy: IdleWhileBusy = IdleWhileBusy()
    held_idle: HeldIdle = HeldIdle()
    monitor: Monitor = Monitor()

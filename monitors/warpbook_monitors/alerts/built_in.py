"""The rules that hold unless a rules file says otherwise."""

from __future__ import annotations

from msgspec import Struct

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
from warpbook_monitors.alerts.use import HeldIdle, IdleWhileBusy, MemoryFull


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

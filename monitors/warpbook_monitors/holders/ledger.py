"""What each holder had of each GPU: time, work and energy, added up between two looks.

A GPU's energy is what its own counter says, idle power included: who holds a GPU keeps
it from others. Several holders share it by the time in which their kernels ran; where
none ran or the driver can't tell, in equal parts. What nobody held is nobody's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warpbook_monitors.frames import Device, Frame, Reading
from warpbook_monitors.holders.identity import NOBODY_KNOWN
from warpbook_monitors.holders.reading import Held
from warpbook_monitors.holders.shares import MOST_HOLDERS, GpuShare, Holder, HolderShare
from warpbook_monitors.plain_text import bounded

#: of a look of up to 30 s: no board draws 10 kW, so the counter is broken
_MOST_LOOK_MJ = 10_000 * 30_000


@dataclass
class _Work:
    """Of one holder, since the interval began."""

    held: Held
    held_ms: int = 0
    busy_ms: int | None = 0
    energy_mj: int | None = 0


@dataclass
class _Gpu:
    """Of one GPU, since the interval began."""

    read_ms: int = 0
    energy_mj: int | None = 0
    works: dict[Holder, _Work] = field(default_factory=dict)


class Ledger:
    """Adds up looks; `close` gives an interval's shares and begins the next one."""

    def __init__(self) -> None:
        self._gpus: dict[str, _Gpu] = {}
        #: by GPU: its counter at the last look, in joules
        self._counters: dict[str, float] = {}
        #: by GPU, as the last look has them
        self._holders: dict[str, tuple[Held, ...]] = {}

    def add(
        self,
        devices: Sequence[Device],
        frames: Sequence[Frame],
        held: Mapping[str, tuple[Held, ...]],
        elapsed_ms: int,
    ) -> None:
        """Take a look.

        Args:
            devices: as the readings of the frames name them by position.
            frames: since the look before, oldest first.
            held: by id of a GPU, now; absent where they can't be listed.
            elapsed_ms: since the look before, by a clock that nobody sets.
        """
        for position, device in enumerate(devices):
            if device.kind != "gpu" or device.origin != "live":
                continue
            reading = _newest(frames, position, device)
            # without a reading it is not known what was
            if reading is None:
                self._counters.pop(device.id, None)
                self._holders.pop(device.id, None)
            else:
                self._add_gpu(device, reading, held.get(device.id, ()), elapsed_ms)

    def close(self) -> tuple[GpuShare, ...]:
        """End the interval: give what every GPU did in it."""
        gpus = tuple(self._share(*item) for item in self._gpus.items())
        self._gpus = {}
        return gpus

    def _add_gpu(
        self, device: Device, reading: Reading, holders: Sequence[Held], elapsed_ms: int
    ) -> None:
        gpu = self._gpus.setdefault(device.id, _Gpu())
        gpu.read_ms += elapsed_ms
        energy_mj = self._used_mj(device, reading)
        gpu.energy_mj = _plus(gpu.energy_mj, energy_mj)
        self._holders[device.id] = tuple(holders)
        self._charge(gpu, holders, energy_mj, elapsed_ms)

    def _used_mj(self, device: Device, reading: Reading) -> int | None:
        """Give what the GPU used since the look before; None if it does not count."""
        joules = _joules(device, reading)
        before = self._counters.pop(device.id, None)
        if joules is None:
            return None
        self._counters[device.id] = joules
        if before is None or joules < before:
            # the first look compares with nothing, and a new driver counts from it
            return 0
        used_mj = round((joules - before) * 1000)
        return used_mj if used_mj <= _MOST_LOOK_MJ else None

    def _charge(
        self, gpu: _Gpu, holders: Sequence[Held], energy_mj: int | None, elapsed_ms: int
    ) -> None:
        shares = _split(energy_mj, holders)
        for held, share_mj in zip(holders, shares, strict=True):
            is_kept = held.holder in gpu.works or len(gpu.works) < MOST_HOLDERS - 1
            holder = held.holder if is_kept else NOBODY_KNOWN
            work = gpu.works.setdefault(holder, _Work(held))
            work.held = held
            # holders that share an entry hold it at the same time
            work.held_ms = min(work.held_ms + elapsed_ms, gpu.read_ms)
            ran_ms = None
            if held.busy_ratio is not None:
                ran_ms = round(held.busy_ratio * elapsed_ms)
            busy_ms = _plus(work.busy_ms, ran_ms)
            work.busy_ms = None if busy_ms is None else min(busy_ms, work.held_ms)
            work.energy_mj = _plus(work.energy_mj, share_mj)

    def _share(self, device_id: str, gpu: _Gpu) -> GpuShare:
        now = {held.holder for held in self._holders.get(device_id, ())}
        return GpuShare(
            bounded(device_id.partition(":")[2]),
            gpu.energy_mj,
            tuple(
                HolderShare(
                    holder,
                    work.held.processes,
                    work.held.memory_bytes,
                    work.held_ms,
                    work.busy_ms,
                    work.energy_mj,
                    is_there=holder in now,
                )
                for holder, work in gpu.works.items()
            ),
        )


def _split(energy_mj: int | None, holders: Sequence[Held]) -> list[int | None]:
    """Share energy out so that the parts are the whole."""
    if energy_mj is None or not holders:
        return [None] * len(holders)
    ratios = [held.busy_ratio for held in holders]
    weights = [0.0 if ratio is None else ratio for ratio in ratios]
    if None in ratios or not sum(weights):
        weights = [1.0] * len(holders)
    shares, given, done = [], 0, 0.0
    for weight in weights:
        done += weight
        upto = round(energy_mj * done / sum(weights))
        shares.append(upto - given)
        given = upto
    return list(shares)


def _newest(frames: Sequence[Frame], position: int, device: Device) -> Reading | None:
    """Give the newest whole reading of a device."""
    for frame in reversed(frames):
        for reading in frame.readings:
            if (
                reading.device == position
                and reading.state == "ok"
                and len(reading.values) == len(device.metrics) > 0
            ):
                return reading
    return None


def _joules(device: Device, reading: Reading) -> float | None:
    for metric, value in zip(device.metrics, reading.values, strict=True):
        if metric.name == "energy_joules":
            return value
    return None


def _plus(total: int | None, more: int | None) -> int | None:
    """Add up; what is not known of a part is not known of the whole."""
    return None if total is None or more is None else total + more

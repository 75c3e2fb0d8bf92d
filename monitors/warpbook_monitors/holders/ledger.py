"""What each holder had of each GPU: time, work and energy, added up between two looks.

A GPU's energy is what its own counter says, idle power included: who holds a GPU keeps
it from others. Several holders share it by the time in which their kernels ran; where
none ran or the driver can't tell, in equal parts. What nobody held is nobody's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from warpbook_monitors.frames import Device, Frame, Reading, State
from warpbook_monitors.holders.identity import NOBODY_KNOWN
from warpbook_monitors.holders.node_protocol import (
    LONGEST_MS,
    MOST_ENERGY_MJ,
    MOST_GPUS,
    MOST_HOLDERS,
    GpuShare,
    Holder,
    HolderShare,
)
from warpbook_monitors.holders.reading import Held
from warpbook_monitors.plain_text import bounded
from warpbook_monitors.verdicts.verdict import QUIET_RATIO

_MOST_WHY = 300
#: of a look; a counter that jumps by more is broken
_MOST_LOOK_MJ = MOST_ENERGY_MJ // LONGEST_MS * 30_000
#: by field: a metric that is a share of time
_RATIOS = {
    "active": "gpu_utilization_ratio",
    "sm": "sm_active_ratio",
    "tensor": "tensor_active_ratio",
}


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
    #: by field of `_RATIOS`
    work_ms: dict[str, float | None] = field(default_factory=dict)
    energy_mj: int | None = 0
    works: dict[Holder, _Work] = field(default_factory=dict)


class Ledger:
    """Adds up looks; `close` gives an interval's shares and begins the next one."""

    def __init__(self) -> None:
        """Nothing was looked at yet."""
        self._gpus: dict[str, _Gpu] = {}
        #: by GPU: its counter at the last look
        self._counters: dict[str, float] = {}
        #: by GPU, and by GPU and holder: since when nothing of it ran
        self._idle_ms: dict[str, int] = {}
        self._holder_idle_ms: dict[tuple[str, Holder], int] = {}
        #: by GPU, as the last look has them; absent where they could not be listed
        self._holders: dict[str, tuple[Held, ...]] = {}

    def add(
        self,
        devices: Sequence[Device],
        frames: Sequence[Frame],
        held: Mapping[str, tuple[Held, ...]],
        elapsed_ms: int,
        now_ms: int,
    ) -> None:
        """Take a look.

        Args:
            devices: as the readings of the frames name them by position.
            frames: since the look before, oldest first.
            held: by id of a GPU, now; absent where they can't be listed.
            elapsed_ms: since the look before, by a clock that nobody sets.
            now_ms: Unix time.
        """
        for position, device in enumerate(devices):
            if device.kind != "gpu" or device.origin == "replay":
                continue
            readings = [reading for reading in _of(frames, position) if reading.values]
            readings = [r for r in readings if len(r.values) == len(device.metrics)]
            # without a reading it is not known what was
            if readings:
                self._add_gpu(device, readings, held, elapsed_ms, now_ms)
            else:
                self._counters.pop(device.id, None)
                self._holders.pop(device.id, None)
                self._idle_ms.pop(device.id, None)
                self._note_idle_holders(device.id, (), now_ms)

    def close(
        self,
        devices: Sequence[Device],
        newest: Frame | None,
        tells_pids: bool = False,
    ) -> tuple[GpuShare, ...]:
        """End the interval: give what every GPU did in it, and what it is now.

        Args:
            devices: as in `add`.
            newest: frame.
            tells_pids: whether those who hold a GPU now have theirs listed.
        """
        readings = {} if newest is None else {r.device: r for r in newest.readings}
        gpus = [
            self._share(device, readings.get(position), tells_pids)
            for position, device in enumerate(devices)
            if device.kind == "gpu" and device.origin == "live"
        ]
        self._gpus = {}
        return tuple(gpus[:MOST_GPUS])

    def _add_gpu(
        self,
        device: Device,
        readings: Sequence[Reading],
        held: Mapping[str, tuple[Held, ...]],
        elapsed_ms: int,
        now_ms: int,
    ) -> None:
        gpu = self._gpus.setdefault(device.id, _Gpu())
        gpu.read_ms += elapsed_ms
        means = {
            name: _mean(device, readings, metric) for name, metric in _RATIOS.items()
        }
        for name, mean in means.items() if elapsed_ms else ():
            before_ms = gpu.work_ms.get(name, 0.0)
            # what is not known of a part is not known of the interval
            if before_ms is None or mean is None:
                gpu.work_ms[name] = None
            else:
                gpu.work_ms[name] = before_ms + mean * elapsed_ms
        known = [mean for mean in (means["active"], means["sm"]) if mean is not None]
        if not known or max(known) >= QUIET_RATIO:
            self._idle_ms.pop(device.id, None)
        else:
            self._idle_ms.setdefault(device.id, now_ms - elapsed_ms)
        energy_mj = self._used_mj(device, readings[-1])
        gpu.energy_mj = _plus(gpu.energy_mj, energy_mj)
        self._holders.pop(device.id, None)
        if device.id in held:
            self._holders[device.id] = held[device.id]
        holders = held.get(device.id, ())
        self._charge(gpu, holders, energy_mj, elapsed_ms)
        self._note_idle_holders(device.id, holders, now_ms - elapsed_ms)

    def _used_mj(self, device: Device, reading: Reading) -> int | None:
        """Give what the GPU used since the look before; None if it does not count."""
        joules = _value(device, reading, "energy_joules")
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
        self,
        gpu: _Gpu,
        holders: Sequence[Held],
        energy_mj: int | None,
        elapsed_ms: int,
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

    def _note_idle_holders(
        self, gpu: str, holders: Sequence[Held], since_ms: int
    ) -> None:
        present = {held.holder for held in holders}
        for key in [key for key in self._holder_idle_ms if key[0] == gpu]:
            if key[1] not in present:
                del self._holder_idle_ms[key]
        for held in holders:
            # of a GPU that idles all holders do, also where the driver does not tell
            is_idle = held.busy_ratio == 0 or (
                held.busy_ratio is None and gpu in self._idle_ms
            )
            if is_idle:
                self._holder_idle_ms.setdefault((gpu, held.holder), since_ms)
            else:
                self._holder_idle_ms.pop((gpu, held.holder), None)

    def _share(
        self, device: Device, reading: Reading | None, tells_pids: bool
    ) -> GpuShare:
        gpu = self._gpus.get(device.id, _Gpu(energy_mj=None))
        state: State = "unavailable" if reading is None else reading.state
        is_read = reading is not None and len(reading.values) == len(device.metrics)
        used = None
        if reading is not None and is_read:
            used = _value(device, reading, "memory_used_bytes")
        total = device.facts.get("memory_total_bytes")
        now = {held.holder for held in self._holders.get(device.id, ())}
        return GpuShare(
            gpu=bounded(device.id.partition(":")[2]),
            index=device.index,
            name=bounded(device.name),
            state=state,
            why=bounded("" if reading is None else reading.why, _MOST_WHY),
            read_ms=gpu.read_ms,
            active_ms=_whole(gpu.work_ms.get("active")),
            sm_ms=_whole(gpu.work_ms.get("sm")),
            tensor_ms=_whole(gpu.work_ms.get("tensor")),
            energy_mj=gpu.energy_mj,
            memory_used_bytes=_whole(used),
            memory_total_bytes=total if isinstance(total, int) else None,
            idle_since_ms=self._idle_ms.get(device.id) if is_read else None,
            is_listed=device.id in self._holders,
            holders=tuple(
                HolderShare(
                    holder,
                    work.held.processes,
                    work.held.memory_bytes,
                    work.held_ms,
                    work.busy_ms,
                    work.energy_mj,
                    self._holder_idle_ms.get((device.id, holder)),
                    is_there=holder in now,
                    pids=work.held.pids if tells_pids and holder in now else (),
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


def _of(frames: Sequence[Frame], position: int) -> list[Reading]:
    return [
        reading
        for frame in frames
        for reading in frame.readings
        if reading.device == position and reading.state == "ok"
    ]


def _value(device: Device, reading: Reading, name: str) -> float | None:
    for metric, value in zip(device.metrics, reading.values, strict=True):
        if metric.name == name:
            return value
    return None


def _mean(device: Device, readings: Sequence[Reading], name: str) -> float | None:
    values = [_value(device, reading, name) for reading in readings]
    known = [min(max(value, 0.0), 1.0) for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _plus(total: int | None, more: int | None) -> int | None:
    """Add up; what is not known of a part is not known of the whole."""
    return None if total is None or more is None else total + more


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)

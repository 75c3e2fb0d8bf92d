"""The machine around the GPUs: processors, memory, disks and network."""

from __future__ import annotations

import platform

import psutil

from warpbook_monitors.frames import Device
from warpbook_monitors.metrics import HOST
from warpbook_monitors.source import Discovery

#: disks and interfaces are walked once a second: each walk reads files in /proc
_SLOW_PERIOD_NS = 1_000_000_000
#: of a share of the time
_ROUNDING = 0.05

#: bytes in and out since the system started, by disk or interface
_Counters = dict[str, tuple[int, int]]


class HostSource:
    """Gives the device "host"; it is there wherever psutil works."""

    what = "The host"

    def open(self) -> Discovery:
        return Discovery([HostProbe()])

    def close(self) -> None:
        """Nothing to give back."""


class HostProbe:
    """Reads the operating system's counters and turns them into rates."""

    def __init__(self) -> None:
        has_disks = psutil.disk_io_counters() is not None
        self.device = Device(
            id="host",
            kind="host",
            name=platform.node() or "host",
            index=None,
            origin="live",
            metrics=tuple(
                kind.on_device(
                    "not_supported", "This system does not count disk traffic."
                )
                if name.startswith("disk_") and not has_disks
                else kind.on_device()
                for name, kind in HOST.items()
            ),
            facts={
                "memory_total_bytes": psutil.virtual_memory().total,
                "cpu_count": psutil.cpu_count() or 1,
                "system": f"{platform.system()} {platform.release()}",
            },
        )
        self.rest()

    def read(self, now_ns: int) -> tuple[float | None, ...]:
        """Give the values in the order of `metrics.HOST`."""
        if self._slow_ns is None or now_ns - self._slow_ns >= _SLOW_PERIOD_NS:
            self._read_traffic(now_ns)
        memory = psutil.virtual_memory()
        return (self._cpu_ratio(), memory.total - memory.available, *self._rates)

    def rest(self) -> None:
        """Forget the counters: a rate must not span the rest."""
        self._cpu: tuple[float, float] | None = None
        self._slow_ns: int | None = None
        self._disks: _Counters = {}
        self._nets: _Counters = {}
        self._rates: tuple[float | None, ...] = (None,) * 4

    def _cpu_ratio(self) -> float | None:
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        # guest time is already counted in user time
        total = (
            sum(times) - getattr(times, "guest", 0) - getattr(times, "guest_nice", 0)
        )
        before, self._cpu = self._cpu, (idle, total)
        if before is None or total <= before[1]:
            return None
        busy = 1 - (idle - before[0]) / (total - before[1])
        # time waited for disks may run backwards a little; more is no reading
        within = -_ROUNDING <= busy <= 1 + _ROUNDING
        return round(min(max(busy, 0.0), 1.0), 4) if within else None

    def _read_traffic(self, now_ns: int) -> None:
        disk = psutil.disk_io_counters()
        disks = {"all": (disk.read_bytes, disk.write_bytes)} if disk else {}
        interfaces = psutil.net_io_counters(pernic=True)
        nets = {
            name: (counters.bytes_recv, counters.bytes_sent)
            for name, counters in interfaces.items()
            if name != "lo"
        }
        if self._slow_ns is not None:
            seconds = (now_ns - self._slow_ns) / 1e9
            self._rates = (
                *_rates(self._disks, disks, seconds),
                *_rates(self._nets, nets, seconds),
            )
        self._disks, self._nets, self._slow_ns = disks, nets, now_ns


def _rates(
    old: _Counters, new: _Counters, seconds: float
) -> tuple[float | None, float | None]:
    """Bytes per second, in and out, over what was there both times."""
    both = [(old[name], new[name]) for name in new if name in old]
    # a counter that went back began anew: how much it missed is not known
    if not both or any(
        b < a for olds, news in both for a, b in zip(olds, news, strict=True)
    ):
        return (None, None)
    rates = [
        sum(news[way] - olds[way] for olds, news in both) / seconds for way in (0, 1)
    ]
    return (rates[0], rates[1])

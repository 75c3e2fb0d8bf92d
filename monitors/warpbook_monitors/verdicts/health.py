"""What slows a GPU's clocks, in words: normal, worth a look, or a fault.

NVML says at each moment why the clocks are below their maximum (the bits of
`nvmlClocksEventReasons` in nvml.h). Told here: how much of the last minute each
reason held, and what a person should think of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from warpbook_monitors.frames import Device, Frame, Severity


class Condition(Struct, frozen=True):
    """Something about a GPU that held for a part of the last minute."""

    name: str
    severity: Severity
    #: of the readings of the window
    share_ratio: float
    #: for a person: what it is, for how long, and what to do
    sentence: str


class _Reason(NamedTuple):
    bit: int
    name: str
    severity: Severity
    words: str


#: GPU idle (bit 0) is no reason: it says that there is nothing to clock up for
REASONS = (
    _Reason(
        0x08,
        "hardware slowdown",
        "fault",
        "the hardware cut the clocks by half or more: check cooling and power supply",
    ),
    _Reason(
        0x40,
        "hardware thermal slowdown",
        "fault",
        "the GPU is too hot: check fans, airflow and the temperature of the room",
    ),
    _Reason(
        0x80,
        "power brake",
        "fault",
        (
            "the machine signalled the GPU to save power immediately: check the power "
            "supply"
        ),
    ),
    _Reason(
        0x20,
        "thermal slowdown",
        "warning",
        "the driver lowers the clocks to keep the temperature: check airflow",
    ),
    _Reason(
        0x04,
        "power cap",
        "normal",
        "the board is at its power limit{limit}: normal for dense matrix work",
    ),
    _Reason(
        0x02,
        "application clocks",
        "normal",
        "somebody lowered the clocks (nvidia-smi -ac or -lgc): the GPU does not run "
        "at full speed",
    ),
    _Reason(
        0x10,
        "sync boost",
        "normal",
        "this GPU is kept at the clocks of the slowest GPU of its group",
    ),
    _Reason(0x100, "display clocks", "normal", "a display holds the clocks"),
)
#: what the bits of the reasons are, worst first
REASON_BITS = tuple(reason.bit for reason in REASONS)
_ORDER: dict[Severity, int] = {"fault": 0, "warning": 1, "normal": 2}

#: a share that is smaller is a blip between two kinds of work
LEAST_SHARE_RATIO = 0.01
#: of the memory of a GPU, in use at the last reading
FULL_RATIO = 0.95


class Minute:
    """The last minute of the stream, as far as health needs it; for one thread."""

    def __init__(self, seconds: float = 60.0) -> None:
        self.seconds = seconds
        self._flags: deque[tuple[float, list[tuple[int, int]]]] = deque()
        #: by device: how often each combination of bits is in the window
        self._counts: defaultdict[int, Counter[int]] = defaultdict(Counter)
        self._newest: Frame | None = None

    def append(self, frame: Frame, devices: Sequence[Device]) -> None:
        """Take the newest frame; what is older than the window goes."""
        if self._newest and frame.time_ms < self._newest.time_ms:
            self._flags.clear()  # the clock was set back
            self._counts.clear()
        self._newest = frame
        flags = []
        for reading in frame.readings:
            device = devices[reading.device]
            bits = _value(device, reading.values, "clocks_event_reasons")
            if bits is not None:
                flags.append((reading.device, int(bits)))
                self._counts[reading.device][int(bits)] += 1
        self._flags.append((frame.time_ms, flags))
        while self._flags[0][0] < frame.time_ms - self.seconds * 1000:
            for position, gone in self._flags.popleft()[1]:
                self._counts[position][gone] -= 1

    def conditions(self, devices: Sequence[Device]) -> dict[str, tuple[Condition, ...]]:
        """Tell the conditions of each GPU that is read now, by its id, worst first."""
        by_device = {}
        for reading in self._newest.readings if self._newest else ():
            device = devices[reading.device]
            if device.kind not in ("gpu", "mig") or reading.state != "ok":
                continue
            shares = _shares(self._counts[reading.device])
            clocks = clocks_conditions(device, shares, f"the last {self._span()}")
            of_device = [*_memory(device, reading.values), *clocks]
            of_device.sort(key=lambda condition: _ORDER[condition.severity])
            by_device[device.id] = tuple(of_device)
        return by_device

    def _span(self) -> str:
        """Name the time that was seen, which may be less than the window."""
        seen_s = (self._flags[-1][0] - self._flags[0][0]) / 1000
        return "minute" if seen_s > 55 else f"{max(seen_s, 1):.0f} s"


def clocks_conditions(
    device: Device, shares: Sequence[float], of: str
) -> tuple[Condition, ...]:
    """Tell in words what slowed a GPU's clocks, worst first.

    Args:
        device: the GPU.
        shares: of the time, for each of `REASON_BITS`.
        of: the time, in words.
    """
    limit = device.facts.get("power_limit_watts")
    limit_words = f" of {limit:.0f} W" if isinstance(limit, int | float) else ""
    return tuple(
        Condition(
            reason.name,
            reason.severity,
            round(share, 4),
            f"{reason.name.capitalize()}, {100 * share:.0f} % of {of}: "
            f"{reason.words.format(limit=limit_words)}.",
        )
        for reason, share in zip(REASONS, shares, strict=True)
        if share >= LEAST_SHARE_RATIO
    )


def _shares(flags: Counter[int]) -> list[float]:
    readings = flags.total() or 1
    return [
        sum(count for bits, count in flags.items() if bits & bit) / readings
        for bit in REASON_BITS
    ]


def _memory(device: Device, values: Sequence[float | None]) -> Iterable[Condition]:
    used = _value(device, values, "memory_used_bytes")
    total = device.facts.get("memory_total_bytes")
    if used is None or not isinstance(total, int | float) or total <= 0:
        return
    if used / total >= FULL_RATIO:
        yield Condition(
            "memory",
            "warning",
            1.0,
            f"Memory is {100 * used / total:.0f} % full: the next allocation may "
            "fail. Restart kernels that no longer need the GPU.",
        )


def _value(device: Device, values: Sequence[float | None], name: str) -> float | None:
    for metric, value in zip(device.metrics, values, strict=False):
        if metric.name == name:
            return value
    return None

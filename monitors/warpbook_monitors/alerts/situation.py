"""What is known in one second: what rules look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from warpbook_monitors.frames import Device, Event, Frame, Reading
from warpbook_monitors.labels import device_label
from warpbook_monitors.memory.holders import DeviceHolders

#: metrics that only grow, and whose growth is news
COUNTED = ("ecc_corrected_count", "ecc_uncorrected_count")


@dataclass(frozen=True)
class Seen:
    """One device over the last second."""

    device: Device
    #: its name for a person
    label: str
    #: oldest first; empty if no frame came
    readings: tuple[Reading, ...]

    @property
    def newest(self) -> Reading | None:
        return self.readings[-1] if self.readings else None

    def values(self, metric: str) -> list[float]:
        """Every value of a metric that was read; none is invented."""
        names = [known.name for known in self.device.metrics]
        if metric not in names:
            return []
        index = names.index(metric)
        return [
            value
            for reading in self.readings
            for value in reading.values[index : index + 1]
            if value is not None
        ]

    def most(self, metric: str) -> float | None:
        """The highest value of the second; None where there is none."""
        return max(self.values(metric), default=None)

    def bits(self, metric: str) -> int | None:
        """All flags that were up in this second; None where there is no reading."""
        values = self.values(metric)
        if not values:
            return None
        up = 0
        for value in values:
            up |= int(value)
        return up

    def fact(self, name: str) -> float | None:
        """A fact that is a number, if the driver told it."""
        value = self.device.facts.get(name)
        return value if isinstance(value, int | float) else None


@dataclass(frozen=True)
class Trouble:
    """Something that is wrong with the monitor itself."""

    #: unique among troubles
    name: str
    title: str
    text: str


@dataclass(frozen=True)
class Situation:
    """All that the rules may look at."""

    time_ms: float
    #: live devices only: what a recording tells happened long ago
    seen: tuple[Seen, ...]
    #: that came since the judgement before
    events: tuple[Event, ...] = ()
    #: by device id; a device whose holders are not known is left out
    holders: Mapping[str, DeviceHolders] = field(default_factory=dict)
    #: how counters grew lately
    counters: Counters = field(default_factory=lambda: Counters())
    troubles: tuple[Trouble, ...] = ()

    def gpus(self) -> Iterable[Seen]:
        return (seen for seen in self.seen if seen.device.kind in ("gpu", "mig"))

    def label(self, device_id: str) -> str:
        for seen in self.seen:
            if seen.device.id == device_id:
                return seen.label
        return device_id[:60]


def look_at(devices: Sequence[Device], frames: Sequence[Frame]) -> tuple[Seen, ...]:
    """Sort the frames of a second by device."""
    readings: dict[int, list[Reading]] = {}
    for frame in frames:
        for reading in frame.readings:
            readings.setdefault(reading.device, []).append(reading)
    return tuple(
        Seen(device, device_label(device, devices), tuple(readings.get(position, ())))
        for position, device in enumerate(devices)
        if device.origin == "live"
    )


class Counters:
    """How counters grew lately: NVML counts errors since the driver was loaded."""

    def __init__(self, window_s: float = 3600.0) -> None:
        """Remember each change of the last `window_s`."""
        self._window_s = window_s
        #: by device and metric: when it was seen to have which value
        self._steps: dict[tuple[str, str], list[tuple[float, float]]] = {}

    def follow(self, time_ms: float, seen: Iterable[Seen]) -> None:
        for device in seen:
            for metric in COUNTED:
                value = device.most(metric)
                if value is not None:
                    self._take(time_ms, device.device.id, metric, value)

    def follow_clock(self, set_ms: float) -> None:
        """Have no growth seem older or younger because the clock was set by so much."""
        for key, steps in self._steps.items():
            self._steps[key] = [(at_ms + set_ms, value) for at_ms, value in steps]

    def _take(self, time_ms: float, device: str, metric: str, value: float) -> None:
        # one that falls was reset with its GPU
        steps = self._steps.setdefault((device, metric), [])
        if steps and value < steps[-1][1]:
            steps.clear()
        if not steps or value > steps[-1][1]:
            steps.append((time_ms, value))
        while len(steps) > 1 and steps[1][0] < time_ms - self._window_s * 1000:
            del steps[0]

    def growth(
        self, time_ms: float, device: str, metric: str, window_s: float
    ) -> float | None:
        """By how much it grew in the last `window_s`; None if it was never read."""
        steps = self._steps.get((device, metric))
        if not steps:
            return None
        from_ms = time_ms - window_s * 1000
        before = [value for at_ms, value in steps if at_ms < from_ms]
        return steps[-1][1] - (before[-1] if before else steps[0][1])

"""Which of the last seconds a live verdict is of: those since the work changed.

A GPU that began something else a second ago is judged by that second. What changes all
the time, such as a loop that loads and computes in turn, is judged as one. Counters
follow a change within 0.3 s (measured: H100, H200, ten readings a second).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence

from msgspec import structs

from warpbook_monitors.frames import Device, Frame
from warpbook_monitors.verdicts.link_speeds import nvlink_bytes_per_s, pcie_bytes_per_s
from warpbook_monitors.verdicts.verdict import MIN_READINGS, Verdict, judge

#: what work is told apart by; all are shares, or become one
_LEVELS = (
    "gpu_utilization_ratio",
    "sm_active_ratio",
    "tensor_active_ratio",
    "dram_active_ratio",
    "fp32_active_ratio",
    "fp64_active_ratio",
    "pcie_rx_bytes_per_s",
    "pcie_tx_bytes_per_s",
    "nvlink_rx_bytes_per_s",
    "nvlink_tx_bytes_per_s",
)
#: steady work of one kind varies by less (measured: 0.02)
_STEP_RATIO = 0.1
#: readings that are steady for so long are judged alone
_STEADY_S = 0.6
#: so many readings beyond all before them are another kind of work
_NEW_READINGS = 4

#: of one reading: its time, and its values in the order of the device's metrics
_Row = tuple[float, Sequence[float | None]]


class Window:
    """The last seconds of the stream, for one thread."""

    def __init__(self, seconds: float = 3.0) -> None:
        """Judge over `seconds` at most."""
        self.seconds = seconds
        self._frames: deque[Frame] = deque()
        #: between frames: one long step is a rest, and no pace
        self._steps_ms: deque[float] = deque(maxlen=2)

    def append(self, frame: Frame) -> None:
        """Take the newest frame; what is older than the window goes."""
        if self._frames and frame.time_ms < self._frames[-1].time_ms:
            # the clock was set back
            self._frames.clear()
            self._steps_ms.clear()
        if self._frames:
            self._steps_ms.append(frame.time_ms - self._frames[-1].time_ms)
        self._frames.append(frame)
        while self._frames[0].time_ms < frame.time_ms - self.seconds * 1000:
            self._frames.popleft()

    def judge(self, devices: Sequence[Device]) -> dict[str, Verdict]:
        """Judge each GPU by its id; one that is not read now is left out."""
        rows: dict[int, list[_Row]] = {}
        newest: dict[int, str] = {}
        for frame in self._frames:
            for reading in frame.readings:
                newest[reading.device] = reading.state
                if reading.state == "ok":
                    row = (frame.time_ms, reading.values)
                    rows.setdefault(reading.device, []).append(row)
        return {
            device.id: self._judged(device, rows[position])
            for position, device in enumerate(devices)
            if device.kind in ("gpu", "mig") and newest.get(position) == "ok"
        }

    def _judged(self, device: Device, rows: list[_Row]) -> Verdict:
        seldom = self._seldom(len(rows))
        if seldom is not None:
            return seldom
        levels = [_levels(device, values) for _, values in rows]
        first = _first_new_reading(levels)
        steady = _steady_readings(rows, levels)
        if steady >= MIN_READINGS and rows[-1][0] - rows[-steady][0] >= (
            _STEADY_S * 1000
        ):
            first = max(first, len(rows) - steady)
        if len(rows) - first < MIN_READINGS <= len(rows):
            # so soon after a change nothing is known of what began
            first = 0
        verdict = judge(device, [values for _, values in rows[first:]])
        window_s = (rows[-1][0] - rows[first][0]) / 1000
        return structs.replace(verdict, window_s=round(window_s, 3))

    def _seldom(self, readings: int) -> Verdict | None:
        """Say that the pace is too slow to judge, if it is."""
        pace_ms = min(self._steps_ms, default=0.0)
        if readings >= MIN_READINGS or pace_ms * MIN_READINGS <= self.seconds * 1000:
            return None
        return Verdict(
            "unknown",
            "Sampled too seldom to judge.",
            f"a reading every {pace_ms / 1000:.1f} s; {MIN_READINGS} in "
            f"{self.seconds:.0f} s are needed",
        )


def _levels(device: Device, values: Sequence[float | None]) -> list[float | None]:
    """Give what work is told apart by as shares; None where it was not read."""
    read = {
        metric.name: value
        for metric, value in zip(device.metrics, values, strict=False)
    }
    links = {"pcie": pcie_bytes_per_s(device), "nvlink": nvlink_bytes_per_s(device)}
    shares: list[float | None] = []
    for name in _LEVELS:
        value, most = read.get(name), links.get(name.partition("_")[0], 1.0)
        shares.append(None if value is None or not most else value / most)
    return shares


def _first_new_reading(levels: Sequence[Sequence[float | None]]) -> int:
    """Find where the work changed last: all readings since lie beyond those before.

    Returns:
        The place of the first reading since then; 0 where nothing changed.
    """
    firsts = range(2, len(levels) - _NEW_READINGS + 1)
    changes = [_last_change(_column(levels, at), firsts) for at in range(len(_LEVELS))]
    return max(changes, default=0)


def _last_change(values: Sequence[float | None], firsts: range) -> int:
    """Find the last place from which on one share lies beyond what it was before."""
    low, high = math.inf, -math.inf
    ranges_before: list[tuple[float, float]] = []
    for value in values:
        ranges_before.append((low, high))
        if value is not None:
            low, high = min(low, value), max(high, value)
    low, high = math.inf, -math.inf
    for first in range(len(values) - 1, 0, -1):
        value = values[first]
        if value is not None:
            low, high = min(low, value), max(high, value)
        before_low, before_high = ranges_before[first]
        if before_low > before_high or low > high:
            # nothing was read on one side
            continue
        is_beyond = low > before_high + _STEP_RATIO or high < before_low - _STEP_RATIO
        if first in firsts and is_beyond:
            return first
    return 0


def _steady_readings(
    rows: Sequence[_Row], levels: Sequence[Sequence[float | None]]
) -> int:
    """Count the newest readings that differ by no step, at least one."""
    least, most = list(levels[-1]), list(levels[-1])
    for back in range(2, len(rows) + 1):
        for column, value in enumerate(levels[-back]):
            low, high = least[column], most[column]
            if value is None or low is None or high is None:
                continue
            least[column], most[column] = min(low, value), max(high, value)
            if max(high, value) - min(low, value) > _STEP_RATIO:
                return back - 1
    return len(rows)


def _column(
    levels: Iterable[Sequence[float | None]], column: int
) -> list[float | None]:
    return [row[column] for row in levels]

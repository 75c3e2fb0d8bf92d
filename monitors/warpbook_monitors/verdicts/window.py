"""Which readings a live verdict is of: the last whole window of one kind of work.

Work is of one kind while its readings differ by no step. Until another kind fills a
window of its own, the verdict is of what was before, and says that it changes. What
changes all the time, such as a loop that loads and computes in turn, is judged as one.
Counters follow a change within 0.3 s (measured: H100, H200, ten readings a second).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

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
#: readings that are steady for so long are a window of their own
_STEADY_MS = 600.0
#: so are unsteady ones for so long, if all of them are unlike what was before
_UNLIKE_MS = 800.0
#: or whatever they are like: work that comes and goes is one kind
_UNSTEADY_MS = 1200.0


class _Row(NamedTuple):
    """One reading of a device."""

    time_ms: float
    #: in the order of the device's metrics
    values: Sequence[float | None]
    #: in the order of `_LEVELS`, None where nothing was read
    levels: Sequence[float | None]


class _Phase(NamedTuple):
    """The rows that are judged, and whether what goes on now is unlike them."""

    first: int
    end: int
    is_changing: bool = False


class Window:
    """The last seconds of the stream, for one thread."""

    def __init__(self, seconds: float = 3.0) -> None:
        """Judge over `seconds` at most."""
        self.seconds = seconds
        #: by device; twice the window, for what was before a change
        self._rows: dict[str, deque[_Row]] = {}
        #: by device: the last verdict
        self._last: dict[str, Verdict] = {}
        self._newest_ms = 0.0
        #: between frames: one long step is a rest, and no pace
        self._steps_ms: deque[float] = deque(maxlen=2)

    def append(self, frame: Frame, devices: Sequence[Device]) -> None:
        """Take the newest frame; what is older than is needed goes."""
        if frame.time_ms < self._newest_ms:
            # the clock was set back
            self._rows.clear()
            self._last.clear()
            self._steps_ms.clear()
        elif self._newest_ms:
            self._steps_ms.append(frame.time_ms - self._newest_ms)
        self._newest_ms = frame.time_ms
        for reading in frame.readings:
            device = devices[reading.device]
            if device.kind in ("gpu", "mig") and reading.state == "ok":
                rows = self._rows.setdefault(device.id, deque())
                levels = _levels(device, reading.values)
                rows.append(_Row(frame.time_ms, reading.values, levels))
                while rows[0].time_ms < frame.time_ms - 2000 * self.seconds:
                    rows.popleft()
                if len(rows) == 1:
                    # it was not read for long
                    self._last.pop(device.id, None)

    def judge(self, devices: Sequence[Device]) -> dict[str, Verdict]:
        """Judge each GPU by its id; one that is not read now is left out."""
        return {
            device.id: self._judged(device, list(rows))
            for device in devices
            if (rows := self._rows.get(device.id))
            and rows[-1].time_ms == self._newest_ms
        }

    def _judged(self, device: Device, rows: list[_Row]) -> Verdict:
        newest = sum(row.time_ms >= self._begin_ms(rows[-1]) for row in rows)
        seldom = self._seldom(newest)
        if seldom is not None:
            return seldom
        first, end, is_changing = _phase(rows)
        begin_ms = self._begin_ms(rows[end - 1])
        judged = [row for row in rows[first:end] if row.time_ms >= begin_ms]
        verdict = judge(device, [row.values for row in judged])
        since_ms: float | None = rows[first].time_ms
        last = self._last.get(device.id)
        if last and (last.kind, last.unit) == (verdict.kind, verdict.unit):
            since_ms = last.since_ms
        self._last[device.id] = structs.replace(
            verdict,
            window_s=round((judged[-1].time_ms - judged[0].time_ms) / 1000, 3),
            since_ms=since_ms,
            is_changing=is_changing,
        )
        return self._last[device.id]

    def _begin_ms(self, last: _Row) -> float:
        return last.time_ms - 1000 * self.seconds

    def _seldom(self, readings: int) -> Verdict | None:
        """Say that the pace is too slow to judge, if it is."""
        pace_ms = min(self._steps_ms, default=0.0)
        if readings >= MIN_READINGS or pace_ms * MIN_READINGS <= self.seconds * 1000:
            return None
        return Verdict(
            "unknown",
            "Sampled too rarely to judge.",
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


def _phase(rows: Sequence[_Row]) -> _Phase:
    """Find the last rows that are a whole window; without one, all but a new kind."""
    count = len(rows)
    newest = end = count
    while end > 0:
        first = _steady_from(rows, end)
        if _is_whole(rows[first:end], _STEADY_MS):
            break
        if end == count:
            newest = first
        end = first
    else:
        return _without_newest(rows, 0, newest)
    if end == count:
        return _Phase(first, end)
    before = _ranges(rows[first:end])
    is_unlike = all(_is_beyond(row.levels, before) for row in rows[end:])
    if _is_whole(rows[end:], _UNLIKE_MS if is_unlike else _UNSTEADY_MS):
        return _without_newest(rows, end, newest)
    return _Phase(first, end, _is_beyond(rows[-1].levels, before))


def _without_newest(rows: Sequence[_Row], first: int, newest: int) -> _Phase:
    """Leave out the newest steady rows if nothing before was like them."""
    if newest > first and _is_beyond(rows[-1].levels, _ranges(rows[first:newest])):
        return _Phase(first, newest, True)
    return _Phase(first, len(rows))


def _is_whole(rows: Sequence[_Row], least_ms: float) -> bool:
    return len(rows) >= MIN_READINGS and rows[-1].time_ms - rows[0].time_ms >= least_ms


def _steady_from(rows: Sequence[_Row], end: int) -> int:
    """Return the first of the rows up to `end` that differ by no step."""
    least, most = list(rows[end - 1].levels), list(rows[end - 1].levels)
    for first in range(end - 2, -1, -1):
        for column, level in enumerate(rows[first].levels):
            low, high = least[column], most[column]
            if level is None or low is None or high is None:
                continue
            least[column], most[column] = min(low, level), max(high, level)
            if max(high, level) - min(low, level) > _STEP_RATIO:
                return first + 1
    return 0


def _ranges(rows: Sequence[_Row]) -> list[tuple[float, float]]:
    """Return the least and the most of each level; of none, infinitely far apart."""
    columns = zip(*(row.levels for row in rows), strict=True)
    known = [[level for level in column if level is not None] for column in columns]
    return [
        (min(column, default=-math.inf), max(column, default=math.inf))
        for column in known
    ]


def _is_beyond(
    levels: Sequence[float | None], ranges: Sequence[tuple[float, float]]
) -> bool:
    return any(
        level is not None and not low - _STEP_RATIO <= level <= high + _STEP_RATIO
        for level, (low, high) in zip(levels, ranges, strict=True)
    )

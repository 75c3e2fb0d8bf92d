"""A long history in as few steps as a chart has room for, never by asking a device."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warpbook_monitors.frames import Device, Frame
from warpbook_monitors.health import REASON_BITS
from warpbook_monitors.readings import Floats, Readings, reason_shares

SECOND_MS = 1000.0


@dataclass(frozen=True)
class Second:
    """All devices over one second; small, because an hour of them is kept."""

    __slots__ = ("at_ms", "packed", "widths")

    at_ms: float
    #: by position of the device, in the order of the table: how many metrics it had
    widths: tuple[tuple[int, int], ...]
    #: for each device the least, mean and most of its metrics, then the shares of
    #: its clocks-event reasons; float32, compressed
    packed: bytes


class Seconds:
    """A summary of each second that was read, made as the frames come.

    To read an hour of frames takes a second; an hour of these takes a tenth of it.
    For one thread.
    """

    def __init__(self, seconds: float) -> None:
        """Keep the last `seconds` in which something was read."""
        self._kept: deque[Second] = deque(maxlen=round(seconds))
        self._at_ms: float | None = None
        #: the values of the second that is not over yet, by position of the device
        self._growing: dict[int, list[Sequence[float | None]]] = {}

    @property
    def size_bytes(self) -> int:
        """What the summaries take of memory, but for Python's own overhead."""
        return sum(len(second.packed) for second in self._kept)

    def take(self, frame: Frame, devices: Sequence[Device]) -> None:
        """Take the newest frame."""
        at_ms = frame.time_ms // SECOND_MS * SECOND_MS
        if at_ms != self._at_ms:
            if self._at_ms is not None:
                self._kept.append(_summary(self._at_ms, self._growing, devices))
            self._at_ms, self._growing = at_ms, {}
        for reading in frame.readings:
            if len(reading.values) == len(devices[reading.device].metrics):
                rows = self._growing.setdefault(reading.device, [])
                rows.append(reading.values)

    def span(self, from_ms: float, to_ms: float) -> list[Second]:
        """Give the summaries of a span, for `read_seconds` on any thread."""
        return [
            second
            for second in self._kept
            if second.at_ms + SECOND_MS > from_ms and second.at_ms < to_ms
        ]


def _summary(
    at_ms: float,
    growing: Mapping[int, list[Sequence[float | None]]],
    devices: Sequence[Device],
) -> Second:
    widths: list[tuple[int, int]] = []
    parts: list[Floats] = []
    for position, rows in growing.items():
        width = len(devices[position].metrics)
        # the description may have changed within the second
        table = np.array([row for row in rows if len(row) == width], dtype=np.float64)
        if table.size:
            widths.append((position, width))
            reasons = reason_shares(devices[position], table)
            parts += [
                np.fmin.reduce(table, axis=0),
                _mean(table),
                np.fmax.reduce(table, axis=0),
                _mean(reasons),
            ]
    flat = np.concatenate(parts).astype(np.float32) if parts else np.empty(0)
    return Second(at_ms, tuple(widths), zlib.compress(flat.tobytes(), 1))


def _mean(table: Floats) -> Floats:
    """Mean of each column's readings; NaN where there is none."""
    known = np.isfinite(table)
    count = known.sum(axis=0)
    total: Floats = np.where(known, table, 0.0).sum(axis=0)
    return total / np.where(count > 0, count, np.nan)


def read_seconds(
    seconds: Iterable[Second], devices: Mapping[int, Device]
) -> dict[int, Readings]:
    """Turn summaries of seconds into the readings of some devices.

    Args:
        seconds: of `Seconds.span`.
        devices: those wanted, by their position in the frames.
    """
    times: dict[int, list[float]] = {at: [] for at in devices}
    rows: dict[int, list[NDArray[np.float32]]] = {at: [] for at in devices}
    for second in seconds:
        table = np.frombuffer(zlib.decompress(second.packed), dtype=np.float32)
        begin = 0
        for position, width in second.widths:
            end = begin + 3 * width + len(REASON_BITS)
            if position in devices and width == len(devices[position].metrics):
                times[position].append(second.at_ms)
                rows[position].append(table[begin:end])
            begin = end
    told = {}
    for position, device in devices.items():
        width = len(device.metrics)
        columns = 3 * width + len(REASON_BITS)
        whole = np.array(rows[position], dtype=np.float64).reshape(-1, columns)
        starts = np.array(times[position], dtype=np.float64)
        least, mean, most, reasons = np.split(whole, (width, 2 * width, 3 * width), 1)
        told[position] = Readings(
            starts, starts + SECOND_MS, least, mean, most, reasons
        )
    return told


@dataclass(frozen=True)
class Steps:
    """Readings in equal steps; NaN where a step has none."""

    least: Floats
    mean: Floats
    most: Floats


def in_steps(
    readings: Readings,
    columns: Sequence[int],
    from_ms: float,
    step_ms: float,
    count: int,
) -> Steps:
    """Bring some metrics of a device into `count` equal steps.

    A step takes the readings that stand for half of it, or that lie in it by half.
    """
    row, step, overlap_ms = _met(readings, from_ms, step_ms, count)
    shape = (count, len(columns))
    chosen = np.array(columns, dtype=np.intp)

    def values(table: Floats) -> Floats:
        return table[np.ix_(row, chosen)] if len(row) else np.empty((0, len(chosen)))

    least, most = np.full(shape, np.nan), np.full(shape, np.nan)
    np.fmin.at(least, step, values(readings.least))
    np.fmax.at(most, step, values(readings.most))
    means = values(readings.mean)
    known = np.isfinite(means)
    total, weight = np.zeros(shape), np.zeros(shape)
    np.add.at(total, step, np.where(known, means, 0) * overlap_ms[:, None])
    np.add.at(weight, step, known * overlap_ms[:, None])
    mean = total / np.where(weight > 0, weight, np.nan)
    return Steps(least, mean, most)


def _met(
    readings: Readings, from_ms: float, step_ms: float, count: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Which row meets which step, and for how long."""
    starts, ends = readings.starts_ms - from_ms, readings.ends_ms - from_ms
    first = np.clip(np.floor(starts / step_ms), 0, count).astype(np.intp)
    last = np.clip(np.ceil(ends / step_ms), 0, count).astype(np.intp)
    met = np.maximum(last - first, 0)
    row = np.repeat(np.arange(len(met)), met)
    step = np.arange(len(row)) - np.repeat(np.cumsum(met) - met, met) + first[row]
    overlap = np.minimum(ends[row], (step + 1) * step_ms) - np.maximum(
        starts[row], step * step_ms
    )
    # a little less than half: two neighbours may share a step in equal parts
    enough = overlap > 0.499 * np.minimum(ends[row] - starts[row], step_ms)
    return row[enough], step[enough], overlap[enough]

"""One device's readings over a span, as columns: from frames, or second by second.

A row stands for the time since the row before it. NVML's and GPM's ratios and rates
are means over a window that ends with the reading, so that time is theirs.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from warpbook_monitors.frames import Device
from warpbook_monitors.history.history import is_frame
from warpbook_monitors.history.seconds import REASONS, SECOND_MS, Second
from warpbook_monitors.verdicts.health import REASON_BITS

Floats = NDArray[np.float64]

#: before the second row there is nothing to tell the pace by
_TICK_MS = 100.0


@dataclass(frozen=True)
class Readings:
    """Rows of readings, oldest first; NaN where there is none."""

    #: what each row stands for
    starts_ms: Floats
    ends_ms: Floats
    #: a row each, a column for each metric of the device
    least: Floats
    mean: Floats
    most: Floats
    #: share of the row's time in which each of `REASON_BITS` held
    reasons: Floats


class _Reading(msgspec.Struct):
    """A reading whose values are not looked at unless they are wanted."""

    device: int
    values: msgspec.Raw = msgspec.Raw(b"[]")


class _Frame(msgspec.Struct, tag="frame"):
    time_ms: float
    readings: list[_Reading]


_decode_frame = msgspec.json.Decoder(_Frame).decode
_decode_values = msgspec.json.Decoder(list[float | None]).decode


def read_frames(
    messages: Iterable[bytes], devices: Mapping[int, Device]
) -> dict[int, Readings]:
    """Turn encoded messages into the readings of some devices.

    Args:
        messages: of the stream, oldest first; what is no frame is passed over.
        devices: those wanted, by their position in the frames.
    """
    times_ms: list[float] = []
    rows: dict[int, list[Sequence[float | None]]] = {at: [] for at in devices}
    nothing = {at: (None,) * len(device.metrics) for at, device in devices.items()}
    for encoded in messages:
        if not is_frame(encoded):
            continue
        frame = _decode_frame(encoded)
        times_ms.append(frame.time_ms)
        read = {reading.device: reading.values for reading in frame.readings}
        for at, missing in nothing.items():
            values = _decode_values(read[at]) if at in read else []
            rows[at].append(values if len(values) == len(missing) else missing)
    starts, ends = windows(times_ms)
    by_position = {}
    for at, device in devices.items():
        table = np.array(rows[at], dtype=np.float64).reshape(-1, len(device.metrics))
        reasons = reason_shares(device, table)
        by_position[at] = Readings(starts, ends, table, table, table, reasons)
    return by_position


def joined(older: Readings, newer: Readings) -> Readings:
    """Readings of the same metrics, one after the other."""
    return Readings(
        *(
            np.concatenate([getattr(older, field.name), getattr(newer, field.name)])
            for field in fields(Readings)
        )
    )


def narrowed(readings: Readings, columns: Sequence[int]) -> Readings:
    chosen = list(columns)
    return replace(
        readings,
        least=readings.least[:, chosen],
        mean=readings.mean[:, chosen],
        most=readings.most[:, chosen],
    )


def windows(times_ms: Sequence[float]) -> tuple[Floats, Floats]:
    """What each frame stands for; over a hole, as long as a frame usually does."""
    ends = np.array(times_ms, dtype=np.float64)
    steps = np.diff(ends)
    usual = float(np.median(steps)) if len(steps) else _TICK_MS
    hole = 3 * max(usual, _TICK_MS)
    # a clock that was set back makes a negative step
    steps = np.where((steps > 0) & (steps <= hole), steps, usual)
    return ends - np.concatenate(([usual], steps))[: len(ends)], ends


def read_seconds(
    seconds: Iterable[Second], devices: Mapping[int, Device]
) -> dict[int, Readings]:
    """Turn summaries of seconds into the readings of some devices.

    Args:
        seconds: summaries, oldest first.
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
    by_position = {}
    for position, device in devices.items():
        width = len(device.metrics)
        columns = 3 * width + len(REASON_BITS)
        whole = np.array(rows[position], dtype=np.float64).reshape(-1, columns)
        starts = np.array(times[position], dtype=np.float64)
        least, mean, most, reasons = np.split(whole, (width, 2 * width, 3 * width), 1)
        by_position[position] = Readings(
            starts, starts + SECOND_MS, least, mean, most, reasons
        )
    return by_position


def reason_shares(device: Device, values: Floats) -> Floats:
    """A column for each of `REASON_BITS`: 1.0 where it is set, NaN where unknown."""
    names = [metric.name for metric in device.metrics]
    if REASONS not in names:
        return np.full((len(values), len(REASON_BITS)), np.nan)
    flags = values[:, names.index(REASONS)]
    known = np.isfinite(flags)
    bits = np.where(known, flags, 0).astype(np.int64)[:, None] & np.array(REASON_BITS)
    return np.where(known[:, None], (bits > 0).astype(np.float64), np.nan)

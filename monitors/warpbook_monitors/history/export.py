"""A span of history for other programs: CSV, a recording, Chrome-trace counters.

All take the encoded messages of the stream, oldest first, and yield text in pieces.
A reading that is not there is an empty cell or no event, never a zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

import msgspec

from warpbook_monitors.frames import Device, Frame, Hello, Reading
from warpbook_monitors.history.history import decode
from warpbook_monitors.spreadsheet import csv_lines


def to_jsonl(hello: Hello, messages: Iterable[bytes]) -> Iterator[bytes]:
    """A recording: `warpbook up --replay` plays it."""
    yield msgspec.json.encode(hello) + b"\n"
    for encoded in messages:
        yield encoded + b"\n"


def to_csv(devices: Sequence[Device], messages: Iterable[bytes]) -> Iterator[bytes]:
    """One row a frame; a column for each metric that its device gives at all."""
    columns = [
        (position, column, f"{device.id} {metric.name}")
        for position, device in enumerate(devices)
        for column, metric in enumerate(device.metrics)
        if metric.state == "ok"
    ]

    def rows() -> Iterator[Iterable[object]]:
        yield "time_ms", "label", *(name for _, _, name in columns)
        for encoded in messages:
            frame = decode(encoded)
            if not isinstance(frame, Frame):
                continue
            values = {
                reading.device: reading.values
                for reading in frame.readings
                if _is_described(devices, reading)
            }
            row = (_at(values.get(place, ()), column) for place, column, _ in columns)
            yield Decimal(repr(frame.time_ms)), frame.label, *row

    for line in csv_lines(rows()):
        yield line.encode()


def to_chrome_trace(
    devices: Sequence[Device], messages: Iterable[bytes]
) -> Iterator[bytes]:
    """Counter events ("ph": "C") for Perfetto, with Unix time in µs.

    A trace of Kineto tells its own zero as `baseTimeNanoseconds`, also of Unix time,
    so that the two can be laid over each other.
    """
    yield b'{"displayTimeUnit": "ms", "traceEvents": [\n'
    yield b",\n".join(
        msgspec.json.encode(
            {
                "ph": "M",
                "name": "process_name",
                "pid": position,
                "args": {"name": f"{device.name} ({device.origin})"},
            }
        )
        for position, device in enumerate(devices)
    )
    for encoded in messages:
        frame = decode(encoded)
        if isinstance(frame, Frame):
            for event in _counters(devices, frame):
                yield b",\n" + msgspec.json.encode(event)
    yield b"\n]}\n"


def _counters(devices: Sequence[Device], frame: Frame) -> Iterator[dict[str, object]]:
    for reading in frame.readings:
        if not _is_described(devices, reading):
            continue
        metrics = devices[reading.device].metrics
        for metric, value in zip(metrics, reading.values, strict=True):
            if value is not None:
                yield {
                    "ph": "C",
                    "name": metric.label,
                    "pid": reading.device,
                    "ts": frame.time_ms * 1000,
                    "args": {metric.unit: value},
                }


def _is_described(devices: Sequence[Device], reading: Reading) -> bool:
    """Whether the values are those of the description; it may have changed since."""
    return len(reading.values) == len(devices[reading.device].metrics)


def _at(values: Sequence[float | None], column: int) -> Decimal | None:
    """Give a value with all of its digits."""
    value = values[column] if column < len(values) else None
    return None if value is None else Decimal(repr(value))

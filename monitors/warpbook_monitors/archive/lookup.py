"""What the archive holds of a span: readings by device, and the messages themselves."""

from __future__ import annotations

import heapq
import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from warpbook_monitors.archive.columns import DamagedColumn, Floats
from warpbook_monitors.archive.errors import UNREADABLE, ArchiveError
from warpbook_monitors.archive.frame_table import FrameTable, frames_of
from warpbook_monitors.archive.segments import stored
from warpbook_monitors.archive.steps import FRAMES
from warpbook_monitors.archive.summaries import longer, seconds_of
from warpbook_monitors.archive.table import (
    FROM_MS,
    Table,
    joined,
    unpack,
    unpack_or_leave_out,
)
from warpbook_monitors.archive.tail import unpack_rows
from warpbook_monitors.frames import Device, Devices, Event, Frame, Gap, end_ms
from warpbook_monitors.history.readings import Readings, reason_shares, windows
from warpbook_monitors.verdicts.health import REASON_BITS

_log = logging.getLogger(__name__)
_decode_remark = msgspec.json.Decoder(Gap | Event).decode

_KINDS = ("least", "mean", "most")


def read_archive(
    connection: sqlite3.Connection,
    from_ms: float,
    to_ms: float,
    devices: Mapping[int, Device],
    step_ms: int,
) -> dict[int, Readings]:
    """Give readings of some devices in a span, as rows of one step.

    Args:
        connection: of `Archive.reading`.
        from_ms: begin of the span.
        to_ms: its end.
        devices: those wanted, with the metrics that are wanted, by a position of the
            caller's.
        step_ms: one of `STEPS_MS`; 0 is frames.

    Raises:
        ArchiveError: it holds far more rows than were ever read.
    """
    tables: dict[int, list[Table]] = {position: [] for position in devices}
    for described, read in _tables(connection, from_ms, to_ms, step_ms):
        for position, device in devices.items():
            at = place_of(device, described)
            if at is None:
                continue
            names = {f"{at} {name}": name for name in _names(device, step_ms)}
            try:
                tables[position].append(read(names).renamed(names))
            except DamagedColumn as error:
                _log.warning("A segment of the archive is left out: %s", error)
    return {
        position: _readings(_joined(tables[position]), device, from_ms, to_ms, step_ms)
        for position, device in devices.items()
    }


def archived_messages(
    connection: sqlite3.Connection,
    from_ms: float,
    to_ms: float,
    devices: Sequence[Device],
) -> Iterator[Frame | Gap | Event]:
    """Give the messages of a span, oldest first; readings are those of `devices`."""
    remarks = connection.execute(
        "SELECT message FROM remark WHERE time_ms >= ? AND time_ms < ?"
        " ORDER BY time_ms",
        (from_ms, to_ms),
    )
    return heapq.merge(
        _frames(connection, from_ms, to_ms, devices),
        _readable_remarks(text for (text,) in remarks),
        key=end_ms,
    )


def place_of(device: Device, described: Sequence[Device]) -> int | None:
    """Where a description tells of a device; a recording's is another one."""
    for place, other in enumerate(described):
        if (other.id, other.origin) == (device.id, device.origin):
            return place
    return None


def _joined(tables: Sequence[Table]) -> Table:
    try:
        return joined(tables)
    except DamagedColumn as error:
        raise ArchiveError(f"The archive can't be read: {error}") from error


Read = Callable[[Iterable[str]], Table]


def _tables(
    connection: sqlite3.Connection, from_ms: float, to_ms: float, step_ms: int
) -> Iterator[tuple[Sequence[Device], Read]]:
    """Give what reads columns of each segment, and of the tail, in order."""
    for segment in stored(connection, step_ms, from_ms, to_ms):

        def read_segment(names: Iterable[str], packed: bytes = segment.packed) -> Table:
            return unpack(packed, step_ms, names)

        yield segment.devices, read_segment
    for frames in _recent(connection, from_ms, to_ms):
        table = frames.table()
        if step_ms != FRAMES:
            table = longer(seconds_of(table, frames.devices), step_ms)

        def read_recent(names: Iterable[str], table: Table = table) -> Table:
            return table.only(names)

        yield frames.devices, read_recent


def _recent(
    connection: sqlite3.Connection, from_ms: float, to_ms: float
) -> Iterator[FrameTable]:
    """Give what no segment holds yet."""
    rows = connection.execute(
        "SELECT to_ms < ? OR from_ms > ?, messages FROM recent ORDER BY number",
        (from_ms, to_ms),
    ).fetchall()
    table: FrameTable | None = None
    messages_of_rows = unpack_rows(packed for _, packed in rows)
    for (is_outside, _), messages in zip(rows, messages_of_rows, strict=True):
        for message in messages:
            if isinstance(message, Devices):
                if table is not None and table.rows:
                    yield table
                table = FrameTable(message.devices)
        frames = [message for message in messages if isinstance(message, Frame)]
        if table is not None and frames and not is_outside:
            table.append(frames)
    if table is not None and table.rows:
        yield table


def _names(device: Device, step_ms: int) -> list[str]:
    metrics = [metric.name for metric in device.metrics]
    if step_ms == FRAMES:
        return metrics
    reasons = [f"reason {bit}" for bit in REASON_BITS]
    return [f"{kind} {name}" for name in metrics for kind in _KINDS] + reasons


def _readings(
    table: Table, device: Device, from_ms: float, to_ms: float, step_ms: int
) -> Readings:
    ends_ms = table.to_ms
    metrics = [metric.name for metric in device.metrics]
    if step_ms == FRAMES:
        starts_ms, _ = windows(ends_ms.tolist())
    else:
        starts_ms = table.column(FROM_MS)
    within = (ends_ms >= from_ms) & (starts_ms <= to_ms)

    def values(names: Sequence[str]) -> Floats:
        columns = [table.column(name)[within] for name in names]
        shape = (int(within.sum()), len(columns))
        return np.stack(columns, axis=1) if columns else np.empty(shape)

    if step_ms == FRAMES:
        least = mean = most = values(metrics)
        reasons = reason_shares(device, mean)
    else:
        least, mean, most = (
            values([f"{kind} {name}" for name in metrics]) for kind in _KINDS
        )
        reasons = values([f"reason {bit}" for bit in REASON_BITS])
    return Readings(starts_ms[within], ends_ms[within], least, mean, most, reasons)


def _readable_remarks(texts: Iterable[str]) -> Iterator[Gap | Event]:
    for text in texts:
        try:
            yield _decode_remark(text)
        except UNREADABLE as error:
            _log.warning("A remark of the archive is left out: %s", error)


def _frames(
    connection: sqlite3.Connection,
    from_ms: float,
    to_ms: float,
    devices: Sequence[Device],
) -> Iterator[Frame]:
    for segment in stored(connection, FRAMES, from_ms, to_ms):
        table = unpack_or_leave_out(segment.packed, FRAMES)
        if table is not None:
            frames = frames_of(table, segment.devices)
            yield from _within(frames, from_ms, to_ms, devices, segment.devices)
    for recent in _recent(connection, from_ms, to_ms):
        frames = frames_of(recent.table(), recent.devices)
        yield from _within(frames, from_ms, to_ms, devices, recent.devices)


def _within(
    frames: Iterable[Frame],
    from_ms: float,
    to_ms: float,
    devices: Sequence[Device],
    described: Sequence[Device],
) -> Iterator[Frame]:
    """Frames of a span, their readings at the places that devices have now."""
    places = {
        old: new
        for new, device in enumerate(devices)
        if (old := place_of(device, described)) is not None
        and described[old].metrics == device.metrics
    }
    for frame in frames:
        if from_ms <= frame.time_ms < to_ms:
            readings = [
                msgspec.structs.replace(reading, device=places[reading.device])
                for reading in frame.readings
                if reading.device in places
            ]
            readings.sort(key=lambda reading: reading.device)
            yield msgspec.structs.replace(frame, readings=tuple(readings))

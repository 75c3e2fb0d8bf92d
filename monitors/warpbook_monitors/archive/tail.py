"""The newest minutes of the stream, on their way into the archive's file.

Each second is written as it came. When five minutes are over, what came becomes a
segment, and its seconds are removed in the same transaction.
"""

from __future__ import annotations

import itertools
import logging
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from warpbook_monitors.archive.database import transaction
from warpbook_monitors.archive.errors import UNREADABLE
from warpbook_monitors.archive.frame_table import FrameTable
from warpbook_monitors.archive.segments import SEGMENT_MS, store_frames
from warpbook_monitors.frames import Device, Devices, Event, Frame, Gap, end_ms
from warpbook_monitors.history.history import Message

_log = logging.getLogger(__name__)

#: of all rows of `recent` together, as JSON: five minutes of eight GPUs are 12 MB
_MOST_BYTES = 64 * 2**20
_LEVEL = 1

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Message).decode


class Tail:
    """What is no segment yet; for the thread of the archive."""

    def __init__(self) -> None:
        self._growing: FrameTable | None = None
        self._newest_ms = 0.0
        #: the rows of `recent` that hold what grows: number and time
        self._rows: list[tuple[int, float]] = []

    def recover(self, connection: sqlite3.Connection) -> int:
        """Take up what the file holds of an unfinished segment; give its frames."""
        self._growing = None
        self._rows = []
        rows = connection.execute(
            "SELECT number, from_ms, messages FROM recent ORDER BY number"
        ).fetchall()
        devices: tuple[Device, ...] = ()
        count = 0
        with transaction(connection):
            messages_of_rows = unpack_rows(packed for _, _, packed in rows)
            for (number, from_ms, _), messages in zip(
                rows, messages_of_rows, strict=True
            ):
                frames = []
                for message in messages:
                    if isinstance(message, Devices):
                        devices = message.devices
                    elif isinstance(message, Frame):
                        frames.append(message)
                count += len(frames)
                if frames:
                    self._take(connection, frames, devices)
                self._rows.append((number, from_ms))
        return count

    def write(
        self,
        connection: sqlite3.Connection,
        waiting: Sequence[tuple[Message, tuple[Device, ...]]],
    ) -> None:
        """Write messages, each with the devices it tells of, in one transaction."""
        with transaction(connection):
            self._forget_lost_rows(connection)
            for message, _ in waiting:
                if isinstance(message, Gap | Event):
                    _remark(connection, message)
            framed = [(m, devices) for m, devices in waiting if isinstance(m, Frame)]
            for devices, group in itertools.groupby(framed, key=lambda pair: pair[1]):
                frames = [frame for frame, _ in group]
                for span in self._spans(frames):
                    self._take(connection, span, devices)
                    self._keep(connection, span, devices)

    def _forget_lost_rows(self, connection: sqlite3.Connection) -> None:
        """Begin anew where another process has put a backup in the file's place."""
        row = connection.execute(
            "SELECT 1 FROM recent WHERE number = ? AND from_ms = ?",
            self._rows[0] if self._rows else (0, 0.0),
        ).fetchone()
        if row is None:
            # the row that said what the others tell of is gone
            self._rows = []

    def _spans(self, frames: Sequence[Frame]) -> Iterator[list[Frame]]:
        """Cut frames where a segment ends."""
        span: list[Frame] = []
        for frame in frames:
            if span and _is_apart(span[-1].time_ms, frame.time_ms):
                yield span
                span = []
            span.append(frame)
        yield span

    def _take(
        self,
        connection: sqlite3.Connection,
        frames: Sequence[Frame],
        devices: tuple[Device, ...],
    ) -> None:
        growing = self._growing
        if growing is not None and (
            growing.devices != devices or _is_apart(self._newest_ms, frames[0].time_ms)
        ):
            store_frames(connection, growing.table(), growing.devices)
            connection.executemany(
                "DELETE FROM recent WHERE number = ? AND from_ms = ?", self._rows
            )
            growing, self._rows = None, []
        if growing is None:
            growing = self._growing = FrameTable(devices)
        growing.append(frames)
        self._newest_ms = frames[-1].time_ms

    def _keep(
        self,
        connection: sqlite3.Connection,
        frames: Sequence[Frame],
        devices: tuple[Device, ...],
    ) -> None:
        from_ms, to_ms = frames[0].time_ms, frames[-1].time_ms
        messages: list[Message] = list(frames)
        if not self._rows:
            # the first row of a segment says what the others tell of
            messages.insert(0, Devices(from_ms, devices))
        cursor = connection.execute(
            "INSERT INTO recent (from_ms, to_ms, messages) VALUES (?, ?, ?)",
            (from_ms, to_ms, _pack_messages(messages)),
        )
        self._rows.append((int(cursor.lastrowid or 0), from_ms))


def unpack_rows(rows: Iterable[bytes]) -> Iterator[list[Message]]:
    """Give the messages of each row of `recent`; of a damaged one, those that are good.

    Of a file that holds far more than five minutes, it gives the first.
    """
    left_bytes = _MOST_BYTES
    for packed in rows:
        messages: list[Message] = []
        try:
            lines = zlib.decompressobj().decompress(packed, max(left_bytes, 1))
            left_bytes -= len(lines)
            messages.extend(map(_decode, lines.splitlines()))
        except UNREADABLE as error:
            _log.warning("A second of the archive is damaged: %s", error)
        yield messages


def _pack_messages(messages: Sequence[Message]) -> bytes:
    return zlib.compress(b"\n".join(map(_encode, messages)), _LEVEL)


def _remark(connection: sqlite3.Connection, message: Gap | Event) -> None:
    connection.execute(
        "INSERT INTO remark (time_ms, message) VALUES (?, ?)",
        (end_ms(message), _encode(message).decode()),
    )


def _is_apart(before_ms: float, time_ms: float) -> bool:
    """Whether a frame belongs to another segment than the one before it."""
    # the frame stands for the time before it, so a segment holds its very end
    same_part = (before_ms - 0.001) // SEGMENT_MS == (time_ms - 0.001) // SEGMENT_MS
    return time_ms < before_ms or not same_part

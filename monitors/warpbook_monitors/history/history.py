"""The last hour of the stream at full resolution, in bounded memory.

Messages are kept as they were sent, in pieces of some seconds. A piece is
compressed while it grows, a message at a time, so that no moment pays for all of it.
"""

from __future__ import annotations

import time
import zlib
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

import msgspec

from warpbook_monitors.frames import Devices, Event, Frame, Gap

Message = Frame | Gap | Devices | Event
decode = msgspec.json.Decoder(Message).decode

_FRAME_BEGINS = b'{"type":"frame"'

#: of a piece: five seconds at 10 Hz, which take 3 ms to read for eight GPUs
PIECE_MESSAGES = 50
#: an hour of eight GPUs with 60 metrics each takes less than half of it
MAX_BYTES = 64 * 2**20
#: 9 would halve the memory once more, and costs the event loop five times as much
_LEVEL = 3


def is_frame(encoded: bytes) -> bool:
    """Whether a message is a frame, without looking into it."""
    return encoded.startswith(_FRAME_BEGINS)


@dataclass(frozen=True)
class Piece:
    """Some messages in a row; any thread may read it."""

    #: number of its first message, counted since the history began
    first: int
    times_ms: Sequence[float]
    #: the earliest and the latest of them: the clock may have been set
    from_ms: float
    to_ms: float
    _content: bytes | tuple[bytes, ...]

    @property
    def end(self) -> int:
        """Number of the message after its last."""
        return self.first + len(self.times_ms)

    def messages(self) -> Sequence[bytes]:
        """Give the encoded messages, oldest first."""
        if isinstance(self._content, bytes):
            return zlib.decompress(self._content).split(b"\n")[:-1]
        return self._content

    def messages_from(self, number: int) -> Iterator[bytes]:
        """Give those from one number on; unpacked by the thread that takes them."""
        yield from self.messages()[number - self.first :]


class History:
    """A ring of encoded messages by time; written and asked by one thread."""

    def __init__(
        self, seconds: float, rate_hz: float, max_bytes: int = MAX_BYTES
    ) -> None:
        """Keep `seconds` of a stream of `rate_hz` frames per second.

        Where they take more than `max_bytes`, fewer seconds are kept.
        """
        self.seconds = seconds
        self._max_messages = round(seconds * rate_hz)
        self._max_bytes = max_bytes
        self._pieces: deque[Piece] = deque()
        self._sizes_bytes: deque[int] = deque()
        self._pieces_bytes = 0
        self._begin_ms = time.time() * 1000
        self._dropped_ms: float | None = None
        self._begin_piece(first=0)

    def _begin_piece(self, first: int) -> None:
        self._first = first
        self._times_ms = array("d")
        self._raw: list[bytes] = []
        self._raw_bytes = 0
        self._packer = zlib.compressobj(_LEVEL)
        self._packed: list[bytes] = []

    @property
    def size_bytes(self) -> int:
        return self._pieces_bytes + self._raw_bytes

    @property
    def begin_ms(self) -> float:
        """Since when all that came is here."""
        return self._begin_ms if self._dropped_ms is None else self._dropped_ms

    @property
    def first_ms(self) -> float | None:
        """The time of the oldest message that is here; None if there is none."""
        oldest = self._pieces[0].times_ms if self._pieces else self._times_ms
        return oldest[0] if oldest else None

    def append(self, time_ms: float, encoded: bytes) -> None:
        """Keep one message, which is one line; the oldest go when the ring is full."""
        self._times_ms.append(time_ms)
        self._raw.append(encoded)
        self._packed.append(self._packer.compress(encoded + b"\n"))
        self._raw_bytes += len(encoded) + len(self._packed[-1])
        if len(self._raw) >= PIECE_MESSAGES:
            self._packed.append(self._packer.flush())
            content = b"".join(self._packed)
            piece = self._piece(self._times_ms, content)
            self._pieces.append(piece)
            self._sizes_bytes.append(len(content))
            self._pieces_bytes += len(content)
            self._begin_piece(piece.end)
        self._drop_oldest()

    def after(self, time_ms: float) -> int:
        """Number of the first message after `time_ms`, for `piece`."""
        for piece in (self._growing(), *reversed(self._pieces)):
            for place in reversed(range(len(piece.times_ms))):
                if piece.times_ms[place] <= time_ms:
                    return piece.first + place + 1
        return self._oldest

    def piece(self, number: int) -> Piece | None:
        """The piece with the message of that number; None if it is yet to come.

        If it is not here any more, this is the oldest piece: its `first` is larger.
        """
        place = max(number - self._oldest, 0) // PIECE_MESSAGES
        if place < len(self._pieces):
            return self._pieces[place]
        growing = self._growing()
        return growing if number < growing.end else None

    @property
    def has_dropped(self) -> bool:
        return self._dropped_ms is not None

    def lost_since(self, time_ms: float) -> Gap | None:
        """Tell what came after `time_ms` and is not here any more, if anything."""
        if self._dropped_ms is not None and time_ms < self._dropped_ms:
            reason = "Older than the kept history."
            return Gap(time_ms, self._dropped_ms, "expired", reason)
        if time_ms < self._begin_ms:
            reason = "The server was restarted since then."
            return Gap(time_ms, self._begin_ms, "restarted", reason)
        return None

    def entries(self, from_ms: float, to_ms: float) -> Iterator[bytes]:
        """Give the messages of a span, oldest first.

        What is given is that of now: any thread may take it, piece by piece.
        """
        pieces = [
            piece
            for piece in (*self._pieces, self._growing())
            if piece.from_ms <= to_ms and piece.to_ms >= from_ms
        ]
        return (
            encoded
            for piece in pieces
            for at_ms, encoded in zip(piece.times_ms, piece.messages(), strict=True)
            if from_ms <= at_ms <= to_ms
        )

    @property
    def _oldest(self) -> int:
        return self._pieces[0].first if self._pieces else self._first

    def _growing(self) -> Piece:
        return self._piece(tuple(self._times_ms), tuple(self._raw))

    def _piece(
        self, times_ms: Sequence[float], content: bytes | tuple[bytes, ...]
    ) -> Piece:
        from_ms, to_ms = min(times_ms, default=inf), max(times_ms, default=-inf)
        return Piece(self._first, times_ms, from_ms, to_ms, content)

    def _drop_oldest(self) -> None:
        while self._pieces:
            oldest, newest = self._pieces[0], self._first + len(self._raw)
            enough = newest - oldest.end >= self._max_messages
            if not enough and self.size_bytes <= self._max_bytes:
                return
            self._pieces.popleft()
            self._pieces_bytes -= self._sizes_bytes.popleft()
            self._dropped_ms = oldest.times_ms[-1]

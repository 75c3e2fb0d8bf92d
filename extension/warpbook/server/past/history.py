"""The history as figures: what was read in a span, and what it was like.

The newest hour is in memory, what is older in the archive, where there is one.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from warpbook.protocol import Device, DeviceSpan, Event, Frame, Gap
from warpbook.server.stream.broadcast import Broadcaster
from warpbook.server.stream.selection import encode
from warpbook.server.stream.stream_part import StreamPart
from warpbook_monitors.archive.errors import ArchiveError
from warpbook_monitors.archive.steps import FRAMES, SECOND, fitting_step_ms
from warpbook_monitors.history.seconds import (
    COUNTER_REACH_MS,
    LONGEST_OF_FRAMES_MS,
    POWER_REACH_MS,
    SECOND_MS,
    Seconds,
)
from warpbook_monitors.sampling.sampler import Message

if TYPE_CHECKING:
    from warpbook_monitors.archive.archive import Archive
    from warpbook_monitors.history.readings import Readings

_log = logging.getLogger(__name__)

#: of the archive in one go: no reader keeps SQLite from tidying up for long
_EXPORTED_MS = 300_000.0
#: of a recording, before the first frame: as much as a page keeps
PLAYED_MS = 600_000.0
#: what the archive holds and ends longer before is of another session
_APART_MS = 60_000.0
#: so long a view waits for an archive that is being opened
_OPENED_S = 5.0

Read = Callable[[], "dict[int, Readings]"]


class Past(StreamPart):
    """What was read: by frames for a short span, by summaries for a long one."""

    def __init__(
        self, broadcaster: Broadcaster, archive: Archive | None = None
    ) -> None:
        """Follow the stream, and hand it to the archive."""
        self.broadcaster = broadcaster
        self.archive = archive
        #: time of the newest frame that is in the history
        self.newest_ms = 0.0
        self._seconds = Seconds(broadcaster.history.seconds)
        broadcaster.attach(self)

    def follow(self, message: Message) -> None:
        """Note a message, and hand it to the archive."""
        if isinstance(message, Frame):
            self.newest_ms = message.time_ms
            self._seconds.take(message, self.broadcaster.devices)
        if self.archive is not None:
            self.archive.append(message, self.broadcaster.devices)

    @property
    def oldest_ms(self) -> float:
        """Nothing that is older can be told."""
        begin_ms = self.broadcaster.history.begin_ms
        if self.broadcaster.sampler.replay is not None:
            begin_ms -= PLAYED_MS
        kept_ms = None if self.archive is None else self.archive.keeping.from_ms
        return begin_ms if kept_ms is None else min(kept_ms, begin_ms)

    def clamped(self, from_ms: float, to_ms: float) -> tuple[float, float]:
        """The part of a span of which anything can be held; it may be empty."""
        oldest_ms = self.oldest_ms - SECOND_MS
        newest_ms = max(self.newest_ms, self.broadcaster.history.begin_ms) + SECOND_MS
        from_ms = min(max(from_ms, oldest_ms), newest_ms)
        return from_ms, max(min(to_ms, newest_ms), from_ms)

    def row_ms(self, from_ms: float, to_ms: float, metrics: int, step_ms: float) -> int:
        """What a row that `reader` gives stands for; 0 is a frame.

        Args:
            from_ms: begin of the span.
            to_ms: its end.
            metrics: how many are read, of all devices together.
            step_ms: shorter rows are of no use.
        """
        from_ms, to_ms = self.clamped(from_ms, to_ms)
        if to_ms - from_ms <= LONGEST_OF_FRAMES_MS:
            return FRAMES
        if self.archive is None or from_ms >= self.broadcaster.history.begin_ms:
            return SECOND
        return fitting_step_ms(to_ms - from_ms, step_ms, metrics)

    def reader(
        self,
        from_ms: float,
        to_ms: float,
        devices: Mapping[int, Device],
        metrics: Sequence[int] | None = None,
        step_ms: float = 0.0,
    ) -> Read:
        """Give what reads a span as it is known now; call it off the event loop.

        Args:
            from_ms: begin of the span.
            to_ms: its end.
            devices: those wanted, by position.
            metrics: positions of the only metrics to read, the same for all devices.
            step_ms: shorter summaries than these are of no use.
        """
        from_ms, to_ms = self.clamped(from_ms, to_ms)
        read_memory = self._memory_reader(from_ms, to_ms, devices)
        archive, begin_ms = self.archive, self.broadcaster.history.begin_ms
        is_archived = archive is not None and from_ms < begin_ms
        width = sum(len(metrics or device.metrics) for device in devices.values())
        row_ms = self.row_ms(from_ms, to_ms, width, step_ms)

        def read() -> dict[int, Readings]:
            # numpy must not be imported on the event loop
            from warpbook_monitors.history.readings import joined, narrowed

            past = read_memory()
            if metrics is not None:
                past = {
                    at: narrowed(readings, metrics) for at, readings in past.items()
                }
            if archive is None or not is_archived:
                return past
            chosen = {
                at: _narrowed(readings, metrics) for at, readings in devices.items()
            }
            span = (from_ms, min(to_ms, begin_ms))
            try:
                older = _read_archive(archive, span, chosen, row_ms)
            except ArchiveError as error:
                _log.warning("What is older than an hour is left out: %s", error)
                return past
            return {at: joined(older[at], past[at]) for at in devices}

        return read

    def _memory_reader(
        self, from_ms: float, to_ms: float, devices: Mapping[int, Device]
    ) -> Read:
        by_seconds = to_ms - from_ms > LONGEST_OF_FRAMES_MS
        seconds = self._seconds.span(from_ms, to_ms) if by_seconds else ()
        messages = self.broadcaster.history.entries(from_ms, to_ms)

        def read() -> dict[int, Readings]:
            # numpy must not be imported on the event loop
            from warpbook_monitors.history.readings import read_frames, read_seconds

            if by_seconds:
                return read_seconds(seconds, devices)
            played = map(encode, self.played(from_ms, to_ms))
            return read_frames(itertools.chain(played, messages), devices)

        return read

    async def spans(
        self, from_ms: float, to_ms: float, devices: Mapping[int, Device]
    ) -> tuple[DeviceSpan, ...]:
        """Tell what some devices, by position, did in a span."""
        before_ms, after_ms = from_ms - POWER_REACH_MS, to_ms + COUNTER_REACH_MS
        by_seconds = after_ms - before_ms > LONGEST_OF_FRAMES_MS
        read = self.reader(before_ms, after_ms, devices)
        read_begin = self.reader(before_ms, from_ms + COUNTER_REACH_MS, devices)
        read_end = self.reader(to_ms - COUNTER_REACH_MS, after_ms, devices)

        def tell() -> tuple[DeviceSpan, ...]:
            # numpy must not be imported on the event loop
            from warpbook_monitors.history.readings import joined
            from warpbook_monitors.history.span_statistics import device_span

            readings = counters = read()
            if by_seconds:
                begin, end = read_begin(), read_end()
                counters = {at: joined(begin[at], end[at]) for at in devices}
            return tuple(
                device_span(device, readings[at], from_ms, to_ms, counters[at])
                for at, device in devices.items()
            )

        return await asyncio.to_thread(tell)

    def messages(self, from_ms: float, to_ms: float) -> Iterator[bytes]:
        """Give the messages of a span, oldest first; take them off the event loop."""
        history, archive = self.broadcaster.history, self.archive
        newer = history.entries(from_ms, to_ms)
        begin_ms = history.begin_ms
        if archive is None or from_ms >= begin_ms:
            return newer
        devices = self.broadcaster.devices
        older = _archived(archive, from_ms, min(to_ms, begin_ms), devices)
        return itertools.chain(map(encode, older), newer)

    def before_memory(self, since_ms: float) -> Iterator[Frame | Gap | Event]:
        """Give what a view missed and only the archive holds; take it off the loop.

        As much as the memory of a server that had not been started again would hold.
        """
        history, archive = self.broadcaster.history, self.archive
        begin_ms = history.begin_ms
        # until the first frame comes, the memory begins now
        newest_ms = max(self.newest_ms, begin_ms)
        from_ms = max(since_ms, newest_ms - history.seconds * 1000)
        # a server that has just been started may still have to open the file
        if (
            archive is None
            or from_ms >= begin_ms
            or not archive.wait_until_opened(_OPENED_S)
        ):
            return
        # what the view saw last is not sent again
        from_ms = math.nextafter(from_ms, math.inf)
        try:
            yield from _archived(archive, from_ms, begin_ms, self.broadcaster.devices)
        except ArchiveError as error:
            _log.warning("A view is not sent what is archived: %s", error)

    def played(self, since_ms: float, to_ms: float = math.inf) -> Iterator[Frame]:
        """Give what a recording would have shown before the first frame.

        Nothing of live devices, and nothing where the archive tells what was shown.
        Take it off the event loop.
        """
        history, sampler = self.broadcaster.history, self.broadcaster.sampler
        if sampler.replay is None or history.has_dropped:
            return
        first_ms = history.first_ms or time.time() * 1000
        from_ms = max(since_ms, first_ms - PLAYED_MS)
        if from_ms >= first_ms:
            return
        since_kept_ms = first_ms - PLAYED_MS - _APART_MS
        if self.archive is None or not any(self.before_memory(since_kept_ms)):
            yield from sampler.played(from_ms, min(first_ms, to_ms))

    def missing(self, from_ms: float, to_ms: float) -> str:
        """Say in words what the history does not hold of a span; empty if nothing."""
        if self.archive is None or self.archive.keeping.from_ms is None:
            lost = self.broadcaster.history.lost_since(from_ms)
            if lost is not None and lost.to_ms > from_ms:
                return f"Not all of it is there. {lost.message}"
        elif from_ms < self.oldest_ms:
            return "Not all of it is there. Older than the kept history."
        begin_ms = self.broadcaster.history.begin_ms
        if to_ms > max(self.newest_ms, begin_ms) + SECOND_MS:
            return "Not all of it is there: nothing was read at its end."
        return ""


def _read_archive(
    archive: Archive,
    span: tuple[float, float],
    devices: Mapping[int, Device],
    row_ms: int,
) -> dict[int, Readings]:
    # numpy must not be imported on the event loop
    from warpbook_monitors.archive.lookup import read_archive

    from_ms, to_ms = span
    with archive.reading() as connection:
        past = read_archive(connection, from_ms, to_ms, devices, row_ms)
        if row_ms == FRAMES and not any(len(r.ends_ms) for r in past.values()):
            # so long after it the frames are gone, and the seconds still there
            return read_archive(connection, from_ms, to_ms, devices, SECOND)
        return past


def _archived(
    archive: Archive, from_ms: float, to_ms: float, devices: Sequence[Device]
) -> Iterator[Frame | Gap | Event]:
    # numpy must not be imported on the event loop
    from warpbook_monitors.archive.lookup import archived_messages

    from_ms = max(from_ms, archive.keeping.from_ms or to_ms)
    while from_ms < to_ms:
        end_ms = min(from_ms + _EXPORTED_MS, to_ms)
        with archive.reading() as connection:
            messages = list(archived_messages(connection, from_ms, end_ms, devices))
        yield from messages
        from_ms = end_ms


def _narrowed(device: Device, metrics: Sequence[int] | None) -> Device:
    """A device that has only some of its metrics."""
    if metrics is None:
        return device
    return replace(device, metrics=tuple(device.metrics[at] for at in metrics))

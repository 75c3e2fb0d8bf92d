"""Intervals that no hub has acknowledged yet: in memory, and in a file if one is named.

The file has a line for each interval. It is written before the interval is sent and
emptied when all are acknowledged, so a killed agent leaves what was not, and at worst
some that were; the hub counts those once. Two threads may use it: one adds, one sends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import msgspec

from warpbook_monitors.errors import MonitorError
from warpbook_monitors.holders.node_protocol import Interval

#: some eight hours of a node with eight GPUs
MOST_BYTES = 16 << 20
_decode = msgspec.json.Decoder(Interval).decode


class SpoolError(MonitorError):
    """The file can't be used; the message says what to do."""


class Spool:
    """A bounded queue; beyond the bound the oldest intervals are dropped."""

    def __init__(self, path: Path | None = None, most_bytes: int = MOST_BYTES) -> None:
        """Take over what an earlier agent left.

        Args:
            path: of the file; None keeps intervals in memory alone.
            most_bytes: of intervals that are kept.

        Raises:
            SpoolError: the file can't be opened, or another agent has it.
        """
        self._most_bytes = most_bytes
        self._kept: deque[tuple[Interval, bytes]] = deque()
        self._bytes = 0
        #: intervals that were dropped for want of room
        self.dropped = 0
        self._lock = threading.Lock()
        self._path, self._file = path, None if path is None else _opened(path)
        if path is not None:
            try:
                self._take_over(path)
            except OSError as error:
                raise SpoolError(
                    f"{path}: {error.strerror}. Name another file by --spool."
                ) from None

    def add(self, interval: Interval) -> None:
        """Keep an interval; where the file can't take it, in memory alone."""
        line = msgspec.json.encode(interval) + b"\n"
        with self._lock:
            self._keep(interval, line)
            if self._file is None:
                return
            with contextlib.suppress(OSError):
                size = os.fstat(self._file).st_size
                if size + len(line) > 2 * self._most_bytes:
                    self._rewrite()
                elif os.write(self._file, line) < len(line):
                    # the disk is full: the next line must not follow half of this one
                    os.ftruncate(self._file, size)

    def oldest(self, most: int, most_bytes: int) -> tuple[Interval, ...]:
        """Give the oldest intervals that fit; one at least if there are any."""
        batch: list[Interval] = []
        size = 0
        with self._lock:
            for interval, line in self._kept:
                size += len(line)
                if batch and (len(batch) == most or size > most_bytes):
                    break
                batch.append(interval)
        return tuple(batch)

    def acknowledge(self, intervals: Sequence[Interval]) -> None:
        """Forget intervals that `oldest` gave."""
        done = {(interval.stream, interval.number) for interval in intervals}
        with self._lock:
            while self._kept and _key(self._kept[0][0]) in done:
                self._drop_oldest()
            if self._file is not None and not self._kept:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, 0)

    def drop(self, intervals: Sequence[Interval]) -> None:
        """Forget intervals that nobody will take."""
        self.dropped += len(intervals)
        self.acknowledge(intervals)

    def close(self) -> None:
        """Let another agent have the file."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _keep(self, interval: Interval, line: bytes) -> None:
        self._kept.append((interval, line))
        self._bytes += len(line)
        while self._bytes > self._most_bytes and len(self._kept) > 1:
            self._drop_oldest()
            self.dropped += 1

    def _drop_oldest(self) -> None:
        _, line = self._kept.popleft()
        self._bytes -= len(line)

    def _take_over(self, path: Path) -> None:
        with path.open("rb") as file:
            content = file.read(2 * self._most_bytes)
        for line in content.splitlines(keepends=True):
            # one that was cut off by a kill was not sent either
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                self._keep(_decode(line), line.rstrip(b"\n") + b"\n")
        if content != b"".join(line for _, line in self._kept):
            self._rewrite()

    def _rewrite(self) -> None:
        """Put a file of what is kept in the place of the old one, which is whole."""
        assert self._path is not None and self._file is not None
        beside = self._path.with_name(f"{self._path.name}.new")
        beside.unlink(missing_ok=True)
        new = _opened(beside)
        try:
            with os.fdopen(os.dup(new), "wb") as file:
                file.writelines(line for _, line in self._kept)
            beside.replace(self._path)
        except OSError:
            os.close(new)
            raise
        os.close(self._file)
        self._file = new


def _key(interval: Interval) -> tuple[str, int]:
    return interval.stream, interval.number


def _opened(path: Path) -> int:
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o600)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SpoolError(f"{path} is no plain file. Name another --spool.")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SpoolError(
            f"{path}: another agent uses it. End that one, or name another --spool."
        ) from None
    except OSError as error:
        raise SpoolError(
            f"{path}: {error.strerror}. Name another file by --spool."
        ) from None
    return descriptor

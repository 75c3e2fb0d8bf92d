"""The archive: one thread that writes, and readers in threads of their own.

What a caller hands in is committed when its future is done. Where the disk is full or
hangs, futures fail and the history is not kept; nothing else waits for it.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import shutil
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from warpbook_monitors.archive.database import (
    FILE_NAME,
    ArchiveFile,
    connect,
    connect_to_read,
    prove_writing,
    size_bytes,
    transaction,
)
from warpbook_monitors.archive.errors import (
    ArchiveError,
    ArchiveMoved,
    ArchiveStopped,
    ArchiveTooNew,
    is_damage,
)
from warpbook_monitors.archive.file_identity import Identity
from warpbook_monitors.archive.lease import Lease
from warpbook_monitors.archive.limits import Keeping, Limits
from warpbook_monitors.frames import Device
from warpbook_monitors.history.history import Message

if TYPE_CHECKING:
    from warpbook_monitors.archive.historian import Historian

_log = logging.getLogger(__name__)
T = TypeVar("T")
Job = Callable[[sqlite3.Connection], T]

#: a kill loses no more of the history than this
FLUSH_S = 0.9
#: how often it is tried again where writing has failed, or another server writes
RETRY_S = 5.0
#: so often a file is looked for that others replace meanwhile
_TRIES = 3
#: messages, while the disk hangs: a minute at 10 Hz
_MOST_WAITING = 600
#: jobs that wait for a disk that hangs; more are refused at once
_MOST_JOBS = 1000


class Archive:
    """The past of one machine, for one person."""

    def __init__(self, folder: Path, limits: Limits | None = None) -> None:
        """Name the folder; nothing is opened before `start`."""
        self.path = folder / FILE_NAME
        self.limits = limits or Limits()
        self.keeping = Keeping("on", None, 0)
        self._historian: Historian | None = None
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Message, tuple[Device, ...]]] = deque(
            maxlen=_MOST_WAITING
        )
        self._lease = Lease(folder / "archive.lock")
        self._jobs: queue.Queue[Callable[[], None] | None] = queue.Queue(_MOST_JOBS)
        self._listeners: list[Callable[[Keeping], None]] = []
        self._connection: ArchiveFile | None = None
        self._retry_s = 0.0
        #: the file in which damage was met
        self._damaged: Identity | None = None
        self._closing = False
        self._thread = threading.Thread(
            target=self._run, name="warpbook-archive", daemon=True
        )

    @property
    def problem(self) -> str:
        """Why nothing is kept, in words; empty while it is."""
        return self.keeping.message if self.keeping.state == "stopped" else ""

    def listen(self, listener: Callable[[Keeping], None]) -> None:
        """Call `listener`, on the archive's thread, when `keeping` changes."""
        self._listeners.append(listener)

    def start(self) -> None:
        self._thread.start()

    def close(self, timeout_s: float) -> bool:
        """Write what was handed in and end; False where the disk did not take it."""
        self._closing = True
        with contextlib.suppress(queue.Full):
            self._jobs.put_nowait(None)
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def append(self, message: Message, devices: tuple[Device, ...]) -> None:
        """Take a message of the stream, to be written within a second; any thread."""
        with self._lock:
            self._waiting.append((message, devices))

    def write(self, job: Job[T]) -> Future[T]:
        """Do something in one transaction; what it did is on disk when it is done.

        The future raises ArchiveStopped where nothing is written at the moment.
        """
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(self._done(job))
            except Exception as error:  # noqa: BLE001 - it is the caller's
                future.set_exception(error)

        try:
            self._jobs.put_nowait(run)
        except queue.Full:
            future.set_exception(ArchiveStopped("The disk does not answer."))
        return future

    def wait_until_opened(self, timeout_s: float) -> bool:
        """Wait for the file to be opened; False where nothing of it is known then."""
        try:
            self.write(size_bytes).result(timeout_s)
        except (ArchiveError, FutureTimeoutError):
            # a disk that is full can be read
            return self.keeping.from_ms is not None
        return True

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give a connection that sees one state of the archive; off the event loop.

        Raises:
            ArchiveError: it can't be read.
        """
        with contextlib.closing(connect_to_read(self.path)) as connection:
            try:
                connection.execute("BEGIN")
                yield connection
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                raise ArchiveError(f"{self.path}: {error}.") from error

    def _done(self, job: Job[T]) -> T:
        """Do a job now, in the file that is in its place.

        Raises:
            ArchiveStopped: nothing is written at the moment.
        """
        for _ in range(_TRIES):
            connection = self._open()
            if connection is None:
                break
            try:
                with transaction(connection):
                    return job(connection)
            except ArchiveMoved:
                # nothing was done yet
                continue
            except (sqlite3.Error, UnicodeDecodeError, ArchiveTooNew) as error:
                self._fail(error)
                break
        raise ArchiveStopped(self.keeping.message)

    def _run(self) -> None:
        # numpy takes a tenth of a second to import, which is not the event loop's
        from warpbook_monitors.archive.historian import Historian

        self._historian = Historian(self.limits, self.path.parent)
        flush_s = time.monotonic()
        while True:
            flush_s = max(flush_s + FLUSH_S, time.monotonic())
            if not self._work_until(flush_s):
                break
            self._flush()
        self._flush()
        if self._connection is not None:
            self._connection.close()
        self._lease.release()

    def _work_until(self, until_s: float) -> bool:
        """Do what is handed in until a time; False when it is to end."""
        while not self._closing or not self._jobs.empty():
            try:
                job = self._jobs.get(timeout=max(until_s - time.monotonic(), 0.001))
            except queue.Empty:
                return True
            if job is None:
                continue
            job()
            if time.monotonic() >= until_s:
                return True
        return False

    def _open(self) -> ArchiveFile | None:
        """Give the connection; None while the disk is given time to get well."""
        if self._connection is not None and not self._connection.is_current():
            _log.warning("%s: the file was replaced or removed.", self.path)
            self._close_connection()
            self._retry_s = 0.0
        now_s = time.monotonic()
        if self._connection is not None or now_s < self._retry_s:
            return self._connection
        self._retry_s = now_s + RETRY_S
        try:
            self._check_free_space()
            self._connection = connect(self.path, self._damaged)
            self._damaged = None
            self._take_lease(self._connection)
        except Exception as error:  # noqa: BLE001 - this thread must go on
            self._fail(error)
        return self._connection

    def _take_lease(self, connection: sqlite3.Connection) -> None:
        if self._lease.take():
            if self._historian is not None:
                # not yet in a segment when a server was killed, or the disk full
                self._historian.recover(connection)
            # that it is on is told when something was written
            self._tell(self.keeping.state, self.keeping.message)
        else:
            self._tell(
                "other_server",
                f"Another server of yours (process {self._lease.holder()}) keeps the "
                "history of this machine. This server takes over when that one ends.",
            )

    def _flush(self) -> None:
        """Write what came since the last time, and make room."""
        with self._lock:
            waiting = list(self._waiting)
            self._waiting.clear()
        for _ in range(_TRIES):
            connection = self._open()
            if connection is None or self._historian is None:
                return
            try:
                self._write(connection, self._historian, waiting)
            except ArchiveMoved:
                # nothing was written yet
                continue
            except Exception as error:  # noqa: BLE001 - this thread must go on
                self._fail(error)
            return

    def _write(
        self,
        connection: sqlite3.Connection,
        historian: Historian,
        waiting: list[tuple[Message, tuple[Device, ...]]],
    ) -> None:
        if not self._lease.is_held:
            if time.monotonic() >= self._retry_s:
                self._retry_s = time.monotonic() + RETRY_S
                self._take_lease(connection)
            return
        self._check_free_space()
        was_on = self.keeping.state == "on"
        if not was_on and not waiting:
            prove_writing(connection)
        if historian.write(connection, waiting) or not was_on:
            self._tell("on", historian.why_not)

    def _check_free_space(self) -> None:
        """Stop before the disk is full.

        Raises:
            ArchiveStopped: it nearly is.
        """
        if words := self._full_disk():
            raise ArchiveStopped(words)

    def _full_disk(self) -> str:
        """Say that the disk is full; empty where it is not, or nobody knows."""
        folder = self.path.parent
        there = next(
            (parent for parent in (folder, *folder.parents) if parent.exists()), None
        )
        with contextlib.suppress(OSError):
            usage = shutil.disk_usage(there or folder)
            # what is no disk has no size
            if usage.total and usage.free < self.limits.least_free_bytes:
                # how much is left changes all the time, which would be news each time
                needed_mib = self.limits.least_free_bytes >> 20
                return f"The disk of {folder} is full ({needed_mib} MiB are needed)."
        return ""

    def _fail(self, error: Exception) -> None:
        """Stop writing for a while; the connection is made anew then."""
        met = None if self._connection is None else self._connection.identity
        self._close_connection()
        # a damaged file is mended at once, when it is opened next
        if is_damage(error) and met is not None:
            self._damaged, self._retry_s = met, 0.0
        else:
            self._retry_s = time.monotonic() + RETRY_S
        if isinstance(error, ArchiveTooNew):
            # the newer server is to keep the history
            self._lease.release()
        # SQLite says of a full disk now this, now that
        self._stop(self._full_disk() or str(error))

    def _close_connection(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    def _stop(self, reason: str) -> None:
        if self.keeping.state != "stopped" or self.keeping.message != reason:
            _log.error("The archive can't be written: %s", reason)
        self._tell("stopped", reason)

    def _tell(self, state: str, message: str) -> None:
        """Note how the archive stands, and tell who listens if that is news."""
        before = self.keeping
        from_ms, size = before.from_ms, before.size_bytes
        with contextlib.suppress(sqlite3.Error, ArchiveError), self._looking() as file:
            if file is not None:
                from_ms, size = _oldest_ms(file), size_bytes(file)
        self.keeping = replace(
            before, state=state, from_ms=from_ms, size_bytes=size, message=message
        )
        if (before.state, before.message) != (state, message):
            for listener in self._listeners:
                listener(self.keeping)

    @contextlib.contextmanager
    def _looking(self) -> Iterator[sqlite3.Connection | None]:
        """Give what reads the file; what can't be written is looked at once."""
        if self._connection is not None:
            yield self._connection
        elif self.keeping.from_ms is None:
            with self.reading() as connection:
                yield connection
        else:
            yield None


def _oldest_ms(connection: sqlite3.Connection) -> float | None:
    """When the oldest reading was made."""
    times_ms = [
        connection.execute(f"SELECT min(from_ms) FROM {table}").fetchone()[0]
        for table in ("segment", "recent")
    ]
    # SQLite keeps anything in a column, and the file may be damaged
    return min(
        (time_ms for time_ms in times_ms if isinstance(time_ms, float)), default=None
    )

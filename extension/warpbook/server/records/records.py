"""The archive, for the server's event loop: what a view is shown is on disk before."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TypeVar

from warpbook.protocol import Keeping, KeptRecord, RecordKind, RecordList
from warpbook.server.records.record_forms import ended_without_its_server
from warpbook.server.stream.broadcast import Broadcaster
from warpbook.server.stream.selection import encode
from warpbook.server.stream.stream_part import StreamPart
from warpbook_monitors.archive.archive import Archive
from warpbook_monitors.archive.database import check
from warpbook_monitors.archive.errors import ArchiveError, is_damage
from warpbook_monitors.archive.kept_timelines import (
    pack_timeline,
    put_timeline,
    timeline_of,
)
from warpbook_monitors.archive.open_records import Servers, end_open_records
from warpbook_monitors.archive.records import (
    Search,
    find,
    message_of,
    messages_of_cell,
    newest_messages,
    put,
)
from warpbook_profiler.model.timeline_answers import MAX_BODY_BYTES

_log = logging.getLogger(__name__)
T = TypeVar("T")

#: so long a view waits for the disk; then it is shown what is not kept yet
PATIENCE_S = 2.0
#: how often it is tried again to read what is kept from before
RETRY_S = 5.0
#: of what waits for a disk that hangs; what comes beyond it is not kept
_MAX_WAITING_BYTES = 32_000_000
#: reads at a time, each in a thread
_MOST_READS = 4
_CLOSE_S = 5.0
_OFF = Keeping("off", None, 0, "WarpbookApp.archive is off: nothing is kept on disk.")


class Records:
    """Keeps and finds what happened; does nothing where no archive is."""

    def __init__(self, archive: Archive | None = None) -> None:
        """Take the archive, which need not be started yet."""
        self.archive = archive
        self._servers = Servers(archive.path.parent) if archive else None
        self._reads = asyncio.Semaphore(_MOST_READS)
        self._waiting_bytes = 0
        #: what was not on disk in time, and may still come to it
        self._overdue: set[asyncio.Future[None]] = set()
        self._is_told = False
        #: once the archive's thread has opened the file, or could not
        self._is_tried = asyncio.Event()
        self._loaders: list[Callable[[], Awaitable[None]]] = []
        self._restoring: asyncio.Task[None] | None = None

    @property
    def is_on(self) -> bool:
        """Whether anything is kept, as far as the settings go."""
        return self.archive is not None

    def on_start(self, loader: Callable[[], Awaitable[None]]) -> None:
        """Call `loader` once what is kept from before can be read."""
        self._loaders.append(loader)

    def start(self) -> None:
        """Begin to write, and load what is kept from before; needs an event loop."""
        if self.archive is not None:
            self.archive.start()
            self._restoring = asyncio.create_task(self._restore(self.archive))

    async def close(self) -> None:
        """Write what was handed in, and end; a disk that hangs is not waited for."""
        if self._restoring is not None:
            self._restoring.cancel()
            await asyncio.wait([self._restoring])
        if self.archive is None or self._servers is None:
            return
        if not await asyncio.to_thread(self.archive.close, _CLOSE_S):
            _log.error("The archive's disk does not answer; what came last is lost.")
        self._servers.leave()

    async def keep(self, *kept: tuple[KeptRecord, bytes]) -> str:
        """Put records and their messages on disk, all or none of them.

        Returns:
            Why they are not there, in words, where that fails or the disk takes longer
            than `PATIENCE_S`; nothing where no archive is wanted.
        """
        if self.archive is None or self._servers is None or not kept:
            return ""
        servers, limits = self._servers, self.archive.limits

        def write(connection: sqlite3.Connection) -> None:
            # others must know that we live before they see what we left open
            servers.enter()
            for record, message in kept:
                put(connection, record, message, servers.name, limits)

        return await self._write(write, sum(len(message) for _, message in kept))

    async def keep_timeline(self, report_id: str, body: bytes) -> str:
        """Put all events of a report's run on disk; why they are not, in words."""
        if self.archive is None:
            return ""
        packed = await asyncio.to_thread(pack_timeline, body)
        limits = self.archive.limits
        if len(packed) > limits.timelines_bytes:
            return "All events are more than WarpbookApp.archive_megabytes lets in."

        def write(connection: sqlite3.Connection) -> None:
            put_timeline(connection, report_id, packed, time.time() * 1000, limits)

        return await self._write(write, len(packed))

    async def message(self, kind: RecordKind, record_id: str) -> bytes | None:
        """Give the message of a record as JSON.

        Raises:
            ArchiveError: the archive can't be read.
        """
        return await self._read(
            lambda connection: message_of(connection, kind, record_id), None
        )

    async def newest(self, kind: RecordKind, most: int) -> list[bytes]:
        """Give the messages of the newest that ended, the oldest first.

        Raises:
            ArchiveError: the archive can't be read.
        """
        return await self._read(
            lambda connection: newest_messages(connection, kind, most), []
        )

    async def of_cell(
        self, kind: RecordKind, cell_id: str, before_ms: float, most: int
    ) -> list[bytes]:
        """Give the messages of one cell from before a time, the newest first.

        Raises:
            ArchiveError: the archive can't be read.
        """
        return await self._read(
            partial(
                messages_of_cell,
                kind=kind,
                cell_id=cell_id,
                before_ms=before_ms,
                most=most,
            ),
            [],
        )

    async def timeline(self, report_id: str) -> bytes | None:
        """Give all events of a report's run, as the kernel packed them.

        Raises:
            ArchiveError: the archive can't be read.
        """
        return await self._read(
            lambda connection: timeline_of(connection, report_id, MAX_BODY_BYTES), None
        )

    async def find(self, search: Search) -> RecordList:
        """Give a list of what matches.

        Raises:
            ArchiveError: the archive can't be read.
        """
        nothing: tuple[list[KeptRecord], bool] = ([], False)
        records, has_more = await self._read(
            lambda connection: find(connection, search), nothing
        )
        return RecordList(tuple(records), has_more)

    async def _read(self, ask: Callable[[sqlite3.Connection], T], nothing: T) -> T:
        archive = self.archive
        if archive is None:
            return nothing

        def read() -> T:
            with archive.reading() as connection:
                return ask(connection)

        with contextlib.suppress(asyncio.TimeoutError):
            # a page may be faster than the thread that begins the file
            await asyncio.wait_for(self._is_tried.wait(), PATIENCE_S)
        async with self._reads:
            try:
                return await asyncio.to_thread(read)
            except ArchiveError as problem:
                cause = problem.__cause__
                if isinstance(cause, Exception) and is_damage(cause):
                    # who writes puts a damaged file aside, and may not have met it
                    archive.write(check)
                raise

    async def _write(
        self, write: Callable[[sqlite3.Connection], None], size_bytes: int
    ) -> str:
        """Have it done by the archive's thread; why it is not on disk, in words."""
        assert self.archive is not None
        if self._waiting_bytes + size_bytes > _MAX_WAITING_BYTES and self._overdue:
            return self._tell("The disk does not answer.")
        self._waiting_bytes += size_bytes
        written = asyncio.wrap_future(self.archive.write(write))
        written.add_done_callback(partial(self._forget, size_bytes))
        # of a disk that hangs, only the first view that waits is kept waiting
        patience_s = 0.0 if self._overdue else PATIENCE_S
        await asyncio.wait({written}, timeout=patience_s)
        if not written.done():
            self._overdue.add(written)
            return self._tell("The disk does not answer.")
        problem = None if written.cancelled() else written.exception()
        if problem is not None:
            return self._tell(str(problem))
        self._is_told = False
        return ""

    def _forget(self, size_bytes: int, written: asyncio.Future[None]) -> None:
        self._waiting_bytes -= size_bytes
        self._overdue.discard(written)
        # looked at, or asyncio complains
        if not written.cancelled():
            written.exception()

    def _tell(self, reason: str) -> str:
        """Say once that something was shown that is not kept; give the reason."""
        if not self._is_told:
            self._is_told = True
            _log.error(
                "Reports, receipts and alerts are shown and not kept: %s", reason
            )
        return reason or "The archive can't be written."

    async def _restore(self, archive: Archive) -> None:
        """End what servers before left open, and load; again until the disk lets us."""
        servers = self._servers
        assert servers is not None

        def end(connection: sqlite3.Connection) -> int:
            servers.enter()
            ended = end_open_records(
                connection, servers, ended_without_its_server, archive.limits
            )
            servers.forget_gone()
            return ended

        is_ended = is_loaded = False
        while not (is_ended and is_loaded):
            try:
                await asyncio.wrap_future(archive.write(end))
                is_ended = True
            except (ArchiveError, OSError):
                # the archive has told why; what can be read is shown meanwhile
                pass
            except Exception:  # noqa: BLE001 - a fault of ours must not hide the rest
                _log.exception("What servers before left open could not be ended.")
                is_ended = True
            self._is_tried.set()
            try:
                for loader in self._loaders:
                    await loader()
                is_loaded = True
            except ArchiveError:
                # tried again below
                is_loaded = False
            if not (is_ended and is_loaded):
                await asyncio.sleep(RETRY_S)


def keep_telling(
    broadcaster: Broadcaster,
    archive: Archive | None,
    on_loop: Callable[[Callable[[bytes], None], bytes], None],
) -> None:
    """Have each new page told how the archive stands, and all when that changes.

    Args:
        broadcaster: reaches the pages.
        archive: None where nothing is kept.
        on_loop: calls a function with its argument on the event loop, from any thread.
    """
    broadcaster.attach(_KeepingGreeting(archive))
    if archive is not None:
        send = broadcaster.viewers.send_everyone
        archive.listen(lambda keeping: on_loop(send, encode(keeping)))


class _KeepingGreeting(StreamPart):
    """Tells each new page how the archive stands."""

    def __init__(self, archive: Archive | None) -> None:
        self._archive = archive

    def greeting(self) -> Iterable[bytes]:
        return [encode(_OFF if self._archive is None else self._archive.keeping)]

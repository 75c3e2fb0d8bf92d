"""`GET api/v1/trace?path=`: the report of a trace file that the server can see."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.services.contents.filemanager import FileContentsManager
from jupyter_server.utils import ensure_async, to_os_path
from msgspec import Struct
from tornado import web

from warpbook.protocol import CellReport
from warpbook.server.records.rest import Handler
from warpbook.server.reports.trace_files import NoReport, TraceFiles
from warpbook.server.stream.selection import encode
from warpbook.server.web.parameters import FilePath

#: by fault; what is not here is a file that can't be processed
_STATUS = {"too_large": 413, "too_slow": 504, "busy": 503}
_UNPROCESSABLE = 422


class TracePath(Struct, frozen=True):
    """Which file, as Jupyter's contents API names it."""

    path: FilePath


class _OfFile(Handler):
    """A request about a file that the server can see."""

    query_type = TracePath

    _trace_files: TraceFiles

    async def _file(self, path: str) -> tuple[str, Path]:
        """Find a file by the rules of Jupyter's contents: root, hidden files, rights.

        Raises:
            HTTPError: 400, 403, 404, or 409 where files are on no disk of the server.
        """
        user = self.current_user
        allowed = self.authorizer.is_authorized(self, user, "read", "contents")
        if not await ensure_async(allowed):
            raise web.HTTPError(403, "You may not read files of this server.")
        try:
            return await found_file(self.contents_manager, path)
        except NoFiles as problem:
            raise web.HTTPError(409, str(problem)) from None


class NoFiles(Exception):
    """A server's files are on no disk of its own; the message says what to do."""


async def found_file(manager: Any, path: str) -> tuple[str, Path]:
    """Find a file by the rules of Jupyter's contents: its root, and hidden files.

    Args:
        manager: of the server's contents.
        path: as Jupyter names it.

    Returns:
        Its name for Jupyter, and where it is.

    Raises:
        HTTPError: 400, 403 or 404.
        NoFiles: there are none to find.
    """
    if not isinstance(manager, FileContentsManager):
        raise NoFiles(
            "This server's files are on no disk of its own: download the trace and "
            "use warpbook.analyze(path) in a notebook."
        )
    try:
        model = manager.get(path, content=False, type="file")
        name = (await ensure_async(model))["path"].strip("/")
    except (OSError, RuntimeError, ValueError):
        # a loop of links, or a name that no file can have
        raise web.HTTPError(404, "There is no such file.") from None
    return name, Path(to_os_path(name, manager.root_dir)).absolute()


class TraceFileHandler(_OfFile):
    """Answers with a cell report, or with a fault's name as `reason`.

    Cost: one process at a time, bounded in time and memory; nine requests at most.
    """

    _work: asyncio.Task[CellReport] | None = None

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Read the file, unless it was read before and is as it was."""
        path, file = await self._file(self.query(TracePath).path)
        self._work = asyncio.ensure_future(self._trace_files.report(path, file))
        try:
            report = await self._work
        except NoReport as refusal:
            status = _STATUS.get(refusal.fault, _UNPROCESSABLE)
            raise web.HTTPError(status, str(refusal), reason=refusal.fault) from None
        except asyncio.CancelledError:
            # nobody waits for the answer
            return
        self.finish_json(encode(report))

    def on_connection_close(self) -> None:
        """Stop reading for a page that has gone."""
        super().on_connection_close()
        if self._work is not None:
            self._work.cancel()


class TraceProgressHandler(_OfFile):
    """`GET api/v1/trace/progress?path=`: how far the report of that file is.

    Cost: nothing is read.
    """

    @web.authenticated
    @authorized
    async def get(self) -> None:
        path, _ = await self._file(self.query(TracePath).path)
        self.finish_json(encode(self._trace_files.progress(path)))

"""`GET api/v1/history/export`: a span of history as a file."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Iterator
from typing import Literal

from jupyter_server.auth.decorator import authorized
from msgspec import Struct
from tornado import web
from tornado.iostream import StreamClosedError

from warpbook.server.past.history_route import PastHandler
from warpbook.server.web.parameters import UnixMs
from warpbook_monitors.history.export import to_chrome_trace, to_csv, to_jsonl
from warpbook_monitors.recordings.recording import MAX_TIME_MS
from warpbook_monitors.spreadsheet import MARK

#: by `format`: the ending of the file's name, and its type
_FORMATS = {
    "csv": ("csv", "text/csv; charset=utf-8"),
    "jsonl": ("jsonl", "application/jsonl"),
    "chrome": ("trace.json", "application/json"),
}
_PIECE_BYTES = 1 << 18


class Export(Struct, frozen=True):
    """What is exported: without times, all that is held."""

    format: Literal["csv", "jsonl", "chrome"]
    from_ms: UnixMs = 0.0
    to_ms: UnixMs = MAX_TIME_MS


class ExportHandler(PastHandler):
    """Sends the file in pieces, made off the event loop.

    Cost: five minutes of the stream in memory at a time, as fast as they are taken.
    """

    query_type = Export
    may_be_opened = True

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Export what the history holds of a span; without one, all of it."""
        query = self.query(Export)
        await self._broadcaster.ready()
        pieces = self._pieces(query)
        ending, kind = _FORMATS[query.format]
        self.set_header("Content-Type", kind)
        self.set_header(
            "Content-Disposition", f'attachment; filename="warpbook-history.{ending}"'
        )
        # whoever asked may have gone
        with contextlib.suppress(StreamClosedError):
            while piece := await asyncio.to_thread(gather, pieces):
                self.write(piece)
                await self.flush()

    def _pieces(self, export: Export) -> Iterator[bytes]:
        # unpacked piece by piece: an hour of eight GPUs is more than 100 MB of text
        messages = self._past.messages(export.from_ms, export.to_ms)
        if export.format == "csv":
            rows = to_csv(self._broadcaster.devices, messages)
            return itertools.chain([MARK.encode()], rows)
        if export.format == "chrome":
            return to_chrome_trace(self._broadcaster.devices, messages)
        return to_jsonl(self._broadcaster.hello(), messages)


def gather(pieces: Iterator[bytes]) -> bytes:
    """Take pieces until there is enough to send."""
    gathered = bytearray()
    for piece in pieces:
        gathered += piece
        if len(gathered) >= _PIECE_BYTES:
            break
    return bytes(gathered)

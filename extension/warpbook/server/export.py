"""`GET api/v1/history/export`: a span of history as a file."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Iterator

from jupyter_server.auth.decorator import authorized
from tornado import web
from tornado.iostream import StreamClosedError

from warpbook.server.rest import Handler
from warpbook_monitors.export import to_chrome_trace, to_csv, to_jsonl

#: by `format`: the ending of the file's name, and its type
_FORMATS = {
    "csv": ("csv", "text/csv; charset=utf-8"),
    "jsonl": ("jsonl", "application/jsonl"),
    "chrome": ("trace.json", "application/json"),
}
_PIECE_BYTES = 1 << 18


class ExportHandler(Handler):
    """Sends the file in pieces, made off the event loop."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Export what the history holds of a span; without one, all of it."""
        asked = self.get_query_argument("format")
        if asked not in _FORMATS:
            raise web.HTTPError(400, f"format is one of {', '.join(_FORMATS)}.")
        await self._broadcaster.ready()
        from_ms = self.time_argument("from_ms", -math.inf)
        to_ms = self.time_argument("to_ms", math.inf)
        pieces = self._pieces(asked, from_ms, to_ms)
        ending, kind = _FORMATS[asked]
        self.set_header("Content-Type", kind)
        self.set_header(
            "Content-Disposition", f'attachment; filename="warpbook-history.{ending}"'
        )
        # whoever asked may have gone
        with contextlib.suppress(StreamClosedError):
            while piece := await asyncio.to_thread(gather, pieces):
                self.write(piece)
                await self.flush()

    def _pieces(self, asked: str, from_ms: float, to_ms: float) -> Iterator[bytes]:
        # unpacked piece by piece: an hour of eight GPUs is more than 100 MB of text
        messages = self._broadcaster.history.entries(from_ms, to_ms)
        if asked == "csv":
            return to_csv(self._broadcaster.devices, messages)
        if asked == "chrome":
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

"""`api/v1/records` and `api/v1/cells`: what happened, and cells that pages saw."""

from __future__ import annotations

import math
from typing import Annotated, get_args

import msgspec
from jupyter_server.auth.decorator import authorized
from msgspec import Meta
from tornado import web

from warpbook.protocol import CellBand, RecordKind
from warpbook.server.broadcast import Broadcaster
from warpbook.server.record_forms import band_record
from warpbook.server.records import Records
from warpbook.server.reports import Reports
from warpbook.server.rest import Handler
from warpbook.server.selection import encode
from warpbook_monitors.archive.errors import ArchiveError
from warpbook_monitors.archive.records import MAX_TEXT, MOST_FOUND, Search
from warpbook_monitors.recording import MAX_TIME_MS

_KINDS: tuple[RecordKind, ...] = get_args(RecordKind)
#: how a kind looks in a path
KIND = f"({'|'.join(_KINDS)})"
MAX_BANDS = 200
MAX_BODY_BYTES = 1_000_000
_MAX_NOTEBOOK = 1000
_DEFAULT_LIMIT = 50

_decode_bands = msgspec.json.Decoder(
    Annotated[tuple[CellBand, ...], Meta(max_length=MAX_BANDS)]
).decode


class _Handler(Handler):
    def initialize(  # type: ignore[override]
        self, broadcaster: Broadcaster, reports: Reports, records: Records
    ) -> None:
        """Take what is kept."""
        super().initialize(broadcaster, reports)
        self._records = records


class RecordsHandler(_Handler):
    """`?text=&notebook=&kind=&verdict=&from_ms=&to_ms=&before_ms=&limit=`.

    All may be left out, and `kind` may come several times. It reads at most the list of
    all records (100,000), in a thread, and gives at most 200.
    """

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """List what matches, the newest first."""
        try:
            found = await self._records.find(self._search())
        except ArchiveError as problem:
            raise web.HTTPError(503, str(problem)) from None
        self.finish_json(encode(found))

    def _search(self) -> Search:
        kinds = {self._kind(kind) for kind in self.get_query_arguments("kind")}
        return Search(
            text=self._text("text", MAX_TEXT) or "",
            notebook=self._text("notebook", _MAX_NOTEBOOK),
            kinds=tuple(sorted(kinds)),
            verdict=self._text("verdict", MAX_TEXT),
            from_ms=self._time("from_ms"),
            to_ms=self._time("to_ms"),
            before_ms=self._time("before_ms"),
            limit=self._limit(),
        )

    def _kind(self, text: str) -> RecordKind:
        for kind in _KINDS:
            if kind == text:
                return kind
        raise web.HTTPError(400, f"kind is one of {', '.join(_KINDS)}.")

    def _text(self, name: str, most: int) -> str | None:
        text = self.get_query_argument(name, "")
        if len(text) > most:
            raise web.HTTPError(400, f"{name} may have {most} characters.")
        return text or None

    def _time(self, name: str) -> float | None:
        if not self.get_query_argument(name, ""):
            return None
        time_ms = self.time_argument(name)
        if not 0 <= time_ms <= MAX_TIME_MS:
            raise web.HTTPError(400, f"{name} must be a Unix time in ms.")
        return time_ms

    def _limit(self) -> int:
        text = self.get_query_argument("limit", str(_DEFAULT_LIMIT))
        limit = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
        if not 1 <= limit <= MOST_FOUND:
            raise web.HTTPError(400, f"limit is a number from 1 to {MOST_FOUND}.")
        return limit


class RecordHandler(_Handler):
    """`GET api/v1/records/<kind>/<id>`: one row of an index is read."""

    @web.authenticated
    @authorized
    async def get(self, kind: RecordKind, record_id: str) -> None:
        """Give the message as views were sent it; of a cell, as a page handed it in."""
        try:
            message = await self._records.message(kind, record_id)
        except ArchiveError as problem:
            raise web.HTTPError(503, str(problem)) from None
        if message is None:
            raise web.HTTPError(404, "No such record is kept.")
        self.finish_json(message)


class CellsHandler(_Handler):
    """`POST api/v1/cells`: at most 200 cells, of at most 1,000,000 bytes."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Keep cells that a page saw; answer once they are on disk."""
        if not self._records.is_on:
            raise web.HTTPError(
                409, "This server keeps nothing on disk: WarpbookApp.archive is off."
            )
        body = self.request.body
        if len(body) > MAX_BODY_BYTES:
            raise web.HTTPError(413, f"Cells may have {MAX_BODY_BYTES} bytes.")
        try:
            bands = _decode_bands(body)
            _check(bands)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise web.HTTPError(400, f"No list of cells: {error}") from None
        kept = [(band_record(band), encode(band)) for band in bands]
        if kept and not await self._records.keep(*kept):
            raise web.HTTPError(503, "The cells are not kept: the disk takes nothing.")
        self.set_status(204)
        self.finish()


def _check(bands: tuple[CellBand, ...]) -> None:
    """Refuse times that can't be."""
    for band in bands:
        ended_ms = band.started_ms if band.ended_ms is None else band.ended_ms
        if not math.isfinite(band.started_ms) or not (
            0 <= band.started_ms <= ended_ms <= MAX_TIME_MS
        ):
            raise ValueError(f"The times of {band.id} can't be.")
        if (band.ended_ms is None) != (band.status == "running"):
            raise ValueError(f"{band.id} runs and has an end, or the other way round.")

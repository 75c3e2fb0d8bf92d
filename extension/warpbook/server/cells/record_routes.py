"""`api/v1/records` and `api/v1/cells`: what happened, and cells that pages saw."""

from __future__ import annotations

import math
from typing import Annotated, get_args

from jupyter_server.auth.decorator import authorized
from msgspec import Meta, Struct
from msgspec.json import Decoder
from tornado import web

from warpbook.protocol import PROTOCOL_VERSION, CellBand, CellRun, RecordKind
from warpbook.server.cells.receipts import Receipts, check_times
from warpbook.server.records.record_forms import band_record
from warpbook.server.records.records import Records
from warpbook.server.records.reports import for_views
from warpbook.server.records.rest import Handler
from warpbook.server.stream.selection import encode
from warpbook.server.web.parameters import Name, Span, UnixMs, read_json
from warpbook_monitors.archive.errors import ArchiveError
from warpbook_monitors.archive.records import MAX_TEXT, MOST_FOUND, Search
from warpbook_monitors.recordings.recording import MAX_TIME_MS

_KINDS: tuple[RecordKind, ...] = get_args(RecordKind)
#: how a kind looks in a path
KIND = f"({'|'.join(_KINDS)})"
MAX_BANDS = 200
MAX_BODY_BYTES = 1_000_000

_BANDS: Decoder[tuple[CellBand, ...]] = Decoder(
    Annotated[tuple[CellBand, ...], Meta(max_length=MAX_BANDS)]
)


class _Handler(Handler):
    _records: Records
    _receipts: Receipts


class RecordsQuery(Struct, frozen=True):
    """What records are searched for; without anything, all."""

    text: Annotated[str, Meta(max_length=MAX_TEXT)] = ""
    notebook: Annotated[str, Meta(max_length=1000)] = ""
    #: with commas between them
    kind: Annotated[str, Meta(max_length=100)] = ""
    verdict: Annotated[str, Meta(max_length=MAX_TEXT)] = ""
    from_ms: UnixMs | None = None
    to_ms: UnixMs | None = None
    before_ms: UnixMs | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_FOUND)] = 50

    def __post_init__(self) -> None:
        """Refuse a kind that there is not.

        Raises:
            ValueError: it is one.
        """
        if len(self.kinds) < len(set(filter(None, self.kind.split(",")))):
            raise ValueError(f"kind is one of {', '.join(_KINDS)}")

    @property
    def kinds(self) -> tuple[RecordKind, ...]:
        """The kinds that are wanted; empty is all."""
        wanted = self.kind.split(",")
        return tuple(kind for kind in _KINDS if kind in wanted)


class RecordsHandler(_Handler):
    """`?text=&notebook=&kind=&verdict=&from_ms=&to_ms=&before_ms=&limit=`.

    All may be left out, and `kind` may be several, with commas between them.

    Cost: at most the list of all records (100,000) is read, in a thread, and at most
    200 are given.
    """

    query_type = RecordsQuery

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """List what matches, the newest first."""
        try:
            records = await self._records.find(self._search())
        except ArchiveError as problem:
            raise web.HTTPError(503, str(problem)) from None
        self.finish_json(encode(records))

    def _search(self) -> Search:
        query = self.query(RecordsQuery)
        return Search(
            text=query.text,
            notebook=query.notebook or None,
            kinds=query.kinds,
            verdict=query.verdict or None,
            from_ms=query.from_ms,
            to_ms=query.to_ms,
            before_ms=query.before_ms,
            limit=query.limit,
        )


class RecordHandler(_Handler):
    """`GET api/v1/records/<kind>/<id>`.

    Cost: one row is read.
    """

    @web.authenticated
    @authorized
    async def get(self, kind: RecordKind, record_id: str) -> None:
        """Give the message as views were sent it; of a cell, as a page handed it in.

        A report and a receipt come as views are sent them today.
        """
        try:
            message = await self._message(kind, record_id)
        except ArchiveError as problem:
            raise web.HTTPError(503, str(problem)) from None
        if message is None:
            raise web.HTTPError(404, "No such record is kept.")
        self.finish_json(message)

    async def _message(self, kind: RecordKind, record_id: str) -> bytes | None:
        if kind == "report":
            report = await self._reports.find(record_id)
            if report is not None:
                return for_views(report)
        elif kind == "receipt":
            receipt = await self._receipts.find_kept(record_id)
            if receipt is not None:
                return encode(receipt)
        return await self._records.message(kind, record_id)


class CellsHandler(_Handler):
    """`POST api/v1/cells`.

    Cost: at most 200 cells, of at most 1,000,000 bytes, in one transaction.
    """

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
            bands = read_json(body, _BANDS)
            _check(bands)
        except ValueError as error:
            raise web.HTTPError(400, f"No list of cells: {error}") from None
        kept = [(band_record(band), encode(band)) for band in bands]
        if unkept := await self._records.keep(*kept):
            raise web.HTTPError(507, f"The cells are not kept: {unkept}")
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


_MAX_TEXT = 200


class ReceiptQuery(Span, frozen=True, kw_only=True):
    """The cell that a view knows; it may know no more than when it ran."""

    kernel_id: Name = ""
    cell_id: Name | None = None
    title: str = ""


class ReceiptHandler(Handler):
    """`?from_ms=&to_ms=&kernel_id=&cell_id=&title=`; the first two are needed.

    Cost: what is held of the span, in rows that fit a bound, on a thread.
    """

    query_type = ReceiptQuery

    _receipts: Receipts

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Give the receipt that the kernel asked for, or else write one."""
        query = self.query(ReceiptQuery)
        run = CellRun(
            id=f"span-{query.from_ms:.0f}-{query.to_ms:.0f}",
            protocol=PROTOCOL_VERSION,
            kernel_id=query.kernel_id,
            notebook=None,
            cell_id=query.cell_id,
            execution_count=None,
            title=query.title[:_MAX_TEXT],
            started_ms=query.from_ms,
            ended_ms=query.to_ms,
            status="ok",
        )
        try:
            check_times(run)
        except ValueError as error:
            raise web.HTTPError(400, str(error)) from error
        receipt = await self._receipts.find(run) or await self._receipts.make(run)
        self.finish_json(encode(receipt))

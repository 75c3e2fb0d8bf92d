"""What a request may ask for: each route declares it, and it is checked here only.

A route that takes something names a Struct as its `query_type`. Its bounds are
msgspec's own, so a number that is out of them, not a number at all, or given twice
never reaches the route.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.json import Decoder
from tornado import web

from warpbook_monitors.budget import NotJson, decode_json
from warpbook_monitors.plain_text import bounded
from warpbook_monitors.recordings.recording import MAX_TIME_MS

#: Unix time in ms
UnixMs = Annotated[float, Meta(ge=0, le=MAX_TIME_MS)]
#: of a span; a shorter one is a fault of arithmetic, and makes others
_LEAST_MS = 1e-4
#: ns from the begin of a run: as exact as a browser's numbers
RunNs = Annotated[int, Meta(ge=-(2**53), le=2**53)]
#: to search for: a name in quotes
Text = Annotated[str, Meta(max_length=1200)]
#: as Jupyter's contents API names a file
FilePath = Annotated[str, Meta(min_length=1, max_length=4000)]
Name = Annotated[str, Meta(max_length=200)]
#: metric names with commas between them
NameList = Annotated[str, Meta(max_length=20_000)]
Theme = Literal["light", "dark"]
ReportId = Annotated[str, Meta(pattern="^[A-Za-z0-9-]{1,64}$")]

_T = TypeVar("_T")
_Q = TypeVar("_Q", bound=Struct)


class NoQuery(Struct, frozen=True):
    """Of a route that takes no parameter."""


class Figure(Struct, frozen=True):
    """How a figure looks."""

    theme: Theme = "light"


class Span(Struct, frozen=True):
    """A span of time."""

    from_ms: UnixMs
    to_ms: UnixMs

    def __post_init__(self) -> None:
        """Refuse a span that ends before it begins, or of which nothing can be told.

        Raises:
            ValueError: it is one.
        """
        if not self.from_ms < self.to_ms:
            raise ValueError("from_ms must be a time before to_ms")
        if self.to_ms - self.from_ms < _LEAST_MS:
            raise ValueError("from_ms and to_ms must be further apart")


class BadBody(ValueError):
    """A body or message that can't be used; the message says why."""


class Parameters(web.RequestHandler):
    """A handler whose query is checked before anything else is done.

    Cost: the query is at most what the server's header limit lets in.
    """

    #: what the query may hold
    query_type: ClassVar[type[Struct]] = NoQuery

    def check_query(self) -> None:
        """Read the query; call it in `prepare`.

        Raises:
            HTTPError: 400, with what is wrong.
        """
        self._query = read_query(self.request.query_arguments, self.query_type)

    def query(self, kind: type[_Q]) -> _Q:
        assert isinstance(self._query, kind)
        return self._query


def read_query(arguments: dict[str, list[bytes]], kind: type[Struct]) -> Struct:
    """Read a query; what is not declared is passed over.

    Raises:
        HTTPError: 400, with what is wrong.
    """
    texts = {}
    for name in kind.__struct_encode_fields__:
        given = arguments.get(name, [])
        if len(given) > 1:
            raise web.HTTPError(400, f"{name} is given more than once.")
        if given:
            try:
                texts[name] = given[0].decode()
            except UnicodeDecodeError:
                raise web.HTTPError(400, f"{name} is not UTF-8.") from None
    try:
        return msgspec.convert(texts, kind, strict=False)
    except msgspec.ValidationError as error:
        raise web.HTTPError(400, f"The query can't be used: {error}.") from None


def read_json(body: bytes | str, decoder: Decoder[_T]) -> _T:
    """Read a body or a message of the stream.

    Raises:
        BadBody: it is none; deeply nested ones are none either.
    """
    try:
        return decode_json(body, decoder)
    except NotJson as error:
        # it may quote a name of the sender's choice
        raise BadBody(bounded(str(error), 300)) from None

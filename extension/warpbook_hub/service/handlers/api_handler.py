"""The JSON API: one handler, which does what the table of routes says."""

from __future__ import annotations

import contextlib
from typing import IO, Any

from msgspec import Struct
from sqlalchemy import Connection
from tornado.iostream import StreamClosedError

from warpbook_hub.errors import Forbidden, HubError, NotOpen
from warpbook_hub.service.access import Identity, admit
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.handler import ServiceHandler
from warpbook_hub.service.login import KnowsWhoAsks, refuse_foreign
from warpbook_hub.service.parameters import read_body, read_query
from warpbook_hub.service.route import ApiRoute

_CHUNK_BYTES = 1 << 18
#: a body that says nothing
_MOST_TICKET_BYTES = 64


class NotAllowed(HubError):
    """A path that is there, asked in a way that it is not."""

    http_status = 405


class Download(Struct, frozen=True):
    """An answer that is a file; it is closed once it was sent."""

    name: str
    content_type: str
    file: IO[bytes]


class ApiHandler(KnowsWhoAsks, ServiceHandler):
    """All routes of one path."""

    def initialize(self, routes: dict[str, ApiRoute]) -> None:  # type: ignore[override]
        super().initialize()
        self._routes = routes

    async def let_in(self) -> None:
        """Find the route and who asks, before a body is read."""
        route = self._routes.get(str(self.request.method))
        if route is None:
            raise NotAllowed(f"This is asked by {' or '.join(self._routes)}.")
        self._route = route
        self.bound_body(route.most_body_bytes if route.method == "POST" else 0)
        who = await self.who_asks()
        if who is None and "Authorization" in self.request.headers:
            raise Forbidden(
                "The hub does not know this token any more, and nothing was done. Stop "
                "and start your server on the hub's home, which gives it another; on "
                "a machine of your own make one on the hub's page Token."
            )
        if who is None:
            raise Forbidden(
                "Log in to the hub, and ask from the course's own pages; or send "
                "`Authorization: token <token>` with a token for this service."
            )
        if not self.has_token:
            refuse_foreign(self.request, may_be_opened=route.method == "GET")
        self.count(who.username)
        self._who: Identity = who

    async def get(self, **ids: str) -> None:
        self.refuse()
        given = read_query(self.request.query_arguments, self._route.given)
        await self._answer(given, ids)

    async def post(self, **ids: str) -> None:
        self.refuse()
        route, arrivals = self._route, self.service.arrivals
        request = (self._who.username, self.request.path, self.body)
        if route.keeps_arrival:
            self.arrived_ms = arrivals.first_ms(*request, self.arrived_ms)
        try:
            await self._answer(read_body(self.body, route.given), ids)
        except Exception as problem:
            if route.keeps_arrival and getattr(problem, "http_status", 500) >= 500:
                arrivals.note(*request, self.arrived_ms)
            raise

    async def _answer(self, given: Any, ids: dict[str, str]) -> None:
        route, service, who = self._route, self.service, self._who

        def admitted(connection: Connection) -> Admitted:
            return admit(connection, self.arrived_ms, who, route.level, ids)

        if route.before is not None or route.is_heavy:
            # nothing is done for who may not ask for it
            await service.read(admitted)
        is_change = route.method == "POST" and not route.only_reads
        do = service.write if is_change else service.read

        def answer(connection: Connection) -> Any:
            return route.function(admitted(connection), given)

        heavy = service.one_at_a_time if route.is_heavy else contextlib.nullcontext
        with heavy():
            if route.before is not None:
                given = await route.before(service, given)
            if is_change:
                await service.heartbeat.note_arrival(service)
            try:
                value = await do(answer)
            except NotOpen:
                # an outage that is not over may have moved its date
                await service.heartbeat.settle()
                value = await do(answer)
            if is_change and route.level in ("staff", "instructor", "operator"):
                service.live.note_course_change()
            if route.after is not None:
                value = await route.after(service, value)
        if isinstance(value, Download):
            await self._send(value)
        else:
            self.finish_json(value, route.status)

    async def _send(self, download: Download) -> None:
        with download.file as file:
            size = file.seek(0, 2)
            file.seek(0)
            self.set_header("Content-Type", download.content_type)
            self.set_header(
                "Content-Disposition", f'attachment; filename="{download.name}"'
            )
            self.set_header("Content-Length", str(size))
            # whoever asked may have gone
            with contextlib.suppress(StreamClosedError):
                while chunk := await self.service.apart(
                    lambda: file.read(_CHUNK_BYTES)
                ):
                    self.write(chunk)
                    await self.flush()
                await self.finish()


class TicketHandler(KnowsWhoAsks, ServiceHandler):
    """`POST api/v1/ticket`: a ticket that opens one WebSocket, once."""

    async def let_in(self) -> None:
        """Find who asks."""
        self.bound_body(_MOST_TICKET_BYTES)
        who = await self.who_asks()
        if who is None:
            raise Forbidden("Log in to the hub first, or send a token.")
        if not self.has_token:
            refuse_foreign(self.request, may_be_opened=False)
        self.count(who.username)
        self._who = who

    async def post(self) -> None:
        self.refuse()
        self.finish_json({"ticket": self.service.tickets.give(self._who)}, 201)

"""`live`: a WebSocket on which open pages are told of changes.

A ticket or a token opens it; a cookie never does.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Connection
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from warpbook.hub_protocol import Id
from warpbook_hub.course.courses import members
from warpbook_hub.errors import Forbidden, TooManyRequests
from warpbook_hub.service.access import admit
from warpbook_hub.service.handler import PlainHandler
from warpbook_hub.service.live_feed import Watcher
from warpbook_hub.service.login import KnowsWhoAsks, is_of_host
from warpbook_hub.service.parameters import read_query
from warpbook_hub.service.service import Service

#: who does not read is cut off, and connects again
_MOST_WAITING_BYTES = 1 << 20
#: of all people
_MOST_OPEN = 2_000
_TO_REFUSE = 4_003


class LiveQuery(Struct, frozen=True):
    """What a page shows."""

    course: Id
    ticket: Id = ""
    #: whose state its rows show
    lab: Id = ""


class LiveSocket(PlainHandler, WebSocketHandler, KnowsWhoAsks):
    """One open page."""

    open_sockets = 0

    @property
    def service(self) -> Service:
        service: Service = self.settings["service"]
        return service

    async def prepare(self) -> None:
        """Find who asks, and what they may be told."""
        query = read_query(self.request.query_arguments, LiveQuery)
        if not is_of_host(self.request):
            raise Forbidden("This page is of another site.")
        identity = self.service.tickets.take(query.ticket) if query.ticket else None
        identity = identity or await self.who_has_token()
        if identity is None:
            raise Forbidden("Ask for a ticket first: POST api/v1/ticket.")
        if LiveSocket.open_sockets >= _MOST_OPEN:
            raise Forbidden("Too many pages are open. Close some of yours.")
        self.service.sockets.check(identity.username)
        self._visitor, self._ids = identity, {"course": query.course}
        if query.lab:
            self._ids["lab"] = query.lab
        self._watcher = await self.service.read(self._admitted)

    def open(self, *_: str, **__: str) -> None:
        """Tell it of changes from now on."""
        self._waiting: list[bytes] = []
        self._is_sending = self._is_counted = False
        try:
            # others of theirs may have been opened since it was let in
            self.service.sockets.begin(self._visitor.username)
        except TooManyRequests as problem:
            self.close(_TO_REFUSE, str(problem))
            return
        self._is_counted = True
        LiveSocket.open_sockets += 1
        self.service.live.add(self, self._watcher)

    def on_message(self, message: str | bytes) -> None:
        self.close(_TO_REFUSE, "This socket takes no messages.")

    def on_close(self) -> None:
        if self._is_counted:
            LiveSocket.open_sockets -= 1
            self.service.sockets.end(self._visitor.username)
        self.service.live.remove(self)

    def check_origin(self, origin: str) -> bool:
        """Take pages of this host only; it was looked at before."""
        return is_of_host(self.request)

    def _send(self, message: dict[str, Any]) -> None:
        self._waiting.append(msgspec.json.encode(message))
        if sum(map(len, self._waiting)) > _MOST_WAITING_BYTES:
            self._waiting.clear()
            self.close(1013, "The page does not keep up.")
        elif not self._is_sending:
            self._is_sending = True
            self._sending = asyncio.ensure_future(self._send_all())

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                await self.write_message(self._waiting.pop(0).decode())
        except WebSocketClosedError:
            self._waiting.clear()
        finally:
            self._is_sending = False

    def _end(self) -> None:
        self.close(_TO_REFUSE, "What you may see has changed.")

    def _admitted(self, connection: Connection) -> Watcher:
        now_ms = self.service.clock.now_ms()
        admitted = admit(connection, now_ms, self._visitor, "member", self._ids)
        section = ""
        if admitted.is_staff and not admitted.is_instructor:
            own = [
                member.section
                for member in members(connection, admitted.course.id)
                if member.person == admitted.viewer.person
            ]
            section = own[0] if own else ""
        return Watcher(
            admitted.course.id,
            admitted.viewer.person,
            admitted.is_staff,
            section,
            admitted.lab.id if admitted.given_lab is not None else "",
            self._send,
            self._admitted,
            self._end,
        )

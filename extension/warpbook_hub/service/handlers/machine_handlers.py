"""Endpoints of graders and keeper: by tokens of their own, without the log-in."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from warpbook.hub_protocol import (
    GRADER_MESSAGE_BYTES,
    KEEPER_MESSAGE_BYTES,
    OwnLease,
    Report,
    ServerRequest,
)
from warpbook_hub.course.courses import viewer
from warpbook_hub.errors import Forbidden, NotFound
from warpbook_hub.leases.grants import check_keeper, report
from warpbook_hub.leases.requests import own_lease, take
from warpbook_hub.queue.grader_api import answer
from warpbook_hub.queue.graders import authenticate
from warpbook_hub.service.handler import ServiceHandler
from warpbook_hub.service.parameters import read_body


class GraderHandler(ServiceHandler):
    """`POST grader/v1/<what>`."""

    async def let_in(self) -> None:
        """Read a body only of who is a grader."""
        self.bound_body(GRADER_MESSAGE_BYTES)
        _, _, token = self.request.headers.get("Authorization", "").partition(" ")
        grader = await self.service.read(lambda c: authenticate(c, token.strip()))
        self.count(f"grader {grader}")

    async def post(self, what: str) -> None:
        self.refuse()
        service = self.service
        authorization = self.request.headers.get("Authorization", "")
        body = self.body
        response = await service.write(
            lambda connection: answer(
                connection, self.arrived_ms, what, authorization, body
            ),
            is_machine=True,
        )
        self.set_status(response.http_status)
        self.set_header("Content-Type", "application/json")
        self.finish(response.body)


class KeeperHandler(ServiceHandler):
    """`POST keeper/v1/<what>`."""

    async def let_in(self) -> None:
        """Read a body only of who is the keeper."""
        self.bound_body(KEEPER_MESSAGE_BYTES)
        _, _, token = self.request.headers.get("Authorization", "").partition(" ")
        await self.service.read(lambda c: check_keeper(c, token.strip()))
        self.count("the keeper")

    async def post(self, what: str) -> None:
        self.refuse()
        if what not in _REQUESTS:
            raise NotFound("There is nothing of this name.")
        kind, answer = _REQUESTS[what]
        message = read_body(self.body, kind)
        answered = await self.service.write(
            lambda connection: answer(connection, self.arrived_ms, message),
            tells_pages=False,
            is_machine=True,
        )
        self.finish_json(answered)


def _server(connection: Connection, now_ms: int, message: ServerRequest) -> OwnLease:
    """Ask for a GPU of a server that starts, in its owner's name."""
    who = viewer(connection, message.course, message.username)
    if who.is_hidden:
        raise Forbidden("You are off the roster.")
    lease = own_lease(connection, now_ms, who.person)
    if lease.state != "none":
        return lease
    return take(connection, now_ms, message.course, who.person, message.minutes)


_REQUESTS: dict[str, tuple[Any, Any]] = {
    "report": (Report, report),
    "server": (ServerRequest, _server),
}

"""The graders' endpoints: a token of their own, and nobody else is asked."""

from __future__ import annotations

from warpbook.hub_protocol import GRADER_MESSAGE_BYTES
from warpbook_hub.queue.grader_api import answer
from warpbook_hub.queue.graders import authenticate
from warpbook_hub.service.handler import ServiceHandler


class GraderHandler(ServiceHandler):
    """`POST grader/v1/<what>`."""

    async def let_in(self) -> None:
        """Read a body only of who is a grader."""
        self.bound_body(GRADER_MESSAGE_BYTES)
        _, _, token = self.request.headers.get("Authorization", "").partition(" ")
        grader = await self.service.read(lambda c: authenticate(c, token.strip()))
        self.count(f"grader {grader}")

    async def post(self, what: str) -> None:
        """Answer a grader."""
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

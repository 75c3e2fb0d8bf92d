"""The agents' endpoint: a node's token, and the hub's log-in is not asked."""

from __future__ import annotations

import msgspec

from warpbook.hub.errors import BadRequest
from warpbook.hub.nodes.registry import authenticate
from warpbook.hub.nodes.taking import take
from warpbook.hub.service.handler import ServiceHandler
from warpbook_monitors.holders.node_protocol import MOST_MESSAGE_BYTES, Intervals
from warpbook_monitors.plain_text import bounded

_decode = msgspec.json.Decoder(Intervals).decode


class NodeHandler(ServiceHandler):
    """`POST node/v1/intervals`."""

    async def let_in(self) -> None:
        """Read a body only of who is a node, one at a time."""
        self.bound_body(MOST_MESSAGE_BYTES)
        _, _, token = self.request.headers.get("Authorization", "").partition(" ")
        self._node = await self.service.read(lambda c: authenticate(c, token.strip()))
        self.count(f"node {self._node}")

    async def post(self) -> None:
        """Count what it tells."""
        self.refuse()
        try:
            message = _decode(self.body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            words = bounded(str(problem), 300)
            raise BadRequest(f"The message can't be read: {words}") from None
        now_ms, node = self.service.clock.now_ms(), self._node
        taken = await self.service.write(
            lambda connection: take(connection, now_ms, node, message),
            tells_pages=False,
        )
        self.finish_json(taken)

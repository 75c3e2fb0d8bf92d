"""What a part of the server may do with the stream."""

from __future__ import annotations

from collections.abc import Iterable

from warpbook.protocol import StateNow
from warpbook_monitors.sampling.sampler import Message


class StreamPart:
    """Attached to the broadcaster; a part overrides what it has to do."""

    def follow(self, message: Message) -> None:
        """See a message of the sampler, after it was sent."""

    def greeting(self) -> Iterable[bytes]:
        """Give what a new viewer is sent after the hello, encoded."""
        return ()

    async def complete(self, state: StateNow) -> StateNow:
        """Add what is known here to the state that somebody asked for."""
        return state

"""Tickets for WebSockets: each opens one, once, within half a minute.

A page asks for one by a POST that is checked against other sites, so a socket needs no
cookie. A hub may forbid cookies there.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from warpbook_hub.service.access import Identity

_VALID_S = 30.0
#: of all people together; the oldest goes first
_MOST = 5_000
#: of one person, whose oldest goes for a newer one and voids nobody else's
_MOST_OF_ONE = 50


class Tickets:
    """Tickets that were given and not used."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        """Begin without any."""
        self._now_s = now_s
        self._given: dict[str, tuple[float, Identity]] = {}

    def give(self, identity: Identity) -> str:
        """Draw a ticket for somebody."""
        now_s = self._now_s()
        while self._given:
            oldest = next(iter(self._given))
            is_over = now_s - self._given[oldest][0] > _VALID_S
            if not is_over and len(self._given) < _MOST:
                break
            del self._given[oldest]
        own = [t for t, (_, whose) in self._given.items() if _same(whose, identity)]
        for ticket in own[: max(0, len(own) - _MOST_OF_ONE + 1)]:
            del self._given[ticket]
        ticket = secrets.token_urlsafe(24)
        self._given[ticket] = now_s, identity
        return ticket

    def take(self, ticket: str) -> Identity | None:
        """Give whose it is, and void it; None where it is nobody's."""
        given_s, identity = self._given.pop(ticket, (0.0, None))
        return identity if self._now_s() - given_s <= _VALID_S else None


def _same(one: Identity, other: Identity) -> bool:
    return one.username == other.username

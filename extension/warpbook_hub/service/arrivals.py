"""When a request that could not be done came first: sent again, it counts as then."""

from __future__ import annotations

import time
from collections import OrderedDict
from hashlib import sha256

#: clients try for minutes
_KEPT_S = 1800.0
_MOST = 10_000


class Arrivals:
    """Requests that failed here: by whose they are, where they went and their bytes.

    Who sends another body has sent another request: an early time is of nothing else
    than of what was there then.
    """

    def __init__(self) -> None:
        self._first: OrderedDict[bytes, tuple[int, float]] = OrderedDict()

    def note(self, username: str, path: str, body: bytes, arrived_ms: int) -> None:
        """Note that a request, which came first at a time, could not be done."""
        self._first[_key(username, path, body)] = arrived_ms, time.monotonic()
        while len(self._first) > _MOST:
            self._first.popitem(last=False)

    def first_ms(self, username: str, path: str, body: bytes, arrived_ms: int) -> int:
        """Return when a request that arrives now came first."""
        noted = self._first.get(_key(username, path, body))
        if noted is None or time.monotonic() - noted[1] > _KEPT_S:
            return arrived_ms
        return min(noted[0], arrived_ms)


def _key(username: str, path: str, body: bytes) -> bytes:
    parts = (username.encode(), path.encode(), body)
    return sha256(b"".join(sha256(part).digest() for part in parts)).digest()

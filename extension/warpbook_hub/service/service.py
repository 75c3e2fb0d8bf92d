"""What all routes share: the database, its one writer, the clock, the open pages."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from sqlalchemy import Connection

from warpbook_hub.clock import HubClock
from warpbook_hub.database.group_commit import Writer
from warpbook_hub.database.hub_database import DATABASE, HubDatabase
from warpbook_hub.errors import HubError, TooManyRequests
from warpbook_hub.outages import note_return
from warpbook_hub.queue import dispatch
from warpbook_hub.service.access import Identity
from warpbook_hub.service.heartbeat import Heartbeat
from warpbook_hub.service.live_feed import LiveFeed
from warpbook_hub.similarity.ranking import Pair

BACKUPS = "backups"
_SECRET = "cookie_secret"
_SECRET_BYTES = 32
_READERS = 4
#: of one person at a time: more would only wait, and let all others wait behind it
_MOST_REQUESTS, _MOST_SOCKETS = 24, 60
Value = TypeVar("Value")
#: of a ticket
_VALID_S = 30.0
#: of all people together; the oldest goes first
_MOST_TICKETS = 5_000
#: of one person, whose oldest goes for a newer one and voids nobody else's
_MOST_TICKETS_EACH = 50


class Tickets:
    """Tickets for WebSockets: each opens one, once, within half a minute.

    A page asks for one by a POST that is checked against other sites, so a socket needs
    no cookie. A hub may forbid cookies there.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._given: dict[str, tuple[float, Identity]] = {}

    def give(self, identity: Identity) -> str:
        now_s = self._now_s()
        while self._given:
            oldest = next(iter(self._given))
            is_over = now_s - self._given[oldest][0] > _VALID_S
            if not is_over and len(self._given) < _MOST_TICKETS:
                break
            del self._given[oldest]
        own = [t for t, (_, whose) in self._given.items() if _same(whose, identity)]
        for ticket in own[: max(0, len(own) - _MOST_TICKETS_EACH + 1)]:
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


class InProgress:
    """Counts what is open for each person, and bounds it."""

    def __init__(self, most: int, words: str) -> None:
        """Take the bound, and what is told beyond it."""
        self._most, self._words = most, words
        self._open: Counter[str] = Counter()

    def check(self, username: str) -> None:
        """Refuse somebody who has as much as one may have.

        Raises:
            TooManyRequests: they have.
        """
        if self._open[username] >= self._most:
            raise TooManyRequests(self._words)

    def begin(self, username: str) -> None:
        """Count one more.

        Raises:
            TooManyRequests: they have as much as one may have.
        """
        self.check(username)
        self._open[username] += 1

    def end(self, username: str) -> None:
        self._open[username] -= 1
        if self._open[username] <= 0:
            del self._open[username]


class Closing(HubError):
    """The service ends."""

    http_status = 503


class Service:
    """One course service: the only process that opens its database."""

    def __init__(self, folder: Path) -> None:
        """Open the database of a folder, and prolong the leases that were held.

        Args:
            folder: of the database.

        Raises:
            DatabaseUnfit: it can't be opened.
        """
        self.folder = folder
        self.clock = HubClock()
        self.database = HubDatabase(folder / DATABASE)
        with self.database.write() as connection:
            # graders could reach nobody for a while, nor could people
            dispatch.grace(connection, self.clock.now_ms())
            note_return(connection, self.clock.now_ms())
        self.heartbeat = Heartbeat(self.clock)
        self.cookie_secret = _secret(folder / _SECRET)
        self.tickets = Tickets()
        self.requests = InProgress(
            _MOST_REQUESTS, "You ask for too much at once. Wait for what you asked."
        )
        self.sockets = InProgress(
            _MOST_SOCKETS, "Too many pages of yours are open. Close some of them."
        )
        self.arrivals = Arrivals()
        self.rankings = Rankings()
        self.live = LiveFeed(self.clock)
        #: when the last backup was begun, by the monotonic clock
        self.backed_up_s = -math.inf
        self._writer = Writer(self.database)
        self._readers = ThreadPoolExecutor(_READERS, "warpbook-hub-reader")
        self._is_closed = self._is_busy = False
        #: counts writes that pages are told of, for whoever asks what has changed
        self.changes = 0

    async def write(
        self,
        change: Callable[[Connection], Value],
        tells_pages: bool = True,
        is_machine: bool = False,
    ) -> Value:
        """Write, and give what came of it once that is on the disk.

        Args:
            change: what writes.
            tells_pages: it may change what open pages are told.
            is_machine: no person asks for it; what people ask for goes first.
        """
        if self._is_closed:
            raise Closing("The service ends. Try again in a moment.")
        value = await asyncio.wrap_future(self._writer.submit(change, is_machine))
        if tells_pages:
            self.changes += 1
            self.live.note_change()
        return value

    async def read(self, ask: Callable[[Connection], Value]) -> Value:
        """Read one moment of the database, on a thread."""
        return await self.apart(lambda: self._read(ask))

    async def apart(self, work: Callable[[], Value]) -> Value:
        """Do on a thread what takes a while."""
        if self._is_closed:
            raise Closing("The service ends. Try again in a moment.")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, work)

    @contextlib.contextmanager
    def one_at_a_time(self) -> Iterator[None]:
        """Do what takes a core, or reads all of the database, while nothing else does.

        Raises:
            TooManyRequests: something else does.
        """
        if self._is_busy:
            raise TooManyRequests(
                "A backup, an export or a comparison is being made. Try again when it "
                "is done."
            )
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = False

    def close(self) -> None:
        """Write what was asked for, and let go of the database."""
        self._is_closed = True
        self._writer.close()
        self._readers.shutdown()
        self.database.close()

    def _read(self, ask: Callable[[Connection], Value]) -> Value:
        with self.database.read() as connection:
            return ask(connection)


def _secret(path: Path) -> bytes:
    """Give what cookies are signed with: the same after a restart."""
    try:
        kept = path.read_bytes()
        if len(kept) == _SECRET_BYTES:
            return kept
    except FileNotFoundError:
        pass
    drawn = secrets.token_bytes(_SECRET_BYTES)
    unfinished = path.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with open(descriptor, "wb") as file:
        file.write(drawn)
    unfinished.replace(path)
    return drawn


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


_MOST_RANKINGS = 50


class Ranking(Struct, frozen=True):
    """The pairs of a lab."""

    made_ms: int
    works: int
    #: sources that they were compared with, of other courses or the reference
    elsewhere: int
    pairs: Sequence[Pair]


class Rankings:
    """The last ranking of each lab."""

    def __init__(self) -> None:
        self._of_labs: dict[str, Ranking] = {}

    def keep(self, lab: str, ranking: Ranking) -> None:
        self._of_labs.pop(lab, None)
        self._of_labs[lab] = ranking
        while len(self._of_labs) > _MOST_RANKINGS:
            del self._of_labs[next(iter(self._of_labs))]

    def of(self, lab: str) -> Ranking | None:
        """Give the last ranking of a lab; None where none was made."""
        return self._of_labs.get(lab)

    def forget(self) -> None:
        """Let go of all, since somebody was erased."""
        self._of_labs.clear()

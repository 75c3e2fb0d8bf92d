"""A class whose course is one of a platform, and a service's sender between them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from sqlalchemy import select

from tests.hub.core.course import Classroom
from tests.hub.lti.platform import CONTEXT, Member, Platform
from warpbook_hub.clock import HubClock
from warpbook_hub.database.tables import LTI_SCORES
from warpbook_hub.lti import ledger, links
from warpbook_hub.lti.client import PlatformClient
from warpbook_hub.lti.platform import Launch, LtiPlatform
from warpbook_hub.lti.tool_key import FILE, ToolKey
from warpbook_hub.service.score_sender import Sender
from warpbook_hub.service.service import Service
from warpbook_hub.work.decisions import override

COURSE = "gpu101"

T = TypeVar("T")

#: by what the file holds: OpenSSL looks for a while whether a key is one
_keys: dict[bytes, ToolKey] = {}


def _key_of(folder: Path) -> ToolKey:
    file = folder / FILE
    key = _keys.get(file.read_bytes()) if file.exists() else None
    key = key or ToolKey(folder)
    _keys[file.read_bytes()] = key
    return key


def members() -> list[Member]:
    """Give the platform's: a teacher, and the class in two pages."""
    names = ("ada", "bob", "cyd")
    return [Member(f"s-{name}", name) for name in names]


@dataclass
class World:
    """A classroom whose service is opened for each thing that is done."""

    room: Classroom
    platform: Platform
    folder: Path
    #: is added to the time
    later_ms: int = 0
    #: of a request; one that is not answered needs less
    timeout_s: float = 60.0

    @property
    def described(self) -> LtiPlatform:
        return msgspec.convert(self.platform.description, LtiPlatform)

    def launch(self, name: str, role: str = "learner", **changed: Any) -> str:
        """Launch as the platform's `s-NAME`, who is called NAME there."""
        url = self.platform.url
        launch = Launch(
            *(COURSE, url, f"s-{name}", name, name.title(), "", f"{name}@example.org"),
            *(role, CONTEXT, "GPUs <b>101</b>", f"{url}/members", f"{url}/lineitems"),
            *("", ""),
        )
        launch = msgspec.structs.replace(launch, **changed)
        with self.room.database.write() as connection:
            return links.record_launch(connection, self.room.now_ms, launch)

    def mark(self, name: str, points: float) -> None:
        """Set somebody's points."""
        self.room.now_ms += 1
        with self.room.database.write() as connection:
            override(
                connection,
                self.room.now_ms,
                self.room.instructor,
                self.room.lab,
                self.room.people[name],
                points,
                "as a test says",
            )

    def next_hour(self) -> None:
        """Let the time come at which the roster is asked for."""
        self.later_ms += 3_600_000

    def rounds(self, count: int = 1) -> None:
        """Have a service that was just started look so often for what is to be sent."""

        async def do(sender: Sender, service: Service) -> None:
            for _ in range(count):
                await sender.round(service)

        self.run(do)

    def run(self, do: Callable[[Sender, Service], Awaitable[T]]) -> T:
        """Do something with a service and its sender."""

        async def served() -> T:
            service = Service(self.folder)
            service.clock = HubClock(
                lambda: self._now_ms / 1000, lambda: self.later_ms / 1000
            )
            key = _key_of(self.folder)
            self.platform.key_set = key.key_set
            client = PlatformClient(self.described, key, self.timeout_s)
            try:
                return await do(Sender(self.described, client), service)
            finally:
                service.close()

        return asyncio.run(served())

    def ledger(self) -> ledger.Ledger:
        """Give what an instructor sees."""
        with self.room.database.read() as connection:
            return ledger.ledger(connection, self._now_ms, COURSE, self.platform.url)

    def rows(self) -> list[tuple[str, float, str]]:
        """Give all rows of the ledger: state, points, last answer."""
        query = select(LTI_SCORES).order_by(LTI_SCORES.c.stamped_ms, LTI_SCORES.c.id)
        with self.room.database.read() as connection:
            return [
                (row.state, row.points, row.answer) for row in connection.execute(query)
            ]

    def sent(self, name: str) -> list[float | None]:
        """Give the scores of somebody that the platform took, in their order."""
        return [
            score.get("scoreGiven")
            for (_, subject), scores in self.platform.scores.items()
            if subject == f"s-{name}"
            for score in scores
        ]

    @property
    def _now_ms(self) -> int:
        return self.room.now_ms + self.later_ms

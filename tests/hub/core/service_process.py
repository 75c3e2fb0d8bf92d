"""A service with the core alone, to be killed: `python -m ... DATABASE PORT`.

It mounts the graders' protocol as a real service does, and takes submissions of anybody
who names themselves.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec
from tornado.web import Application, RequestHandler

from warpbook.hub.clock import HubClock
from warpbook.hub.database.group_commit import Writer
from warpbook.hub.database.opening import HubDatabase
from warpbook.hub.errors import HubError
from warpbook.hub.grader_protocol import PREFIX
from warpbook.hub.queue import graders, leasing
from warpbook.hub.queue.grader_api import answer
from warpbook.hub.work.submissions import receive

#: short, so that lost leases are seen within a test
LEASE_S = 2.0


class HandIn(msgspec.Struct):
    lab: str
    person: str
    source: str
    request: str


class Graders(RequestHandler):
    async def post(self, what: str) -> None:
        writer, clock = self.settings["writer"], self.settings["clock"]
        authorization = self.request.headers.get("Authorization", "")
        body = self.request.body
        response = await asyncio.wrap_future(
            writer.submit(
                lambda connection: answer(
                    connection, clock.now_ms(), what, authorization, body
                )
            )
        )
        self.set_status(response.http_status)
        self.finish(response.body)


class Submissions(RequestHandler):
    async def post(self) -> None:
        writer, clock = self.settings["writer"], self.settings["clock"]
        given = msgspec.json.decode(self.request.body, type=HandIn)
        try:
            receipt = await asyncio.wrap_future(
                writer.submit(
                    lambda connection: receive(
                        connection,
                        clock.now_ms(),
                        given.lab,
                        given.person,
                        given.source,
                        given.request,
                    )
                )
            )
        except HubError as problem:
            self.set_status(problem.http_status)
            self.finish(msgspec.json.encode({"error": str(problem)}))
            return
        self.set_status(201)
        self.finish(msgspec.json.encode(receipt))


async def main() -> None:
    leasing.LEASE_S, leasing.HEARTBEAT_S, leasing.POLL_S = LEASE_S, 0.4, 0.05
    shorten()
    database = HubDatabase(Path(sys.argv[1]))
    clock = HubClock()
    with database.write() as connection:
        leasing.grace(connection, clock.now_ms(), LEASE_S)
    routes = [(f"{PREFIX}(.*)", Graders), ("/submissions", Submissions)]
    application = Application(routes, writer=Writer(database), clock=clock)
    application.listen(int(sys.argv[2]), "127.0.0.1")
    await asyncio.Event().wait()


def shorten() -> None:
    """Have leases of this process end soon."""
    graders.LEASE_S, graders.HEARTBEAT_S, graders.POLL_S = LEASE_S, 0.4, 0.05
    for function in (leasing.lease, leasing.heartbeat):
        function.__defaults__ = (LEASE_S,)


if __name__ == "__main__":
    asyncio.run(main())

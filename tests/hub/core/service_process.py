"""A service with the core alone, to be killed: `python -m ... DATABASE PORT LEASE_S`.

It mounts the graders' protocol as a real service does, and takes submissions of anybody
who names themselves.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec
from tornado.web import Application, RequestHandler

from warpbook.hub_protocol import ANSWER_MARK, GRADERS
from warpbook_hub.clock import HubClock
from warpbook_hub.database.group_commit import Writer
from warpbook_hub.database.hub_database import HubDatabase
from warpbook_hub.errors import HubError
from warpbook_hub.queue import dispatch, graders
from warpbook_hub.queue.grader_api import answer
from warpbook_hub.work.submissions import receive

#: of a lease, until the next heartbeat
HEARTBEAT_OF_LEASE = 0.2


class HandIn(msgspec.Struct):
    lab: str
    person: str
    source: str
    request: str


class Graders(RequestHandler):
    def set_default_headers(self) -> None:
        self.set_header(ANSWER_MARK, "1")

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
    lease_s = float(sys.argv[3])
    have_leases_of(lease_s)
    database = HubDatabase(Path(sys.argv[1]))
    clock = HubClock()
    with database.write() as connection:
        dispatch.grace(connection, clock.now_ms(), lease_s)
    routes = [(f"/{GRADERS}(.*)", Graders), ("/submissions", Submissions)]
    application = Application(routes, writer=Writer(database), clock=clock)
    application.listen(int(sys.argv[2]), "127.0.0.1")
    await asyncio.Event().wait()


def have_leases_of(lease_s: float) -> None:
    """Have leases of this process end so soon, and graders ask often."""
    for module in (dispatch, graders):
        module.LEASE_S, module.POLL_S = lease_s, 0.05
        module.HEARTBEAT_S = HEARTBEAT_OF_LEASE * lease_s
    for function in (dispatch.lease, dispatch.heartbeat):
        function.__defaults__ = (lease_s,)


if __name__ == "__main__":
    asyncio.run(main())

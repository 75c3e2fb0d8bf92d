"""Viewers of a stream, in a process of their own; prints how much they were sent.

Prints "0" once all are connected. Each line that it is given is sent by all viewers
(an empty one is not), and answered with the number of messages so far.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass

from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect


@dataclass
class Count:
    """Messages of all viewers together."""

    messages: int = 0


async def view(client: WebSocketClientConnection, counted: str, count: Count) -> None:
    """Count the messages that begin with `counted`."""
    while (message := await client.read_message()) is not None:
        count.messages += str(message).startswith(counted)


async def connect(url: str, hello: str) -> WebSocketClientConnection:
    """One socket that has said hello."""
    request = HTTPRequest(url, connect_timeout=120, request_timeout=120)
    client = await websocket_connect(request)
    await client.write_message(hello)
    return client


async def main(urls: list[str], hello: str, counted: str) -> None:
    """Connect all viewers, then answer each line with the count, until the end."""
    count = Count()
    clients = await asyncio.gather(*(connect(url, hello) for url in urls))
    viewers = [asyncio.create_task(view(client, counted, count)) for client in clients]
    print(0, flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        if said := line.strip():
            for client in clients:
                await client.write_message(said)
        print(count.messages, flush=True)
    for task in viewers:
        task.cancel()


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))

"""Viewers of a stream, in a process of their own; prints how much they were sent.

Prints "0" once all are connected, then, for each line it is given, the number of
messages so far.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass

from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect


@dataclass
class Count:
    """Messages of all viewers together."""

    messages: int = 0


async def view(
    url: str, hello: str, counted: str, count: Count, connected: asyncio.Semaphore
) -> None:
    """One socket: say hello, then count the messages that begin with `counted`."""
    request = HTTPRequest(url, connect_timeout=120, request_timeout=120)
    client = await websocket_connect(request)
    await client.write_message(hello)
    connected.release()
    while (message := await client.read_message()) is not None:
        count.messages += str(message).startswith(counted)


async def main(urls: list[str], hello: str, counted: str) -> None:
    """Connect all viewers, then answer each line with the count, until the end."""
    count, connected = Count(), asyncio.Semaphore(0)
    viewers = [
        asyncio.create_task(view(url, hello, counted, count, connected)) for url in urls
    ]
    for _ in viewers:
        await connected.acquire()
    print(0, flush=True)
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(count.messages, flush=True)
    for task in viewers:
        task.cancel()


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))

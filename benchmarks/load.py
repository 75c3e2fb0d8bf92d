"""Viewers of a stream, and an unrelated request beside them; prints JSON.

Runs in a process of its own, so that the server's processor time is its own. The
requests start 20 to 80 ms apart whatever the earlier ones do: a closed loop, or a
fixed step in phase with the ticks, would hide the stalls.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from dataclasses import dataclass, field

import psutil
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

WARM_UP_S = 3.0


@dataclass
class Seen:
    """What was counted between the warm-up and the end."""

    counting: bool = False
    messages: int = 0
    latencies_ms: list[float] = field(default_factory=list)


async def view(
    url: str, hello: str, counted: str, seen: Seen, connected: asyncio.Semaphore
) -> None:
    """One socket: say hello, then count the messages that begin with `counted`."""
    request = HTTPRequest(url, connect_timeout=120, request_timeout=120)
    client = await websocket_connect(request)
    await client.write_message(hello)
    connected.release()
    while (message := await client.read_message()) is not None:
        seen.messages += seen.counting and str(message).startswith(counted)


async def probe(port: int, path: str, token: str, seen: Seen) -> None:
    """One unrelated request over a new connection."""
    counted, start_s = seen.counting, time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        f"GET {path}api/status HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: token {token}\r\nConnection: close\r\n\r\n".encode()
    )
    status = await reader.readline()
    await reader.read()
    writer.close()
    if b" 200 " not in status:
        raise RuntimeError(f"the request failed: {status!r}")
    if counted:
        seen.latencies_ms.append((time.monotonic() - start_s) * 1000)


async def main(order: dict[str, object]) -> None:
    """Connect all viewers, warm up, count for the time asked, print."""
    url, token = str(order["url"]), str(order["token"])
    sockets = list(order["sockets"])  # type: ignore[call-overload]
    seen, connected = Seen(), asyncio.Semaphore(0)
    viewers = [
        asyncio.create_task(
            view(
                f"{url.replace('http', 'ws', 1)}{path}?token={token}",
                str(order["hello"]),
                str(order["counted"]),
                seen,
                connected,
            )
        )
        for path in sockets
        for _ in range(int(order["viewers"]))  # type: ignore[call-overload]
    ]
    for _ in viewers:
        await connected.acquire()
    port, base = int(url.split(":")[2].split("/")[0]), "/bench/"
    probes: set[asyncio.Task[None]] = set()

    async def keep_probing() -> None:
        while True:
            probes.add(asyncio.create_task(probe(port, base, token, seen)))
            await asyncio.sleep(random.uniform(0.02, 0.08))

    probing = asyncio.create_task(keep_probing())
    await asyncio.sleep(WARM_UP_S)
    process = psutil.Process(int(order["pid"]))  # type: ignore[call-overload]
    before = process.cpu_times()
    seen.counting = True
    await asyncio.sleep(float(order["seconds"]))  # type: ignore[arg-type]
    seen.counting = False
    after = process.cpu_times()
    probing.cancel()
    # slow answers count too: those asked in time are waited for
    await asyncio.wait(probes, timeout=60)
    cpu_s = (after.user + after.system) - (before.user + before.system)
    json.dump(
        {
            "messages": seen.messages,
            "latencies_ms": seen.latencies_ms,
            "cpu_s": cpu_s,
        },
        sys.stdout,
    )
    sys.stdout.flush()
    for task in viewers:
        task.cancel()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))

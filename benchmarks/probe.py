"""The latency of an unrelated request, from a process that does nothing else.

The requests start 20 to 80 ms apart whatever the earlier ones do: a closed loop, or a
fixed step in phase with the ticks, would hide the stalls. Prints the latencies in ms;
one that takes longer than PATIENCE_S counts as that.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time

PATIENCE_S = 15.0


async def request(port: int, path: str, token: str) -> float:
    """One request over a new connection; its latency in ms."""
    start_s = time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: token {token}\r\nConnection: close\r\n\r\n".encode()
    )
    status = await reader.readline()
    await reader.read()
    writer.close()
    if b" 200 " not in status:
        raise RuntimeError(f"the request failed: {status!r}")
    return (time.monotonic() - start_s) * 1000


async def patiently(port: int, path: str, token: str) -> float:
    """As `request`, but no longer than the patience."""
    try:
        return await asyncio.wait_for(request(port, path, token), PATIENCE_S)
    except asyncio.TimeoutError:
        return PATIENCE_S * 1000


async def main(port: int, path: str, token: str, seconds: float) -> None:
    """Start requests for so long, and wait for every answer."""
    end_s = time.monotonic() + seconds
    requests = []
    while time.monotonic() < end_s:
        requests.append(asyncio.create_task(patiently(port, path, token)))
        await asyncio.sleep(random.uniform(0.02, 0.08))
    json.dump(await asyncio.gather(*requests), sys.stdout)


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))

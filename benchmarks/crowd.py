"""Many viewers of the stream in one process, as cheap as a client can be.

Each speaks just enough of RFC 6455 and counts the frames in the bytes that come. Prints
"0" once all are connected, then, for each line it is given, the number of frames.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import sys


class Viewer(asyncio.Protocol):
    """One socket: shakes hands, says hello, counts."""

    def __init__(self, path: str, hello: str, counted: str) -> None:
        """Nothing is connected yet."""
        self.frames = 0
        self.upgraded = asyncio.get_running_loop().create_future()
        self._path = path
        self._hello = hello.encode()
        self._counted = counted.encode()
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the upgrade."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(
            f"GET {self._path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        """Count what is counted, also across two pieces."""
        data = self._rest + data
        if not self.upgraded.done():
            if b"\r\n\r\n" not in data:
                self._rest = data
                return
            if b" 101 " not in data.split(b"\r\n", 1)[0]:
                raise RuntimeError(f"refused: {data[:200]!r}")
            self._transport.write(_masked(self._hello))
            self.upgraded.set_result(None)
        self.frames += data.count(self._counted)
        # too short to be counted twice
        self._rest = data[-len(self._counted) + 1 :]


def _masked(payload: bytes) -> bytes:
    """A text message from client to server, below 126 bytes."""
    mask = os.urandom(4)
    body = bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))
    return struct.pack("!BB", 0x81, 0x80 | len(payload)) + mask + body


async def main(port: int, path: str, viewers: int, hello: str, counted: str) -> None:
    """Connect all, then answer each line with the count, until the end."""
    loop = asyncio.get_running_loop()
    crowd: list[Viewer] = []
    for _ in range(viewers):
        _, viewer = await loop.create_connection(
            lambda: Viewer(path, hello, counted), "127.0.0.1", port
        )
        crowd.append(viewer)
        await viewer.upgraded
    print(0, flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(sum(viewer.frames for viewer in crowd), flush=True)


if __name__ == "__main__":
    asyncio.run(main(**json.loads(sys.argv[1])))

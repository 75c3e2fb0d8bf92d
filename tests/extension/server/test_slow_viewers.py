"""Viewers that read too slowly: they miss frames, are told so, and harm nobody."""

import asyncio
import json
import socket
import time

import msgspec
import pytest

from warpbook.protocol import Frame


@pytest.fixture
def warpbook_config() -> dict:
    return {"history_seconds": 10.0, "alerts": "watched"}


async def test_who_catches_up_too_slowly_is_told_what_went_meanwhile(
    connect, jp_serverapp, broadcaster
) -> None:
    # a client that reads: it has the server listen
    await (await connect()).next("hello")
    history = broadcaster.history
    now_ms = time.time() * 1000

    def append(*seqs: int) -> None:
        for seq in seqs:
            # so large that a piece of the history does not fit into the socket
            old = Frame(seq, now_ms - 60e3 + 100 * seq, (), "x" * 20_000)
            history.append(old.time_ms, msgspec.json.encode(old))

    append(*range(100))
    slow = await RawClient.connect(jp_serverapp)
    slow.send_text('{"type":"subscribe","protocol":1,"since_ms":0}')
    while json.loads(await slow.read_text())["type"] != "frame":
        pass
    append(*range(100, 400))
    last, came = 0, []
    while last < 399:
        message = json.loads(await slow.read_text())
        if message["type"] == "gap":
            assert message["reason"] == "expired"
            came.append("gap")
            last = round((message["to_ms"] - now_ms + 60e3) / 100)
        elif message["type"] == "frame":
            assert message["seq"] == last + 1, "lost, and nobody told"
            last = message["seq"]
    assert came == ["gap"]
    slow.close()


async def test_a_client_that_does_not_read_misses_frames_and_holds_up_nobody(
    connect, jp_serverapp, broadcaster
) -> None:
    slow = await RawClient.connect(jp_serverapp)
    assert json.loads(await slow.read_text())["type"] == "hello"
    while not broadcaster.viewers._connected:
        await asyncio.sleep(0.01)
    (handler,) = broadcaster.viewers._connected
    slow.send_text('{"type":"subscribe","protocol":1}')
    good = await connect()
    await good.subscribe()
    await good.next("frame")
    frame = broadcaster.sampler.newest
    made = 0

    def make_frame() -> None:
        nonlocal made
        made += 1
        assert made < 36_000, "an hour of frames, and a queue takes them all"
        later = {"seq": frame.seq + 100 * made, "time_ms": frame.time_ms + made}
        broadcaster._take(msgspec.structs.replace(frame, **later))

    while not handler._skipped_ms:
        make_frame()
        await asyncio.sleep(0)
    waiting_bytes = len(handler.ws_connection.stream._write_buffer)
    assert waiting_bytes < 10_000, "more than the frame that is on its way"
    while (await good.next("frame"))["seq"] < frame.seq + 100 * made:
        pass  # whoever reads has the newest
    # what was on its way comes first, then it is told what it missed
    while (message := json.loads(await slow.read_text()))["type"] != "gap":
        make_frame()
    assert message["reason"] == "slow_reader"
    slow.close()


async def test_a_page_without_frames_is_not_closed_for_what_it_has_read(
    connect, broadcaster
) -> None:
    client = await connect()
    await client.next("alerts")
    large = json.dumps({"type": "large", "text": "x" * 9_000_000}).encode()
    for _ in range(3):
        broadcaster.viewers.send_everyone(large)
        broadcaster.viewers.send_everyone(large)
        await client.next("large")
        await client.next("large")


class RawClient:
    """A WebSocket client that takes from the network only what it reads."""

    def __init__(self, reader, writer) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def connect(cls, serverapp) -> "RawClient":
        raw = socket.socket()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(("127.0.0.1", serverapp.port))
        reader, writer = await asyncio.open_connection(sock=raw, limit=1024)
        writer.write(
            f"GET {serverapp.base_url}warpbook/api/v1/stream HTTP/1.1\r\n"
            f"Host: 127.0.0.1:{serverapp.port}\r\n"
            f"Authorization: token {serverapp.identity_provider.token}\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )
        assert b" 101 " in await reader.readline()
        while await reader.readline() != b"\r\n":
            pass
        return cls(reader, writer)

    def send_text(self, text: str) -> None:
        # masked with zeros, which changes nothing; RFC 6455, section 5.2
        self._writer.write(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text.encode())

    async def read_text(self) -> bytes:
        while True:
            first, length = await self._reader.readexactly(2)
            if length == 126:
                length = int.from_bytes(await self._reader.readexactly(2), "big")
            elif length == 127:
                length = int.from_bytes(await self._reader.readexactly(8), "big")
            body = await self._reader.readexactly(length)
            if first == 0x81:  # else a ping
                return body

    def close(self) -> None:
        self._writer.close()

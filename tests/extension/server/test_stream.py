"""The stream as a browser meets it: hello, frames, refusals, history."""

import asyncio
import json
import socket
import time

import msgspec
import pytest
from tornado.httpclient import HTTPClientError

from warpbook.protocol import PROTOCOL_VERSION, CloseCode, Frame
from warpbook.server.selection import Pace


@pytest.fixture
def warpbook_config() -> dict:
    # no GPU here: the shipped recording is played
    return {"max_viewers": 3, "history_seconds": 10.0, "alerts": "watched"}


async def test_hello_says_what_is_there_and_that_it_is_a_replay(connect) -> None:
    hello = await (await connect()).receive()
    assert hello["type"] == "hello"
    assert hello["protocol"] == PROTOCOL_VERSION
    kinds = [device["kind"] for device in hello["devices"]]
    assert set(kinds) == {"gpu", "host", "monitor"}
    origins = {d["kind"]: d["origin"] for d in hello["devices"]}
    assert origins == {"gpu": "replay", "host": "live", "monitor": "live"}
    assert hello["replay"]["name"] == "h200.jsonl.gz"
    assert hello["absences"][0]["what"] == "NVML"
    assert hello["absences"][0]["remedy"]


async def test_frames_come_at_the_rate_asked_for(connect) -> None:
    client = await connect()
    hello = await client.next("hello")
    await client.subscribe(rate_hz=10)
    frames = [await client.next("frame") for _ in range(15)]
    seqs = [frame["seq"] for frame in frames]
    # a busy machine may skip a tick, which its number shows; it never slips
    span_ms = frames[-1]["time_ms"] - frames[0]["time_ms"]
    assert span_ms / (seqs[-1] - seqs[0]) == pytest.approx(100, rel=0.1)
    assert len(set(seqs)) == 15
    for reading in frames[-1]["readings"]:
        device = hello["devices"][reading["device"]]
        assert reading["state"] == "ok"
        assert len(reading["values"]) == len(device["metrics"])

    every = await connect()
    await every.subscribe(rate_hz=10)
    await every.next("frame")
    await client.subscribe(rate_hz=2)
    # the first may still be one of the faster frames
    slower = [(await client.next("frame"))["seq"] for _ in range(5)][1:]
    there_were = []
    while not there_were or there_were[-1] < slower[-1]:
        there_were.append((await every.next("frame"))["seq"])
    pace = Pace(2, 10)
    since = [seq for seq in there_were if slower[0] <= seq <= slower[-1]]
    assert slower == [seq for seq in since if pace.takes(seq)]


async def test_a_selection_holds_only_its_devices(connect) -> None:
    client = await connect()
    hello = await client.next("hello")
    await client.subscribe(devices=["host"])
    frame = await client.next("frame")
    (reading,) = frame["readings"]
    assert hello["devices"][reading["device"]]["id"] == "host"


async def test_a_client_that_comes_back_gets_what_it_missed(connect) -> None:
    stays, leaves = await connect(), await connect()
    await stays.subscribe()
    await leaves.subscribe()
    seen = await leaves.next("frame")
    leaves.socket.close()
    live = [(await stays.next("frame"))["seq"] for _ in range(8)]
    back = await connect()
    await back.subscribe(since_ms=seen["time_ms"])
    seqs = [(await back.next("frame"))["seq"] for _ in range(12)]
    # a busy machine may skip a tick: the one that stayed knows which frames there were
    while live[-1] < seqs[-1]:
        live.append((await stays.next("frame"))["seq"])
    assert seqs == [seq for seq in live if seen["seq"] < seq <= seqs[-1]]


async def test_what_history_no_longer_holds_is_told_as_a_gap(
    connect, jp_serverapp
) -> None:
    client = await connect()
    await client.next("hello")
    # ten seconds of history, overfilled without waiting for them
    now_ms = time.time() * 1000
    for seq in range(150):
        old = Frame(seq, now_ms - 30e3 + 100 * seq, ())
        _broadcaster(jp_serverapp).history.append(old.time_ms, msgspec.json.encode(old))
    await client.subscribe(since_ms=now_ms - 30e3)
    gap = await client.next("gap")
    assert gap["reason"] == "expired"
    lost = round((gap["to_ms"] - gap["from_ms"]) / 100)
    assert 0 < lost < 100
    assert (await client.next("frame"))["seq"] == lost + 1


async def test_who_catches_up_too_slowly_is_told_what_went_meanwhile(
    connect, jp_serverapp
) -> None:
    # a client that reads: it has the server listen
    await (await connect()).next("hello")
    history = _broadcaster(jp_serverapp).history
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


async def test_coming_back_to_a_server_that_was_started_again_is_a_gap(connect) -> None:
    client = await connect()
    await client.next("hello")
    await client.subscribe(since_ms=time.time() * 1000 - 60e3)
    gap = await client.next("gap")
    assert gap["reason"] == "restarted"
    await client.next("frame")


async def test_an_unwatched_time_is_a_gap_and_costs_nothing(
    connect, jp_serverapp
) -> None:
    client = await connect()
    await client.subscribe()
    last = await client.next("frame")
    await client.send({"type": "unsubscribe"})
    await asyncio.sleep(0.5)
    sampler = _sampler(jp_serverapp)
    rested = sampler.newest.seq
    await asyncio.sleep(0.5)
    assert sampler.newest.seq == rested, "it reads on with nobody watching"
    await client.subscribe()
    gap = await client.next("gap")
    assert gap["reason"] == "not_watched"
    assert gap["from_ms"] >= last["time_ms"]
    assert gap["to_ms"] - gap["from_ms"] > 800
    await client.next("frame")


@pytest.mark.parametrize(
    "garbage",
    [
        "",
        "not json",
        "[]",
        "{}",
        '{"type":"subscribe"}',
        '{"type":"subscribe","protocol":1,"rate_hz":NaN}',
        '{"type":"subscribe","protocol":1,"rate_hz":"fast"}',
        '{"type":"subscribe","protocol":1,"surprise":1}',
        '{"type":"launch"}',
        b"\xff\x00\xfe",
    ],
)
async def test_garbage_gets_an_error_and_the_stream_goes_on(connect, garbage) -> None:
    client = await connect()
    await client.send(garbage)
    error = await client.next("error")
    assert error["code"] == "garbage"
    assert error["message"]
    await client.subscribe()
    await client.next("frame")


@pytest.mark.parametrize("rate_hz", [0, -1, -1e308])
async def test_a_rate_that_is_none_is_refused_in_words(connect, rate_hz) -> None:
    client = await connect()
    await client.subscribe(rate_hz=rate_hz)
    error = await client.next("error")
    assert error["code"] == "rate"
    assert "0.1 to 10" in error["message"]


async def test_a_huge_rate_is_bounded(connect) -> None:
    client = await connect()
    await client.subscribe(rate_hz=1e308)
    frames = [await client.next("frame") for _ in range(6)]
    span_ms = frames[-1]["time_ms"] - frames[0]["time_ms"]
    assert span_ms >= 450, "more than ten a second"


async def test_an_unknown_device_is_named(connect) -> None:
    client = await connect()
    await client.subscribe(devices=["gpu:nowhere"])
    error = await client.next("error")
    assert error["code"] == "devices"
    assert "gpu:nowhere" in error["message"]
    assert "host" in error["message"]


async def test_another_protocol_is_refused_with_a_named_code(connect) -> None:
    client = await connect()
    await client.subscribe(protocol=99)
    error = await client.next("error")
    assert error["code"] == "protocol_version"
    assert "reload" in error["message"]
    assert await client.closed() == CloseCode.PROTOCOL_VERSION


async def test_endless_garbage_is_closed_and_the_server_lives(connect) -> None:
    client = await connect()
    for _ in range(10):
        await client.send("x")
    assert await client.closed() == CloseCode.GARBAGE
    again = await connect()
    await again.subscribe()
    await again.next("frame")


async def test_a_message_that_is_too_large_is_closed_with_1009(connect) -> None:
    client = await connect()
    await client.send("x" * 5000)
    assert await client.closed() == 1009


async def test_viewers_beyond_the_limit_are_told(connect) -> None:
    clients = [await connect() for _ in range(3)]
    for client in clients:
        await client.next("hello")
    assert await (await connect()).closed() == CloseCode.TOO_MANY_VIEWERS
    clients[0].socket.close()
    await asyncio.sleep(0.2)
    await (await connect()).next("hello")


async def test_without_a_token_the_handshake_is_refused(connect) -> None:
    with pytest.raises(HTTPClientError) as refused:
        await connect(headers={"Authorization": ""})
    assert refused.value.code == 403


async def test_a_foreign_origin_with_the_users_cookie_is_refused(
    connect, jp_fetch, jp_serverapp
) -> None:
    token = jp_serverapp.identity_provider.token
    # the name of the login cookie holds the host, which is that of the socket here
    headers = {"Authorization": "", "Host": f"localhost:{jp_serverapp.port}"}
    page = await jp_fetch("api", "status", params={"token": token}, headers=headers)
    cookies = "; ".join(
        each.split(";")[0] for each in page.headers.get_list("Set-Cookie")
    )
    user = {"Authorization": "", "Cookie": cookies}
    await (await connect(headers=user)).next("hello")
    with pytest.raises(HTTPClientError) as refused:
        await connect(headers={**user, "Origin": "http://evil.example"})
    assert refused.value.code == 403


async def test_watching_is_not_a_persons_activity(
    connect, jp_fetch, jp_serverapp
) -> None:
    def activity():
        settings = jp_serverapp.web_app.settings
        return [settings[k] for k in settings if k.endswith("_last_activity")]

    before = activity()
    client = await connect()
    await client.subscribe()
    await client.next("frame")
    await jp_fetch("warpbook", "api", "v1", "state")
    await jp_fetch("warpbook", "api", "v1", "capabilities")
    assert activity() == before


async def test_viewers_that_come_at_once_are_counted_at_once(
    connect, jp_serverapp, monkeypatch
) -> None:
    broadcaster = _broadcaster(jp_serverapp)
    ready = broadcaster.ready

    async def slowly() -> None:
        await asyncio.sleep(0.5)
        await ready()

    monkeypatch.setattr(broadcaster, "ready", slowly)
    clients = await asyncio.gather(*(connect() for _ in range(8)))
    first = await asyncio.gather(*(client.receive() for client in clients))
    assert [message is not None for message in first].count(True) == 3


async def test_a_client_that_does_not_read_misses_frames_and_holds_up_nobody(
    connect, jp_serverapp
) -> None:
    slow = await RawClient.connect(jp_serverapp)
    assert json.loads(await slow.read_text())["type"] == "hello"
    broadcaster = _broadcaster(jp_serverapp)
    while not broadcaster._everyone:
        await asyncio.sleep(0.01)
    (handler,) = broadcaster._everyone
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
    connect, jp_serverapp
) -> None:
    client = await connect()
    await client.next("alerts")
    broadcaster = _broadcaster(jp_serverapp)
    large = json.dumps({"type": "large", "text": "x" * 9_000_000}).encode()
    for _ in range(3):
        broadcaster.send_everyone(large)
        broadcaster.send_everyone(large)
        await client.next("large")
        await client.next("large")


async def test_a_frame_is_encoded_once_for_all_its_viewers(
    connect, monkeypatch
) -> None:
    encoded: list[int] = []

    def counting(message: object) -> bytes:
        if isinstance(message, Frame):
            encoded.append(message.seq)
        return msgspec.json.encode(message)

    monkeypatch.setattr("warpbook.server.broadcast.encode", counting)
    monkeypatch.setattr("warpbook.server.selection.encode", counting)
    clients = [await connect() for _ in range(3)]
    for client in clients:
        await client.subscribe()
    for client in clients:
        for _ in range(5):
            await client.next("frame")
    assert len(encoded) == len(set(encoded)) >= 5


def test_a_clock_that_is_set_back_stops_no_frames() -> None:
    pace = Pace(5, 10)
    assert [seq for seq in range(20) if pace.takes(seq)] == list(range(0, 20, 2))
    late = Pace(5, 10)
    assert [seq for seq in (0, 1, 9, 10, 11) if late.takes(seq)] == [0, 9, 11]


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


def _broadcaster(serverapp):
    (app,) = serverapp.extension_manager.extension_apps["warpbook"]
    return app._broadcaster


def _sampler(serverapp):
    return _broadcaster(serverapp).sampler

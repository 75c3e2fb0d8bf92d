"""The stream as a browser meets it: hello, frames, refusals, history."""

import asyncio
import json
import time
from itertools import pairwise

import msgspec
import pytest
from tornado.httpclient import HTTPClientError

from warpbook.protocol import PROTOCOL_VERSION, CloseCode, Frame
from warpbook.server.stream.selection import Pace


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
    frames = [await client.next("frame") for _ in range(25)]
    assert len({frame["seq"] for frame in frames}) == 25
    # a tick of a busy machine may be late or skipped, which its number shows, but the
    # next is in time: those before don't make it late
    late_ms = [frame["time_ms"] - 100 * frame["seq"] for frame in frames]
    most_ms = min(late_ms[:5]) + 150
    while len(late_ms) < 300 and min(late_ms[-5:]) > most_ms:
        frame = await client.next("frame")
        late_ms.append(frame["time_ms"] - 100 * frame["seq"])
    assert min(late_ms[-5:]) <= most_ms
    readings = [reading for frame in frames for reading in frame["readings"]]
    by_device = {
        reading["device"]: reading for reading in readings if reading["state"] == "ok"
    }
    for position, device in enumerate(hello["devices"]):
        assert len(by_device[position]["values"]) == len(device["metrics"])

    every = await connect()
    await every.subscribe(rate_hz=10)
    await every.next("frame")
    await client.subscribe(rate_hz=2)
    # of the faster frames some may still wait
    await client.catch_up()
    slower = [(await client.next("frame"))["seq"] for _ in range(4)]
    there_were = []
    while not there_were or there_were[-1] < slower[-1]:
        there_were.append((await every.next("frame"))["seq"])
    # each fifth, or the next one where a busy machine skipped it
    since = [seq for seq in there_were if slower[0] <= seq <= slower[-1]]
    hole = max(after - before for before, after in pairwise(since))
    steps = [after - before for before, after in pairwise(slower)]
    assert all(4 <= step <= 5 + hole for step in steps), (slower, since)


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
    await stays.next("frame")
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
    connect, broadcaster
) -> None:
    client = await connect()
    await client.next("hello")
    # ten seconds of history, overfilled without waiting for them
    now_ms = time.time() * 1000
    for seq in range(150):
        old = Frame(seq, now_ms - 30e3 + 100 * seq, ())
        broadcaster.history.append(old.time_ms, msgspec.json.encode(old))
    await client.subscribe(since_ms=now_ms - 30e3)
    gap = await client.next("gap")
    assert gap["reason"] == "expired"
    lost = round((gap["to_ms"] - gap["from_ms"]) / 100)
    assert 0 < lost < 100
    assert (await client.next("frame"))["seq"] == lost + 1


async def test_coming_back_to_a_server_that_was_started_again_is_a_gap(connect) -> None:
    client = await connect()
    await client.next("hello")
    await client.subscribe(since_ms=time.time() * 1000 - 60e3)
    gap = await client.next("gap")
    assert gap["reason"] == "restarted"
    await client.next("frame")


async def test_a_new_view_of_a_recording_gets_what_was_played_before(
    connect, jp_fetch
) -> None:
    client = await connect()
    hello = await client.next("hello")
    since_ms = hello["time_ms"] - 30e3
    await client.subscribe(since_ms=since_ms, played_before=True)
    frames = [await client.next("frame") for _ in range(310)]
    # a busy machine begins to read later
    while frames[-1]["seq"] < 0:
        frames.append(await client.next("frame"))
    times_ms = [frame["time_ms"] for frame in frames]
    assert times_ms == sorted(times_ms) and times_ms[0] - since_ms < 1_000
    # in the steps of the frames that are read, up to the first of these
    assert [frame["seq"] for frame in frames[:290]] == list(
        range(frames[0]["seq"], frames[0]["seq"] + 290)
    )
    assert frames[0]["seq"] < 0 <= frames[-1]["seq"]
    assert {frame["readings"][0]["state"] for frame in frames[:290]} == {"ok"}
    # and a span of it has figures
    answer = await jp_fetch(
        *("warpbook", "api", "v1", "history", "span"),
        params={"from_ms": since_ms + 5e3, "to_ms": since_ms + 15e3},
    )
    power = json.loads(answer.body)["devices"][0]["metrics"]["power_watts"]
    assert power["mean"] > 0


async def test_an_unwatched_time_is_a_gap_and_costs_nothing(
    connect, broadcaster
) -> None:
    client = await connect()
    await client.subscribe()
    last = await client.next("frame")
    await client.send({"type": "unsubscribe"})
    # for ever, if it reads on with nobody watching
    rested = -1
    while rested != (rested := broadcaster.sampler.newest.seq):
        await asyncio.sleep(1)
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
    frames = [await client.next("frame") for _ in range(21)]
    span_ms = frames[-1]["time_ms"] - frames[0]["time_ms"]
    # two seconds, but for a first tick that was late
    assert span_ms >= 1500, "more than ten a second"


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
    # the server hears of it in its own time
    while (message := await (await connect()).receive()) is None:
        await asyncio.sleep(0.1)
    assert message["type"] == "hello"


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
        cookie.split(";")[0] for cookie in page.headers.get_list("Set-Cookie")
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
    connect, broadcaster, monkeypatch
) -> None:
    ready = broadcaster.ready

    async def slowly() -> None:
        await asyncio.sleep(0.5)
        await ready()

    monkeypatch.setattr(broadcaster, "ready", slowly)
    clients = await asyncio.gather(*(connect() for _ in range(8)))
    first = await asyncio.gather(*(client.receive() for client in clients))
    assert [message is not None for message in first].count(True) == 3


async def test_a_frame_is_encoded_once_for_all_its_viewers(
    connect, monkeypatch
) -> None:
    encoded: list[int] = []

    def counting(message: object) -> bytes:
        if isinstance(message, Frame):
            encoded.append(message.seq)
        return msgspec.json.encode(message)

    monkeypatch.setattr("warpbook.server.stream.broadcast.encode", counting)
    monkeypatch.setattr("warpbook.server.stream.selection.encode", counting)
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

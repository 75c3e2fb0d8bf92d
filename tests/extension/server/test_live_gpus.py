"""The server on NVIDIA's own binding over the stub library: two GPUs, and faults."""

import asyncio
import json

import pytest

from tests.stub_nvml import LOST, StubNvml


@pytest.fixture
def stub(make_stub_nvml) -> StubNvml:
    return make_stub_nvml("h200", "a100")


def place(hello: dict, kind: str, nth: int = 0) -> int:
    return [n for n, d in enumerate(hello["devices"]) if d["kind"] == kind][nth]


def value(hello: dict, frame: dict, device: int, metric: str) -> float | None:
    names = [described["name"] for described in hello["devices"][device]["metrics"]]
    # none while it is stale, as it may be for a moment on a busy machine
    values = frame["readings"][device]["values"]
    return values[names.index(metric)] if values else None


async def until(client, wanted) -> dict:
    for _ in range(300):
        frame = await client.next("frame")
        if wanted(frame):
            return frame
    raise AssertionError("it did not happen within 30 s")


async def test_the_machines_gpus_are_live_and_what_one_lacks_is_in_words(
    connect, stub
) -> None:
    stub.set(0, power_mw=123_000)
    stub.set_gpm(0, SM_UTIL=42.0)
    client = await connect()
    hello = await client.next("hello")
    assert hello["replay"] is None
    h200, a100 = hello["devices"][place(hello, "gpu")], hello["devices"][1]
    assert [h200["origin"], a100["origin"]] == ["live", "live"]
    without_gpm = {m["name"]: m for m in a100["metrics"]}["sm_active_ratio"]
    assert without_gpm["state"] == "not_supported"
    assert "Hopper" in without_gpm["why"]
    await client.subscribe()
    known = ((0, "sm_active_ratio"), (0, "power_watts"), (1, "power_watts"))
    frame = await until(
        client,
        lambda f: None not in [value(hello, f, *of_metric) for of_metric in known],
    )
    assert value(hello, frame, 0, "sm_active_ratio") == pytest.approx(0.42)
    assert value(hello, frame, 0, "power_watts") == 123.0
    assert value(hello, frame, 1, "sm_active_ratio") is None
    assert value(hello, frame, 1, "power_watts") > 0


async def test_a_lost_gpu_says_so_and_the_others_go_on(connect, stub) -> None:
    client = await connect()
    await client.subscribe()
    await client.next("frame")
    stub.set(0, rc=LOST)
    frame = await until(
        client,
        lambda f: (
            f["readings"][0]["state"] == "lost"
            and {reading["state"] for reading in f["readings"][1:]} == {"ok"}
        ),
    )
    assert frame["readings"][0]["values"] == []
    assert frame["readings"][0]["why"]


async def test_a_call_that_hangs_makes_one_gpu_stale(connect, stub) -> None:
    client = await connect()
    hello = await client.next("hello")
    await client.subscribe()
    await client.next("frame")
    stub.fault("nvmlDeviceGetPowerUsage", delay_ms=600_000, gpu=1)
    await until(
        client,
        lambda f: (
            f["readings"][1]["state"] == "stale"
            and f["readings"][0]["state"] == "ok"
            and f["readings"][place_host(f)]["state"] == "ok"
        ),
    )
    # what the other one does meanwhile is seen, and nothing of this one is made up
    states = []
    for watts in (200, 300, 400):
        stub.set(0, power_mw=1_000 * watts)

        def has_come(frame: dict, watts: int = watts) -> bool:
            states.append(frame["readings"][1]["state"])
            return value(hello, frame, 0, "power_watts") == watts

        await until(client, has_come)
    assert set(states) == {"stale"}
    stub.fault("nvmlDeviceGetPowerUsage")
    await until(client, lambda f: f["readings"][1]["state"] == "ok")


def place_host(frame: dict) -> int:
    return len(frame["readings"]) - 2


async def test_nvml_is_not_called_while_nobody_watches(
    connect, stub, calls_at_rest
) -> None:
    client = await connect()
    await client.subscribe()
    for _ in range(5):
        await client.next("frame")
    client.socket.close()
    calls = await calls_at_rest()
    assert calls > 0
    await asyncio.sleep(0.8)
    assert stub.calls() == calls


async def test_eight_viewers_cost_no_more_calls_than_one(connect, stub) -> None:
    first = await connect()
    await first.subscribe()
    for _ in range(7):
        await (await connect()).subscribe()
    await first.catch_up()
    begin = (await first.next("frame"))["seq"]
    before = stub.calls("nvmlDeviceGetPowerUsage")
    frames = [await first.next("frame") for _ in range(30)]
    calls = stub.calls("nvmlDeviceGetPowerUsage") - before
    # each of the two GPUs once in a tick, and some ticks that are on their way
    assert 0 < calls < 2 * (frames[-1]["seq"] - begin + 10)
    assert stub.shortest_window_ms >= 100


async def test_state_is_read_for_a_single_request(jp_fetch, stub) -> None:
    stub.set_gpm(0, SM_UTIL=42.0)
    active = None
    # a busy machine may not have read twice by then
    while active is None:
        answer = json.loads((await jp_fetch("warpbook", "api", "v1", "state")).body)
        if answer["frame"]:
            active = value(answer, answer["frame"], 0, "sm_active_ratio")
    assert active == pytest.approx(0.42)

"""A server that finds reading too costly: slower for everybody, and told."""

import pytest

from tests.stub_nvml import StubNvml


@pytest.fixture(autouse=True)
def impatient(monkeypatch) -> None:
    """One second too many is enough; how many it takes is the monitor's own test."""
    monkeypatch.setattr("warpbook_monitors.sampling.backoff.BAD_SECONDS", 1)


@pytest.fixture
def warpbook_config(stub_nvml: StubNvml) -> dict:
    """Any reading at all is more than this allows."""
    return {"max_sampler_cpu_ratio": 0.001}


async def test_viewers_get_the_lower_rate_and_are_told(connect) -> None:
    client = await connect()
    hello = await client.next("hello")
    position, monitor = next(
        (position, device)
        for position, device in enumerate(hello["devices"])
        if device["kind"] == "monitor"
    )
    rate = [metric["name"] for metric in monitor["metrics"]].index("rate_hz")
    await client.subscribe(rate_hz=10)
    while (await rate_of(client, position, rate)) != 1.25:
        pass
    # frames are numbered in periods of the base rate: eight of them lie between two
    first, second = await client.next("frame"), await client.next("frame")
    # and more, where a busy machine skips one
    assert second["seq"] > first["seq"] and (second["seq"] - first["seq"]) % 8 == 0
    conditions = (await client.next("health"))["conditions"]["monitor"]
    assert conditions[0]["severity"] == "warning"
    assert "1.25 times a second instead of 10" in conditions[0]["sentence"]
    assert "% of a CPU core" in conditions[0]["sentence"]


async def test_who_asked_for_fewer_frames_still_gets_as_many(connect) -> None:
    client = await connect()
    await client.subscribe(rate_hz=0.5)
    numbers = [(await client.next("frame"))["seq"] for _ in range(6)]
    steps = [
        after - before for before, after in zip(numbers, numbers[1:], strict=False)
    ]
    # a busy machine may skip one
    assert sorted(steps)[2] <= 24, "20 periods are two seconds"


async def rate_of(client, position: int, metric: int) -> float | None:
    while True:
        reading = (await client.next("frame"))["readings"][position]
        if reading["state"] == "ok" and reading["values"][metric] is not None:
            return reading["values"][metric]

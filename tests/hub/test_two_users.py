"""Under a hub everybody sees their own server, through the proxy, and no other's."""

from __future__ import annotations

import asyncio
import json

import pytest
import websocket
from mcp import Client

from tests.stub_nvml import StubNvml
from warpbook.mcp.forward import NoServer, forwarding
from warpbook.protocol import PROTOCOL_VERSION

from .conftest import Person

GIB = 2**30

CAPABILITIES = "warpbook/api/v1/capabilities"
STATE = "warpbook/api/v1/state"
STREAM = "warpbook/api/v1/stream"


def receive(stream: websocket.WebSocket, kind: str) -> dict:
    """The next message of a kind; others are passed over."""
    while (message := json.loads(stream.recv()))["type"] != kind:
        pass
    return message


def watch(stream: websocket.WebSocket, frames: int) -> tuple[dict, list[dict]]:
    hello = receive(stream, "hello")
    stream.send(json.dumps({"type": "subscribe", "protocol": PROTOCOL_VERSION}))
    return hello, [receive(stream, "frame") for _ in range(frames)]


@pytest.mark.parametrize("name", ["alice", "bob"])
def test_each_user_sees_the_gpu_live_by_cookie_alone(people, name: str) -> None:
    person: Person = people[name]
    stream = person.connect(f"/user/{name}/{STREAM}")
    hello, frames = watch(stream, 20)
    stream.close()
    assert hello["replay"] is None
    gpu = next(at for at, it in enumerate(hello["devices"]) if it["kind"] == "gpu")
    assert "H200" in hello["devices"][gpu]["name"]
    assert hello["devices"][gpu]["origin"] == "live"
    seqs = [frame["seq"] for frame in frames]
    # a busy machine skips one, and the numbers show it
    assert seqs == sorted(set(seqs))
    # nor does each frame know everything there
    readings = [reading for frame in frames for reading in frame["readings"]]
    of_gpu = [reading for reading in readings if reading["device"] == gpu]
    assert "ok" in {reading["state"] for reading in of_gpu}
    assert any(value is not None for reading in of_gpu for value in reading["values"])


@pytest.mark.parametrize("name", ["alice", "bob"])
def test_each_user_reads_the_capabilities_of_their_own_server(people, name) -> None:
    answer = people[name].get(f"/user/{name}/{CAPABILITIES}")
    assert answer.status_code == 200
    capabilities = answer.json()
    assert capabilities["protocol"] == PROTOCOL_VERSION
    assert [it["kind"] for it in capabilities["devices"]].count("gpu") == 1
    assert capabilities["replay"] is None


def test_each_user_sees_their_notebook_and_of_others_a_sum(
    alice: Person, bob: Person, stub_gpus: StubNvml
) -> None:
    """Their servers run as one system user: only the hub's name tells them apart."""
    held = {
        person.name: person.open_notebook("secret.ipynb") for person in (alice, bob)
    }
    stub_gpus.hold(0, (held["alice"], 3 * GIB), (held["bob"], 5 * GIB))
    for person, own, other in ((alice, 3, 5), (bob, 5, 3)):
        answer = person.get(f"/user/{person.name}/warpbook/api/v1/holders").json()
        (of_device,) = answer["devices"].values()
        holders = {holder["kind"]: holder for holder in of_device["holders"]}
        kernel = holders.pop("kernel")
        assert (kernel["name"], kernel["user"]) == ("secret.ipynb", person.name)
        assert (kernel["pids"], kernel["used_bytes"]) == (
            [held[person.name]],
            own * GIB,
        )
        others = holders.pop("other_users")
        assert (others["name"], others["pids"]) == ("other users", [])
        assert others["used_bytes"] == other * GIB
        assert not holders
    stub_gpus.hold(0)


def test_nobody_reaches_another_ones_server(alice: Person, bob: Person) -> None:
    for person, other in ((alice, "bob"), (bob, "alice")):
        # the page first: it is sent through the hub's login, and refused by that
        assert person.get(f"/user/{other}/lab").status_code == 403
        for path in (CAPABILITIES, STATE):
            assert person.get(f"/user/{other}/{path}").status_code == 403
        assert person.refused(f"/user/{other}/{STREAM}") == 403


def test_nobody_reaches_anything_without_login(alice: Person, stranger: Person) -> None:
    for path in (CAPABILITIES, STATE):
        assert stranger.get(f"/user/{alice.name}/{path}").status_code == 403
    assert stranger.refused(f"/user/{alice.name}/{STREAM}") == 403


def test_a_page_of_another_site_gets_no_stream(alice: Person) -> None:
    stream = f"/user/alice/{STREAM}"
    assert alice.refused(stream, origin="https://elsewhere.example") == 403


def test_a_token_opens_the_stream_where_cookies_may_not(carol: Person) -> None:
    assert carol.refused(f"/user/carol/{STREAM}") == 403
    token = carol.page_config["token"]
    stream = carol.connect(f"/user/carol/{STREAM}?token={token}")
    hello, frames = watch(stream, 3)
    stream.close()
    assert hello["protocol"] == PROTOCOL_VERSION
    assert len(frames) == 3


def test_an_assistant_asks_its_own_persons_server_and_no_other(
    alice: Person, bob: Person, stub_gpus: StubNvml
) -> None:
    held = {person: person.open_notebook("work.ipynb") for person in (alice, bob)}
    stub_gpus.hold(0, (held[alice], 3 * GIB), (held[bob], 5 * GIB))
    for person, other, own in ((alice, bob, 3), (bob, alice, 5)):
        token = person.page_config["token"]
        said = asyncio.run(_gpus_now(person.url_of(person.name), token))
        (gpu,) = said["rows"]
        holders = gpu["memory_held_by"]["holders"]
        (kernel,) = (holder for holder in holders if holder["who"] == "kernel")
        assert kernel["used_bytes"] == own * GIB
        others = [holder for holder in holders if holder["who"] != "kernel"]
        assert others == [{"who": "another account", "used_bytes": (8 - own) * GIB}]
        assert other.name not in json.dumps(said)
        with pytest.raises(NoServer, match="does not accept the token"):
            asyncio.run(_gpus_now(person.url_of(other.name), token))
    stub_gpus.hold(0)


async def _gpus_now(url: str, token: str) -> dict:
    async with forwarding(url, token) as server, Client(server) as client:
        result = await client.call_tool("gpus_now", {})
        assert not result.is_error, result.content
        return result.structured_content

"""An assistant of a learner's server hands in, with the learner's consent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest
import websocket

from tests.assistant.rules import Assistant
from tests.hub.service.class_hub import COURSE, GOOD
from tests.hub.service.conftest import World
from tests.programs import wait_for

HERE = f"courses/{COURSE}"
SERVER = "assisted"
SETTINGS = {
    "title": "GPU programming",
    "late_budget_h": 0,
    "timed_runs_per_hour": 60,
    "appeal_window_h": 168,
}


@pytest.fixture(scope="module")
def server(world: World) -> tuple[str, str]:
    """The address of a server of ada's that runs, and a token for it."""
    ada = world.people["ada"]
    ada.start_server(SERVER)

    def is_ready() -> bool | None:
        known = ada.session.get(f"{world.hub.url}hub/api/users/ada", timeout=60).json()
        return known["servers"].get(SERVER, {}).get("ready") or None

    wait_for("her server", is_ready, 120)
    token = ada.token("access:servers!user=ada")
    return f"{world.hub.url}user/ada/{SERVER}", token


@contextmanager
def page(url: str, token: str) -> Iterator[websocket.WebSocket]:
    """An open page's stream."""
    stream = websocket.create_connection(
        f"{url}/warpbook/api/v1/stream".replace("http", "ws", 1),
        header={"Authorization": f"token {token}"},
        timeout=60,
    )
    try:
        yield stream
    finally:
        stream.close()


def consent(stream: websocket.WebSocket, state: str) -> dict[str, Any]:
    """Answer what is asked, and give it."""
    asked: dict[str, Any] = {}
    while asked.get("type") != "act_request":
        asked = json.loads(stream.recv())
    for one in ("shown", state):
        answer = {"type": "act_answer", "id": asked["id"], "state": one}
        stream.send(json.dumps(answer))
    return asked


def submissions(world: World) -> set[str]:
    page = world.people["ada"].page(f"{HERE}/labs/{world.lab}")
    return set(re.findall("/submissions/([0-9a-z]+)", page.text))


def test_it_submits_what_the_learner_allows_as_the_course_does(
    world: World, server: tuple[str, str]
) -> None:
    url, token = server
    source = f"// by an assistant\n{GOOD.read_text()}"
    assistant = Assistant(url, token)

    def submit() -> Future[Any]:
        return assistant.ask("lab_submit", lab="vector-add", source=source)

    def allow(policy: str) -> None:
        body = {**SETTINGS, "ai_policy": policy}
        world.people["grace"].done(f"{HERE}/settings", body)

    try:
        before = submissions(world)
        allow("on")
        with page(url, token) as stream:
            allowed = submit()
            assert consent(stream, "allowed")["source"] == source
            said = allowed.result(120)
            assert said["state"] == "done", said
            assert "waits for grading" in " ".join(said["unknown"])
            (handed_in,) = submissions(world) - before
            refused = submit()
            consent(stream, "refused")
            assert refused.result(120)["state"] == "refused"
        assert submissions(world) - before == {handed_in}
        # what the assistant was asked for stands beside it
        log = world.people["ada"].get(f"{HERE}/submissions/{handed_in}/ai-log").json()
        assert [call["tool"] for call in log["calls"]] == ["lab_submit"]
        assert log["calls"][0]["answered_bytes"] is None
        card = world.people["grace"].page(f"{HERE}/submissions/{handed_in}").text
        assert "to hand it in" in card.split('id="ai-log"')[1]
    finally:
        assistant.close()

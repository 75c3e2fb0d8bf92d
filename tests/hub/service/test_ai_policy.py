"""AI assistants of learners: what they may do in a course, and who sees the policy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import websocket
from playwright.sync_api import Page, expect

from tests.assistant.rules import Assistant
from tests.hub.service.browser import chromium
from tests.hub.service.class_hub import COURSE, GOOD, SUBMIT, ClassHub, Visitor
from tests.hub.service.conftest import World
from tests.hub.service.test_gradebook import log_in
from tests.hub.service.test_handing_in import submit
from tests.programs import wait_for
from warpbook.ai_calls import note_ai_call

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
def stream_of(url: str, token: str) -> Iterator[websocket.WebSocket]:
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
        with stream_of(url, token) as stream:
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


def policies(visitor: Visitor) -> dict[str, str]:
    told = visitor.get("ai-policies").json()
    return {one["lab"]: one["ai_policy"] for one in told}


def test_a_policy_is_set_by_forms_and_shown_to_learners(world: World) -> None:
    ada, grace = world.people["ada"], world.people["grace"]
    lab = world.path("courses/{course}/labs/{lab}")
    with chromium() as browser:
        page = browser.new_page()
        log_in(page, world.hub, "grace")
        change(page, world.hub, f"{lab}/settings", "off")
        assert policies(ada) == {"vector-add": "off"}
        change(page, world.hub, f"{HERE}/data", "on")
        assert policies(ada) == {"vector-add": "off"}
        # the form says what is so
        page.goto(f"{world.hub.service_url}{lab}/settings")
        expect(page.locator("[name=ai_policy]")).to_have_value("off")
        change(page, world.hub, f"{lab}/settings", "")
        assert policies(ada) == {"vector-add": "on"}
        change(page, world.hub, f"{HERE}/data", "checking")
        learner = browser.new_context().new_page()
        log_in(learner, world.hub, "ada")
        learner.goto(f"{world.hub.service_url}{lab}")
        expect(learner.locator("#ai-policy")).to_contain_text("for checking only")
        learner.set_viewport_size({"width": 360, "height": 700})
        wide = "document.documentElement.scrollWidth > innerWidth"
        assert learner.evaluate(wide) is False
    assert "AI assistants: for checking only" in ada.page(HERE).text
    # staff are bound by none, and other settings are as they were
    assert policies(grace) == {}
    assert "ai policy: on" in grace.page(f"{HERE}/log").text
    # a notebook's token may ask
    token = Visitor(world.hub, token=ada.token(SUBMIT))
    assert policies(token) == {"vector-add": "checking"}


def change(page: Page, hub: ClassHub, path: str, policy: str) -> None:
    page.goto(hub.service_url + path)
    form = page.locator("form:has([name=ai_policy])")
    form.locator("[name=ai_policy]").select_option(policy)
    with page.expect_navigation():
        form.get_by_role("button", name="Change", exact=True).click()


def test_what_a_learners_program_told_stands_beside_the_submission(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bob = world.people["ada"], world.people["bob"]
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    note_ai_call("lab_check", "vector-add", 21, 1_234)
    note_ai_call("lab_submit", "vector-add", 22, 99, is_refused=True)
    note_ai_call("gpus_now", "", 2, 900)
    source = tmp_path / "mine.cu"
    source.write_text(f"// once more\n{GOOD.read_text()}")
    done = submit(
        world,
        tmp_path,
        *(str(source), "--hub", world.hub.url, "--json", "--replace"),
        WARPBOOK_HUB_TOKEN=ada.token(SUBMIT),
        XDG_DATA_HOME=str(tmp_path),
    )
    assert done.returncode == 0, done.stderr
    submission = json.loads(done.stdout)["receipt"]["submission"]
    path = f"{HERE}/submissions/{submission}"
    told = ada.get(f"{path}/ai-log").json()
    assert (told["count"], told["others"]) == (2, 1)
    for name in ("ada", "grace", "tim"):
        page = world.people[name].page(path)
        assert page.ok, (name, page.status_code, page.text)
        card = page.text.split('id="ai-log"')[1]
        assert "Calls about this lab: 2; about no lab, while it was open: 1." in card
        assert "<code>lab_check</code>" in card and "1,234 B" in card
        assert "refused" in card and "told by the learner" in card
    for name in ("bob", "una", "olga"):
        assert world.people[name].get(f"{path}/ai-log").status_code == 404
    # what was handed in on a page tells nothing, which is not none
    first = world.path("courses/{course}/submissions/{submission}")
    assert bob.get(f"{first}/ai-log").status_code == 404
    assert ada.get(f"{first}/ai-log").json() is None
    assert "Not told" in ada.page(first).text.split('id="ai-log"')[1]


@pytest.mark.parametrize(
    "changed",
    [
        {"tool": "<script>alert(1)</script>"},
        {"tool": "labs\n"},
        {"tool": "x" * 41},
        {"at_ms": 2**53},
        {"at_ms": -1},
        {"answered_bytes": 2**60},
        {"lab": "vector-add"},
    ],
)
def test_what_is_told_is_bounded(world: World, changed: dict) -> None:
    call = {"tool": "labs", "at_ms": 1, "asked_bytes": 1, "answered_bytes": 1}
    told = {"calls": [{**call, **changed}], "count": 1, "others": 0}
    path = world.path("courses/{course}/labs/{lab}/submissions")
    body = {"source": "// mine", "ai_log": told}
    answer = world.people["ada"].post(path, body)
    assert answer.status_code == 400, answer.text
    many = {"calls": [call] * 101, "count": 101, "others": 0}
    assert world.people["ada"].post(path, {**body, "ai_log": many}).status_code == 400

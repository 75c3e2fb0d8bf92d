"""Nobody is late for what the hub did: it was busy, or away, when they handed in."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests
from playwright.sync_api import expect

from tests.hub.service.browser import TIMEOUT_MS, chromium
from tests.hub.service.class_hub import (
    COURSE,
    GOOD,
    HOUR_MS,
    SUBMIT,
    ClassHub,
    Visitor,
    class_hub,
)
from tests.programs import ROOT, environment, wait_for
from warpbook_hub.database.hub_database import HubDatabase

LEARNERS = 40


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClassHub]:
    with class_hub(tmp_path_factory.mktemp("hub"), "--cpu-slots", "0") as running:
        yield running


@pytest.fixture(scope="module")
def people(hub: ClassHub) -> tuple[Visitor, list[Visitor]]:
    grace = Visitor(hub, "grace").log_in()
    names = [f"learner{number}" for number in range(LEARNERS)]
    grace.done(f"courses/{COURSE}/roster", {"csv": "\n".join(["username", *names])})
    with ThreadPoolExecutor(4) as pool:
        learners = list(pool.map(lambda name: Visitor(hub, name).log_in(), names))
    return grace, learners


def now_ms() -> int:
    return int(time.time() * 1000)


def publish_until(grace: Visitor, due_ms: int, lab: str = "vector-add") -> str:
    """Publish a lab that takes nothing after it is due."""
    window = {"opens_ms": now_ms() - HOUR_MS, "due_ms": due_ms, "closes_ms": due_ms}
    body = {"lab": lab, "title": "Until then", "windows": [window]}
    body["thresholds"] = [{"measure": "right", "least": 1, "points": 10}]
    return str(grace.done(f"courses/{COURSE}/labs", body)["lab"])


def ready(learners: list[Visitor]) -> list[Visitor]:
    """Give each a token that JupyterHub was not asked about yet."""
    with ThreadPoolExecutor(4) as pool:
        return list(
            pool.map(lambda one: Visitor(one.hub, token=one.token(SUBMIT)), learners)
        )


def acknowledged(visitor: Visitor, path: str) -> dict:
    """Hand in as a page does: again, until the course service itself has answered."""
    body = {"source": GOOD.read_text(), "request": visitor.session.headers["x-number"]}

    def answer() -> dict | None:
        try:
            response = visitor.post(path, body)
        except requests.ConnectionError:
            return None
        is_final = "Warpbook-Service" in response.headers
        if not is_final or response.status_code == 503:
            return None
        assert response.ok, response.text
        return response.json()

    return wait_for("a receipt", answer)


def test_who_waits_for_the_log_in_past_the_deadline_is_in_time(
    hub: ClassHub, people: tuple[Visitor, list[Visitor]]
) -> None:
    """All send before it is due; JupyterHub says who they are only afterwards."""
    grace, learners = people
    tokens = ready(learners)
    due_ms = now_ms() + 8_000
    lab = publish_until(grace, due_ms)
    path = f"courses/{COURSE}/labs/{lab}/submissions"
    jupyterhub = wait_for("JupyterHub", lambda: hub.process("jupyterhub"))
    jupyterhub.suspend()
    with ThreadPoolExecutor(LEARNERS) as pool:
        body = {"source": GOOD.read_text()}
        answers = [pool.submit(one.post, path, body) for one in tokens]
        wait_for("the deadline", lambda: now_ms() > due_ms + 1000 or None)
        resumed_ms = now_ms()
        jupyterhub.resume()
        receipts = [answer.result().json() for answer in answers]
    assert all(receipt["received_ms"] < resumed_ms for receipt in receipts)
    assert not any(receipt["late_hours"] for receipt in receipts)


def test_who_hands_in_while_the_hub_is_away_is_in_time(
    hub: ClassHub, people: tuple[Visitor, list[Visitor]], tmp_path: Path
) -> None:
    """JupyterHub and the service are killed just before a lab is due and closes.

    Its proxy answers 503, 404 and 403 meanwhile, and then is away itself: pages and the
    command go on until the service has answered.
    """
    grace, learners = people
    tokens = ready(learners)
    token = tmp_path / "token"
    token.write_text(learners[0].token(SUBMIT))
    token.chmod(0o600)
    due_ms = now_ms() + 3_000
    lab = publish_until(grace, due_ms, "area-codes")
    path = f"courses/{COURSE}/labs/{lab}/submissions"
    hub.kill("jupyterhub")
    hub.kill("warpbook_hub.service")
    folders = [str(ROOT / name) for name in ("extension", "labs", "monitors")]
    env = environment(HOME=str(tmp_path), PYTHONPATH=os.pathsep.join(folders))
    command = [sys.executable, "-m", "warpbook.cli.main", "labs", "submit"]
    command += ["area-codes", str(GOOD), "--hub", hub.url]
    with (
        subprocess.Popen(
            [*command, "--token-file", str(token)],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as client,
        ThreadPoolExecutor(LEARNERS) as pool,
    ):
        for number, one in enumerate(tokens):
            one.session.headers["x-number"] = f"number{number}"
        receipts = list(pool.map(lambda one: acknowledged(one, path), tokens[1:]))
        words, progress = client.communicate(timeout=300)
    assert client.returncode == 0, progress
    assert "in time" in words and "the hub was away" in words
    assert "It is tried again" in progress
    assert not any(receipt["late_hours"] for receipt in receipts)
    assert all(receipt["extended_ms"] > 0 for receipt in receipts)
    page = Visitor(hub, "learner1").log_in().page(f"courses/{COURSE}/labs/{lab}")
    assert "later: the hub was away" in page.text


def test_a_page_hands_in_once_the_hub_is_back(
    hub: ClassHub, people: tuple[Visitor, list[Visitor]]
) -> None:
    """It was open when they were killed; what the proxy says meanwhile is not final."""
    grace, _ = people
    lab = publish_until(grace, now_ms() + HOUR_MS, "thread-and-block")
    with chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(f"{hub.url}hub/login")
        page.fill("#username_input", "learner2")
        page.fill("#password_input", hub.passwords()["learners"])
        page.click("#login_submit")
        # the log-in leads to the course
        page.wait_for_url(f"{hub.service_url}courses/{COURSE}")
        page.goto(f"{hub.service_url}courses/{COURSE}/labs/{lab}")
        page.fill("#source", GOOD.read_text())
        page.reload()
        expect(page.locator("#source")).to_have_value(GOOD.read_text())
        expect(page.locator("#hand-in")).to_contain_text("have not handed in")
        hub.kill("jupyterhub")
        hub.kill("warpbook_hub.service")
        page.click("#hand-in button.primary")
        page.wait_for_url("**/submissions/*")
        expect(page.locator("main")).to_contain_text("in time")
        # what was begun goes on after a reload, under its number
        page.goto(f"{hub.service_url}courses/{COURSE}/labs/{lab}")
        page.fill("#source", f"// another\n{GOOD.read_text()}")
        page.context.set_offline(offline=True)
        page.click("#hand-in button.primary")
        expect(page.locator("#hand-in")).to_contain_text("It is tried again by itself")
        page.context.set_offline(offline=False)
        page.reload()
        page.wait_for_url("**/submissions/*")
        expect(page.locator("#history tbody tr")).to_have_count(2)
        page.goto(f"{hub.service_url}courses/{COURSE}/labs/{lab}")
        expect(page.locator("#source")).not_to_have_value(re.compile("another"))


def test_what_failed_here_counts_as_of_when_it_came_first(
    hub: ClassHub, people: tuple[Visitor, list[Visitor]]
) -> None:
    """The database refuses it at first; another text of theirs is another request."""
    grace, (*_, learner) = people
    lab = publish_until(grace, now_ms() + HOUR_MS, "histogram")
    path = f"courses/{COURSE}/labs/{lab}/submissions"
    body = {"source": GOOD.read_text(), "request": "first"}
    database = HubDatabase(hub.folder / "course" / "hub.db")
    with database.write() as connection:
        connection.exec_driver_sql("ALTER TABLE submissions RENAME TO away")
    assert learner.post(path, body).status_code >= 500
    failed_ms = now_ms()
    with database.write() as connection:
        connection.exec_driver_sql("ALTER TABLE away RENAME TO submissions")
    database.close()
    source = f"// another\n{GOOD.read_text()}"
    other = {"source": source, "request": "second", "replace": True}
    times = [learner.done(path, one)["received_ms"] for one in (body, other)]
    assert times[0] <= failed_ms <= times[1]

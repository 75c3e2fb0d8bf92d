"""One person, or one mistake, takes nothing from the rest of the class."""

from __future__ import annotations

import contextlib
import html
import json
import os
import re
import resource
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
import websocket

from tests.hub.service.class_hub import COURSE, SUBMIT, TEACH
from tests.hub.service.conftest import World
from tests.hub.service.test_live import connect
from tests.programs import ROOT, environment, free_port, program, wait_for
from warpbook_hub.service.access import Identity
from warpbook_hub.service.api.routes import API_ROUTES
from warpbook_hub.service.pages.routes import PAGE_ROUTES
from warpbook_hub.service.service import InProgress, Tickets


def test_second_hub_in_a_folder_changes_nothing(world: World) -> None:
    """It would take the grader's token and the plan from the one that runs."""
    hub = world.hub
    plan = (hub.folder / "hub.json").read_bytes()
    folders = [str(ROOT / name) for name in ("extension", "labs", "monitors")]
    env = environment(HOME=str(hub.folder.parent), PYTHONPATH=os.pathsep.join(folders))
    env["PATH"] += f"{os.pathsep}{program('configurable-http-proxy').parent}"
    command = [sys.executable, "-m", "warpbook.cli.main", "hub", "--no-gpu"]
    command += ["--folder", str(hub.folder), "--port", str(free_port(4))]
    command += ["--course", COURSE, "--restore", "no-such-file"]
    second = subprocess.run(command, env=env, capture_output=True, text=True)
    assert second.returncode != 0
    assert "runs in" in second.stderr and "already" in second.stderr
    assert (hub.folder / "hub.json").read_bytes() == plan


def test_one_person_opens_so_many_sockets_and_others_still_do(world: World) -> None:
    ada, bob = world.people["ada"], world.people["bob"]
    header = {"Authorization": f"token {ada.token(SUBMIT)}"}
    opened = []
    with pytest.raises(websocket.WebSocketBadStatusException) as refusal:
        for _ in range(200):
            opened.append(connect(ada, ticket="", header=header))
    assert refusal.value.status_code == 429
    connect(bob).close()
    opened.pop().close()
    for one in opened:
        one.close()


def test_one_person_voids_no_ticket_of_another() -> None:
    tickets = Tickets()
    ada, bob = (Identity(name, frozenset()) for name in ("ada", "bob"))
    of_bob = tickets.give(bob)
    of_ada = [tickets.give(ada) for _ in range(6_000)]
    assert tickets.take(of_bob) == bob
    assert tickets.take(of_ada[0]) is None
    assert tickets.take(of_ada[-1]) == ada


def test_one_person_asks_for_so_much_at_once(world: World) -> None:
    """What waits for a reader is bounded for each, so that others come in between."""
    token = world.people["ada"].token(SUBMIT)
    url = f"{world.hub.inner_url}courses/{COURSE}/labs/{world.lab}"

    def ask(_: int) -> int:
        headers = {"Authorization": f"token {token}"}
        return requests.get(url, headers=headers, timeout=60).status_code

    # so that the hub is asked once who it is
    assert ask(0) == 200

    def refused() -> bool | None:
        """Whether some were; a busy machine may ask more slowly than it answers."""
        with ThreadPoolExecutor(80) as threads:
            statuses = set(threads.map(ask, range(160)))
        assert statuses <= {200, 429}
        return 429 in statuses or None

    wait_for("a refusal", refused)
    assert world.people["bob"].page(f"courses/{COURSE}").status_code == 200
    # nothing of it stays counted
    assert [ask(n) for n in range(3)] == [200] * 3


def test_exports_and_backups_are_made_one_at_a_time(world: World) -> None:
    grace, course = world.people["grace"], f"courses/{COURSE}"
    statuses = [
        world.people["opal"].post("hub/backup", {}).status_code for _ in range(5)
    ]
    assert statuses == [200, 429, 429, 429, 429]
    token = grace.token(TEACH)
    url = f"{world.hub.inner_url}api/v1/{course}/exports/sources"

    def ask(_: int) -> int:
        headers = {"Authorization": f"token {token}"}
        return requests.get(url, headers=headers, timeout=60).status_code

    def refused() -> bool | None:
        with ThreadPoolExecutor(16) as threads:
            statuses = set(threads.map(ask, range(16)))
        assert statuses <= {200, 429}
        return 429 in statuses or None

    wait_for("a refusal", refused)
    assert ask(0) == 200


def test_receipt_that_a_page_shows_can_be_checked(world: World) -> None:
    grace, ada = world.people["grace"], world.people["ada"]
    page = ada.page(f"courses/{COURSE}/submissions/{world.submission}").text
    shown = re.search(r'id="receipt-text">([^<]+)<', page)
    assert shown
    text = html.unescape(shown[1])
    path = f"courses/{COURSE}/receipts/check"
    checked = grace.done(path, {"username": " Ada ", "receipt": text})
    assert (checked["receipt"], checked["lab"]) == ("genuine", "Vector add")
    assert checked["submission"] == "it is in the database"
    received_ms = str(json.loads(text)["received_ms"])
    forged = text.replace(received_ms, str(int(received_ms) - 1))
    for receipt, name in ((text, "bob"), (forged, "ada")):
        body = {"username": name, "receipt": receipt}
        assert "not of this hub" in grace.done(path, body)["receipt"]
    for receipt in ("{}", "[" * 3_000, "nothing"):
        body = {"username": "ada", "receipt": receipt}
        assert grace.post(path, body).status_code == 400


def test_upload_that_breaks_off_is_counted_no_more(world: World) -> None:
    token = world.people["ada"].token(SUBMIT)
    path = f"courses/{COURSE}/labs/{world.lab}/submissions"
    url = urlsplit(f"{world.hub.inner_url}api/v1/{path}")
    headers = f"POST {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\n"
    headers += f"Authorization: token {token}\r\nContent-Length: 1000\r\n\r\n{{"
    for _ in range(40):
        with socket.create_connection((url.hostname, url.port)) as broken:
            broken.sendall(headers.encode())
            time.sleep(0.05)

    def is_answered() -> bool | None:
        """Whether it is; the service hears of each end in its own time."""
        own = {"Authorization": f"token {token}"}
        return requests.get(url.geturl(), headers=own, timeout=60).ok or None

    wait_for("an end of the count", is_answered)


def test_strangers_connections_keep_nobody_out(world: World) -> None:
    """More than the service has descriptors, half of them by the proxy."""
    hub = world.hub
    service = hub.process("warpbook_hub.service")
    assert service
    limit = resource.prlimit(service.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(service.pid, resource.RLIMIT_NOFILE, (256, limit[1]))
    size_bytes = sum(log.stat().st_size for log in _logs(world))
    try:
        with contextlib.ExitStack() as held:
            for address in (hub.inner_url, hub.service_url) * 300:
                url = urlsplit(f"{address}api/v1/ticket")
                stranger = socket.create_connection((url.hostname, url.port))
                held.enter_context(stranger)
                head = f"POST {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\n"
                with contextlib.suppress(OSError):
                    stranger.sendall(f"{head}Content-Length: 9\r\n\r\n[".encode())
            for address in (hub.inner_url, hub.service_url):
                assert requests.get(f"{address}health", timeout=60).ok
            assert world.people["bob"].page(f"courses/{COURSE}").status_code == 200
    finally:
        resource.prlimit(service.pid, resource.RLIMIT_NOFILE, limit)
    grown_bytes = sum(log.stat().st_size for log in _logs(world)) - size_bytes
    assert grown_bytes < 1 << 20


def test_nobody_gets_a_traceback(world: World) -> None:
    """Every path, with values that no path and no query should have."""
    hub = world.hub
    paths = [f"api/v1/{route.path}" for route in API_ROUTES]
    paths += [route.path for route in PAGE_ROUTES]
    paths += ["health", "oauth_callback", "live", "lti/enter", "api/v1/ticket"]
    paths += [f"{kind}/v1/{what}" for kind in ("grader", "keeper") for what in "ab"]
    paths += ["static/hub.js", "courses/{course}/labs/{lab}/pictures/a.png"]
    hostile = ("%00", "%ff", "..%2f", "[", "%5B" * 300, "1" * 5000, "%F0%9F%98%80")
    session, wrong = requests.Session(), []
    session.trust_env = False
    for pattern in paths:
        for value in hostile:
            path = world.path(re.sub(r"\{\w+\}", "{course}", pattern))
            for url in (
                f"{path}{value}.css",
                path.replace(COURSE, value),
                f"{path}?audit={value}&next={value}&code={value}&state={value}",
            ):
                for ask in (session.get, session.post):
                    headers = {"Authorization": f"token {value}", "Cookie": value}
                    answer = ask(
                        hub.inner_url + url,
                        headers=headers,
                        allow_redirects=False,
                        timeout=60,
                    )
                    if answer.status_code >= 500 or "Traceback" in answer.text:
                        wrong.append((url[:90], answer.status_code))
    assert not wrong
    assert not [log for log in _logs(world) if "Traceback" in log.read_text()]


@pytest.mark.parametrize("body", ["[" * 100_000, '{"a":' * 20_000, '{"a":[' * 20_000])
def test_what_is_nested_deeply_is_refused(world: World, body: str) -> None:
    for what in ("hello", "lease", "heartbeat", "result", "release"):
        answer = requests.post(
            f"{world.hub.inner_url}grader/v1/{what}",
            data=body,
            headers={"Authorization": f"Bearer {world.grader_token}"},
            timeout=60,
        )
        assert answer.status_code == 400, what
        assert len(answer.text) < 1_000
    path = f"{world.hub.inner_url}api/v1/courses/{COURSE}/queue/resume"
    token = world.people["grace"].token(TEACH)
    headers = {"Authorization": f"token {token}"}
    assert requests.post(path, data=body[:60_000], headers=headers).status_code == 400


def _logs(world: World) -> list[Path]:
    return list(world.hub.folder.rglob("*.log"))


def test_who_has_no_log_in_lengthens_no_outage(world: World) -> None:
    """It would begin with the first request that is not answered."""
    url = urlsplit(f"{world.hub.inner_url}api/v1/courses/{COURSE}/roster")
    head = f"POST {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\n"

    with socket.create_connection((url.hostname, url.port)) as unfinished:
        unfinished.sendall(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
        time.sleep(1)
        begun_ms = int(time.time() * 1000)
        world.hub.wait_for_note(begun_ms + 3000)
        # it is not answered still
        unfinished.setblocking(False)
        with pytest.raises(BlockingIOError):
            unfinished.recv(1)


def test_what_ended_is_counted_no_more() -> None:
    counted = InProgress(1, "too many")
    for _ in range(3):
        counted.begin("ada")
        counted.end("ada")
    assert not counted._open

"""The campus board on a real hub, with a real agent on the stub library."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from playwright.sync_api import expect

from tests.hub.service.browser import chromium
from tests.hub.service.class_hub import COURSE, ROSTER, ClassHub, Visitor, class_hub
from tests.hub.service.test_story import Tab, serious
from tests.monitors.holders.agent import agent, process_of, token_file
from tests.programs import wait_for
from tests.stub_nvml import StubNvml

CAMPUS = f"courses/{COURSE}/campus"
#: a name of a GPU that a page must show, and never run
ODD_NAME = b"H200 <script>alert(1)</script>"


@dataclass
class Campus:
    hub: ClassHub
    grace: Visitor
    token: str


@pytest.fixture(scope="module")
def campus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campus]:
    with class_hub(tmp_path_factory.mktemp("hub")) as hub:
        grace = Visitor(hub, "grace").log_in()
        grace.done(f"courses/{COURSE}/roster", {"csv": ROSTER})
        token = grace.done(f"{CAMPUS}/nodes", {"name": "n7"})["token"]
        yield Campus(hub, grace, token)


@pytest.fixture
def node(
    campus: Campus, make_stub_nvml: Callable[..., StubNvml], tmp_path: Path
) -> tuple[StubNvml, list[str]]:
    """Two GPUs, and the options of their agent."""
    stub = make_stub_nvml("h200", "h200")
    stub.set(0, name=ODD_NAME)
    options = ["--hub", campus.hub.inner_url, "--every", "1"]
    options += ["--token-file", str(token_file(tmp_path, campus.token))]
    return stub, [*options, "--spool", str(tmp_path / "spool")]


def gpus(campus: Campus) -> list[dict]:
    board = campus.grace.get(CAMPUS).json()
    return [gpu for node in board["nodes"] for gpu in node["gpus"]]


def until(campus: Campus, what: str, is_so: Callable[[list[dict]], bool]) -> list[dict]:
    def look() -> list[dict] | None:
        shown = gpus(campus)
        return shown if shown and is_so(shown) else None

    return wait_for(what, look)


def counted(campus: Campus) -> tuple[int, int, int] | None:
    """Sums of numbers, time and energy; None while the counter of a GPU is unknown."""
    database = f"file:{campus.hub.folder}/course/hub.db?mode=ro"
    connection = sqlite3.connect(database, uri=True)
    (numbers,) = connection.execute("SELECT sum(number) FROM node_streams").fetchone()
    read_ms, energy_mj, unknown = connection.execute(
        "SELECT sum(read_ms), sum(energy_mj), count(*) - count(energy_mj)"
        " FROM gpu_spans WHERE width_ms = 3600000"
    ).fetchone()
    connection.close()
    return None if unknown or not read_ms else (numbers, read_ms, energy_mj)


def test_kills_of_both_lose_nothing_and_count_nothing_twice(
    campus: Campus, node: tuple[StubNvml, list[str]], tmp_path: Path
) -> None:
    stub, options = node
    stub.set(0, energy_mj=0)
    begun_s = time.monotonic()
    with agent(tmp_path, stub, *options) as (process, _):
        wait_for("both GPUs", lambda: counted(campus))
        campus.hub.kill("warpbook.hub.service")
        # what the GPUs use meanwhile is not lost
        stub.set(0, energy_mj=77_000)
        wait_for("the service", lambda: campus.grace.get(CAMPUS).ok or None)

        def has_all() -> bool | None:
            sums = counted(campus)
            return (sums is not None and sums[2] >= 77_000) or None

        wait_for("the backlog", has_all)
        process.kill()
        process.wait()
    numbers, read_ms, energy_mj = wait_for("the sums", lambda: counted(campus))
    assert energy_mj == 77_000
    # two GPUs, each for no longer than this takes
    assert 0 < read_ms <= 2 * 1000 * (time.monotonic() - begun_s)
    with agent(tmp_path, stub, *options):

        def has_more() -> tuple[int, int, int] | None:
            sums = counted(campus)
            return sums if sums is not None and sums[0] >= numbers + 2 else None

        assert wait_for("more", has_more)[2] == 77_000


def test_only_a_node_is_listened_to(campus: Campus) -> None:
    url = f"{campus.hub.service_url}node/v1/intervals"
    body = {"sent_ms": 1, "dropped": 0, "intervals": []}

    def status(token: str, **more: object) -> int:
        session = requests.Session()
        session.trust_env = False
        with session:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            options = {"json": body, **more}
            return session.post(url, headers=headers, timeout=60, **options).status_code

    keeper = (campus.hub.folder / "hub" / "keeper_token").read_text()
    for token in ("", "guessed", keeper, campus.token[:-1]):
        assert status(token) == 403
    assert status(campus.token) == 200
    assert status(campus.token, json=None, data="[") == 400
    assert status(campus.token, json={**body, "hints": 1}) == 400
    deep = "[" * 100_000
    assert status(campus.token, json=None, data=deep) == 400
    assert status(campus.token, json=None, data="x" * (1 << 20)) == 413
    # a node's token opens nothing else
    node = Visitor(campus.hub, token=campus.token)
    assert node.get(CAMPUS).status_code == 403


def test_the_board_shows_who_holds_what(
    campus: Campus, node: tuple[StubNvml, list[str]], tmp_path: Path
) -> None:
    stub, options = node
    grace = campus.grace
    grace.done(f"{CAMPUS}/nodes", {"name": "never-seen"})
    ada = Visitor(campus.hub, "ada").log_in()
    assert ada.get(CAMPUS).status_code == 403
    assert ada.page(CAMPUS).status_code == 403
    with (
        process_of(None, JUPYTERHUB_USER="ada") as works,
        process_of(None, JUPYTERHUB_USER="<img src=x>") as idles,
        agent(tmp_path, stub, *options),
    ):
        stub.work(0, (works, 80))
        stub.hold(1, (idles, 1 << 30))
        stub.set(0, utilization_percent=90)
        stub.set(1, utilization_percent=0)
        stub.set_gpm(0, SM_UTIL=60, ANY_TENSOR_UTIL=30)
        stub.set_gpm(1, SM_UTIL=0)

        def is_there(shown: list[dict]) -> bool:
            claims = [one["claim"] for one in shown[0]["holders"] or ()]
            states = [gpu["state"] for gpu in shown]
            has_sm = (shown[0]["sm_ratio"] or 0) > 0.5
            return claims == ["ada"] and states == ["works", "idle"] and has_sm

        first, second = until(campus, "the holders", is_there)
        assert first["name"] == ODD_NAME.decode()
        # an odd claim is nobody's, and its process is its account's
        assert [one["claim"] for one in second["holders"]] == [None]

        # the page is drawn whole before any script runs; an interval of a busy machine
        # may have no reading
        def is_drawn() -> bool | None:
            return "says ada" in grace.page(CAMPUS).text or None

        wait_for("the page", is_drawn)
        look_at(campus)
        stub.fault("nvmlDeviceGetUtilizationRates", rc=15, gpu=1)
        until(campus, "a lost GPU", lambda shown: shown[1]["state"] == "unread")
        page = grace.page(CAMPUS).text
        assert "can&#x27;t be read" in page or "can&#39;t be read" in page
        assert "<script>alert" not in page


def look_at(campus: Campus) -> None:
    """See the page as an instructor does, in both schemes."""
    with chromium() as browser:
        for scheme in ("light", "dark"):
            grace = Tab(browser, campus.hub, "grace", scheme)
            page = grace.open("/campus")
            board = page.locator("#campus")
            # an interval of a busy machine may have no reading; the page looks again
            expect(board.get_by_role("status")).to_have_text(
                "1 works; 1 held without work."
            )
            expect(board).to_contain_text(ODD_NAME.decode())
            expect(board).to_contain_text("says ada")
            expect(board).to_contain_text("never heard of")
            expect(board.get_by_role("img")).to_have_count(2)
            week = page.locator("#week").get_by_role("img")
            expect(week).to_have_count(2)
            first, second = week.first, week.last
            expect(first).to_have_attribute(
                "aria-label", re.compile("^active .* of 168")
            )
            expect(second).to_have_attribute("aria-label", "nothing known of 168 hours")
            assert serious(page) == []
            # a phone, on which tables are scrolled
            page.set_viewport_size({"width": 420, "height": 900})
            assert serious(page) == []
            assert grace.complaints == []
        form = page.locator("form[data-api$='/keep']")
        form.get_by_label("Weeks").fill("4")
        # it is loaded anew, with what the hub keeps
        with page.expect_event("load"):
            form.get_by_role("button", name="Keep").click()
        expect(page.get_by_label("Weeks")).to_have_value("4")
        form = page.locator("form[data-api$='/hints']")
        expect(form.get_by_role("combobox")).to_have_value("off")
        form.get_by_role("combobox").select_option("activity")
        form.get_by_role("button", name="Set").click()
        page.wait_for_selector("option[value=activity][selected]", state="attached")
        page = grace.open("/gpus")
        expect(page.locator("#hints")).to_contain_text("busy or since when")
        assert serious(page) == []

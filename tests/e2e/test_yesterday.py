"""Yesterday on the dashboard: weeks of history, and what happened, found again."""

from __future__ import annotations

import contextlib
import json
import platform
import re
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from playwright.sync_api import BrowserContext, Locator, expect

from tests.e2e.conftest import fresh_page
from tests.e2e.lab import TOUR, Lab
from tests.e2e.lab_page import LabPage
from tests.extension.server.test_difference import profiled
from tests.programs import wait_for
from warpbook.protocol import CellBand, CellReport
from warpbook.server.records.record_forms import band_record, report_record
from warpbook_monitors.archive.archive import FILE_NAME
from warpbook_monitors.archive.database import connect, transaction
from warpbook_monitors.archive.limits import Limits
from warpbook_monitors.archive.place import machine_name
from warpbook_monitors.archive.records import put
from warpbook_monitors.archive.segments import next_merge
from warpbook_monitors.archive.tail import Tail
from warpbook_monitors.frames import Frame, Reading
from warpbook_monitors.recordings.recording import read_recording
from warpbook_monitors.recordings.replay import SHIPPED

HOUR_MS = 3_600_000.0
DAY_MS = 24 * HOUR_MS
LIMITS = Limits()


def fill(folder: Path, now_ms: float) -> None:
    """Put ten days of the recorded GPUs into an archive, and what happened then."""
    recording = read_recording(SHIPPED)
    devices = tuple(
        replace(device, origin="replay") for device in recording.hello.devices
    )
    with contextlib.closing(connect(folder / FILE_NAME)) as connection:
        tail = Tail()
        frames = []
        # each minute of the last two hours, one of each hour before: what is written
        # is a segment for each five minutes that hold anything
        before = range(10 * 24 * 60, 120, -60)
        times_ms = [now_ms - at * 60_000 for at in (*before, *range(120, 5, -1))]
        for seq, time_ms in enumerate(times_ms):
            given = recording.frames[seq % len(recording.frames)]
            readings = tuple(
                Reading(position, reading.state, reading.values, reading.why)
                for position, reading in enumerate(given.readings)
            )
            frames.append(Frame(seq, time_ms, readings))
        tail.write(connection, [(frame, devices) for frame in frames])
        with transaction(connection):
            while next_merge(connection, now_ms):
                pass
            yesterday_ms = now_ms - DAY_MS
            for name, at_ms in (("yesterday", yesterday_ms), ("today", now_ms - 9e5)):
                body = profiled(
                    f"r-{name}",
                    "tiny_kernels",
                    at_ms,
                    title=f"train('{name}') <b>",
                    notebook="work/train.ipynb",
                )
                kept = msgspec.convert(body, CellReport)
                message = msgspec.json.encode(kept)
                put(connection, report_record(kept), message, "test", LIMITS)
            band = CellBand(
                "m-1",
                "k",
                "work/train.ipynb",
                "c",
                3,
                "evaluate(model)",
                yesterday_ms + 60_000,
                yesterday_ms + 360_000,
                "ok",
            )
            put(
                connection, band_record(band), msgspec.json.encode(band), "test", LIMITS
            )


@pytest.fixture(scope="module")
def old_lab_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A lab that was used for ten days."""
    lab = Lab(tmp_path_factory.mktemp("old"))
    data = lab.home / ".local" / "share" / "warpbook" / "archive"
    fill(data / machine_name(platform.node()), time.time() * 1000)
    lab.write_notebook("mine.ipynb", ["answer = 41 + 1"])
    with lab.serve() as url:
        yield url


def choose_window(page: LabPage, label: str) -> None:
    page.dashboard.get_by_label("Time window").select_option(label=label)


def details(page: LabPage) -> list[dict]:
    """What the server has told of long times, as it comes."""
    answers: list[dict] = []

    def take(response) -> None:
        if "history/detail" in response.url and response.ok:
            with contextlib.suppress(Exception):
                answers.append(response.json())

    page.page.on("response", take)
    return answers


def known(answer: dict) -> int:
    return sum(
        value is not None
        for column in answer["columns"].values()
        for value in column["mean"]
    )


def find(page: LabPage, text: str) -> Locator:
    panel = page.dashboard.locator(".wb-find")
    panel.scroll_into_view_if_needed()
    if panel.get_attribute("open") is None:
        panel.locator("summary").click()
    panel.get_by_label("Text").fill(text)
    panel.get_by_role("button", name="Find", exact=True).click()
    return panel


class TestOnePage:
    """Looking back, and finding what happened."""

    @pytest.fixture(scope="class")
    @classmethod
    def page(cls, profile: BrowserContext, old_lab_url: str) -> Iterator[LabPage]:
        with fresh_page(profile) as page:
            page.open(old_lab_url, TOUR)
            page.wait_moving(page.dashboard)
            yield page

    def test_it_goes_from_minutes_to_a_month_without_a_break(
        self, page: LabPage, screenshots: Path
    ) -> None:
        answers = details(page)
        expect(
            page.dashboard.get_by_text(re.compile(r"Kept since \d{4}-"))
        ).to_be_visible()
        steps = []
        for label in ("1 h", "6 h", "1 day", "7 days", "30 days"):
            answers.clear()
            choose_window(page, label)

            def came(least: int = 20) -> dict | None:
                page.page.wait_for_timeout(100)
                return next(
                    (answer for answer in answers if known(answer) > least), None
                )

            steps.append(wait_for(f"what {label} was like", came)["step_ms"])
        assert steps == sorted(steps) and steps[-1] >= HOUR_MS
        page.page.screenshot(path=screenshots / "yesterday-month.png")
        # panning keeps the length; a badge says which days
        choose_window(page, "1 day")
        page.dashboard.get_by_role("button", name="Back in time").click()
        badge = page.dashboard.locator(".wb-badge-paused")
        expect(badge).to_contain_text(re.compile(r"PAUSED \d{4}-\d\d-\d\d .* to "))
        page.dashboard.get_by_role("button", name="Resume").click()

    def test_a_report_of_yesterday_is_found_and_compared_with_todays(
        self, page: LabPage, screenshots: Path
    ) -> None:
        panel = find(page, "yesterday")
        expect(panel.get_by_role("status")).to_have_text("1 found.")
        # by its notebook and kind, both are found, and the cell is not
        panel.get_by_label("Text").fill("")
        panel.get_by_label("Notebook").fill("work/train.ipynb")
        panel.get_by_label("Kind").select_option(label="Reports")
        panel.get_by_role("button", name="Find", exact=True).click()
        expect(panel.get_by_role("status")).to_have_text("2 found.")
        panel.get_by_role("button", name="train('yesterday')").click()
        expect(page.drawer).to_contain_text("train('yesterday') <b>")
        page.page.screenshot(path=screenshots / "yesterday-report.png")
        before = page.drawer.get_by_label("Comparison").get_by_label(
            "Before", exact=True
        )
        before.select_option("r-today")
        expect(page.drawer.locator(".wb-difference")).not_to_be_empty()
        # and shown in time
        panel.get_by_role("button", name="Show in time").last.click()
        badge = page.dashboard.locator(".wb-badge-paused")
        expect(badge).to_contain_text(re.compile(r"PAUSED \d{4}-"))


def test_a_cell_of_yesterday_is_a_band_and_one_of_today_is_kept(
    page: LabPage, old_lab_url: str
) -> None:
    page.open(old_lab_url, "mine.ipynb")
    with page.page.expect_response(
        lambda response: "warpbook/api/v1/cells" in response.url
    ) as handed_over:
        page.run(0)
    assert handed_over.value.status == 204
    sent = json.loads(handed_over.value.request.post_data or "[]")
    panel = find(page, sent[-1]["title"][:20])
    expect(
        panel.get_by_role("button", name=sent[-1]["title"][:10]).first
    ).to_be_visible()
    with page.page.expect_response(
        lambda response: "kind=cell" in response.url
    ) as listed:
        choose_window(page, "7 days")
    titles = [record["title"] for record in listed.value.json()["records"]]
    assert "evaluate(model)" in titles

"""The story of a class in a browser: from roster to grades."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.hub.service.browser import TIMEOUT_MS, chromium
from tests.hub.service.class_hub import (
    COURSE,
    GOOD,
    HOSTILE,
    ROSTER,
    ClassHub,
    class_hub,
)
from tests.programs import ROOT

AXE = ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"


class Tab:
    """A page of somebody who is logged in; what the browser complains of is kept."""

    def __init__(self, browser: Browser, hub: ClassHub, name: str, scheme: str) -> None:
        self.complaints: list[str] = []
        context = browser.new_context(color_scheme=scheme)  # type: ignore[arg-type]
        self.page: Page = context.new_page()
        self.page.set_default_timeout(TIMEOUT_MS)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: dialog.accept())
        self.page.on(
            "console",
            lambda message: (
                message.type in ("error", "warning")
                and self.complaints.append(message.text)
            ),
        )
        password = hub.passwords()["staff" if name == "grace" else "learners"]
        self.page.goto(hub.service_url)
        self.page.fill("#username_input", name)
        self.page.fill("#password_input", password)
        self.page.click("#login_submit")
        self.page.wait_for_url(re.compile("services/warpbook"))
        self.home = f"{hub.service_url}courses/{COURSE}"

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.home}{path}")
        return self.page


def test_class_from_roster_to_grades(tmp_path: Path) -> None:
    with class_hub(tmp_path, asks_driver=True) as hub, chromium() as browser:
        introduction = (tmp_path / "command.log").read_text()
        assert "No GPU here: correctness is graded, speed is not" in introduction
        assert "GPUs grade" not in introduction
        grace = Tab(browser, hub, "grace", "light")
        import_roster(grace)
        publish(grace)
        watched = grace.open("/class")
        expect(watched.locator("#class tbody tr")).to_have_count(2)
        ada = Tab(browser, hub, "ada", "dark")
        submission = hand_in(ada)
        see_result_arrive(grace, ada)
        appeal(ada)
        decide(grace, submission)
        hide_and_release(grace, ada, submission)
        see_points(ada)
        export(grace)
        look_through(grace, submission)
        look_through(ada, submission)
        erase(grace)
        expect(ada.page.locator("html")).to_be_attached()
        assert grace.complaints == []
        assert ada.complaints == []


def import_roster(grace: Tab) -> None:
    page = grace.open("/people")
    form = page.locator("form[data-roster]")
    form.get_by_label("or its lines").fill(ROSTER)
    form.get_by_role("button", name="Show").click()
    expect(form.get_by_role("status")).to_have_text(
        re.compile(r"^would be added: 2 \(ada, bob\)\nwould be changed: 0")
    )
    # so far it was only asked
    expect(page.locator("#people tbody tr")).to_have_count(1)
    form.get_by_role("button", name="Import 2 people").click()
    expect(form.get_by_role("status")).to_contain_text("added: 2")
    expect(page.locator("#people tbody tr")).to_have_count(3)
    form.get_by_label("or its lines").fill(ROSTER)
    form.get_by_role("button", name="Show").click()
    expect(form.get_by_role("status")).to_contain_text("would be added: 0")
    expect(form.get_by_role("status")).to_contain_text("unchanged: 2")
    page.reload()
    # a name is shown as it is
    expect(page.get_by_text(HOSTILE)).to_be_visible()


def publish(grace: Tab) -> None:
    """With the keyboard alone, once the lab is chosen."""
    row = grace.open("/publish").locator("tbody tr", has_text="Vector add").first
    expect(row).to_contain_text("CUDA C++")
    page = grace.open("/publish?catalogue=vector-add")
    expect(page.locator(".warning")).to_contain_text(
        "correctness, on 1 CPU slot; speed is not, without a GPU"
    )
    page.get_by_label("Title").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("Add two vectors")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/labs/[0-9a-f]{20}$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Add two vectors")


def hand_in(ada: Tab) -> str:
    page = ada.open("")
    page.get_by_role("link", name="Add two vectors").click()
    # pictures of the text are there
    picture = page.locator(".prose img").first
    expect(picture).to_be_visible()
    # its place is seen before it has come
    expect(picture).to_have_js_property("complete", True)
    assert picture.evaluate("image => image.naturalWidth") > 0
    # where hints are opened, and none of them
    hints = page.locator("#hints")
    expect(hints).to_contain_text("There are 4")
    expect(hints).to_contain_text("warpbook labs hint vector-add")
    expect(page.get_by_text("Give each thread its own element")).to_have_count(0)
    page.get_by_label("A file").set_input_files(GOOD)
    expect(page.locator("#source")).to_have_value(re.compile("__global__"))
    page.get_by_role("button", name="Hand in").click()
    page.wait_for_url(re.compile("/submissions/[0-9a-f]{20}$"))
    # the page has an address of its own, and a reload hands nothing in
    page.reload()
    expect(page.get_by_text("in time")).to_be_visible()
    expect(page.locator("#history tbody tr")).to_have_count(1)
    return page.url.rpartition("/")[2]


def see_result_arrive(grace: Tab, ada: Tab) -> None:
    """Nobody loads a page anew."""
    expect(ada.page.locator("#state .head")).to_contain_text("right · 10 of 10 points")
    expect(ada.page.locator("#results .warpbook-verdict")).to_contain_text("passed")
    row = grace.page.locator("#class tbody tr", has_text="ada")
    expect(row).to_have_class(re.compile("passed"))
    expect(grace.page.locator("[data-tally=passed]")).to_have_text("1")


def hand_in_elsewhere(ada: Tab) -> None:
    other = ada.page.context.new_page()
    other.goto(ada.home)
    other.get_by_role("link", name="Add two vectors").click()
    other.get_by_role("button", name="Hand in").click()
    other.wait_for_url(re.compile("/submissions/[0-9a-f]{20}$"))
    other.close()


def appeal(ada: Tab) -> None:
    """On the page that has shown the result come, and that draws itself anew."""
    page = ada.page
    note = page.get_by_label("What should be looked at")
    note.fill("It should be worth more.")
    # what was typed stays while parts of the page are drawn anew
    note.blur()
    hand_in_elsewhere(ada)
    expect(page.locator("#history tbody tr")).to_have_count(2)
    expect(note).to_have_value("It should be worth more.")
    page.get_by_role("button", name="Appeal").click()
    expect(page.get_by_text("Nobody has answered yet.")).to_be_visible()


def decide(grace: Tab, submission: str) -> None:
    page = grace.open("/appeals")
    page.get_by_label("Answer").fill("So it should.")
    page.get_by_label("Points, or nothing").fill("12")
    page.get_by_label("as a bonus").check()
    page.get_by_role("button", name="Answer").click()
    expect(page.get_by_text("Nothing to answer.")).to_be_visible()
    page.goto(f"{grace.home}/submissions/{submission}")
    changed = "points set to 12 of 10; before: 10"
    expect(page.get_by_text(changed)).to_be_visible()
    page.locator(".crumbs a", has_text="ada").click()
    expect(page.get_by_text("12 of 10, 2 of them bonus").first).to_be_visible()


def hide_and_release(grace: Tab, ada: Tab, submission: str) -> None:
    page = grace.open(f"/submissions/{submission}")
    page.locator(".crumbs a").first.click()
    page.get_by_role("button", name="Hide").click()
    expect(page.get_by_text("hidden from learners")).to_be_visible()
    seen = ada.open("")
    expect(seen.locator("tbody td.number").last).to_contain_text("not released yet")
    expect(seen.locator("#total")).to_have_text("0 of 0")
    ada.open(f"/submissions/{submission}")
    expect(seen.locator("#state")).to_contain_text("the marks are not released yet")
    expect(seen.locator("#results .card, #appeals .card")).to_have_count(0)
    page.get_by_role("button", name="Release").click()
    expect(page.get_by_text("Learners see marks and feedback.")).to_be_visible()


def see_points(ada: Tab) -> None:
    page = ada.open("")
    expect(page.get_by_text("set by your instructor")).to_be_visible()
    expect(page.locator("tbody tr .tag")).to_have_text(["passed", "open"])
    expect(page.locator("tbody td.number").last).to_contain_text("12 of 10")


def export(grace: Tab) -> None:
    page = grace.open("/data")
    with page.expect_download() as started:
        page.get_by_role("link", name="Grades").click()
    text = Path(started.value.path()).read_text()
    rows = {row["student_id"]: row for row in csv.DictReader(io.StringIO(text))}
    assert [rows[name]["score"] for name in ("ada", "bob")] == ["12", ""]
    assert [rows[name]["status"] for name in ("ada", "bob")] == [
        "graded",
        "not handed in",
    ]
    with page.expect_download() as started:
        page.get_by_role("link", name="Totals").click()
    text = Path(started.value.path()).read_text("utf-8-sig")
    by_name = {row["student_id"]: row for row in csv.DictReader(io.StringIO(text))}
    assert (by_name["ada"]["total"], by_name["ada"]["max_total"]) == ("12", "10")
    page.get_by_role("link", name="operate").click()
    page.get_by_role("button", name="Make a backup").click()
    expect(page.get_by_text(re.compile(r"^\S+\.db$"))).to_be_visible()


def look_through(tab: Tab, submission: str) -> None:
    """Nothing on any page keeps somebody from it who sees or moves less well."""
    is_staff = "grace" in tab.page.locator(".who").inner_text()
    paths = ["", f"/submissions/{submission}"]
    if is_staff:
        paths += ["/gpus", "/class", "/queue", "/people", "/appeals", "/log", "/data"]
        paths += ["/publish", "/publish?catalogue=matmul", "/../../hub"]
    paths += ["/../../notices"]
    for path in paths:
        page = tab.open(path)
        assert serious(page) == [], path
        assert beyond_a_phone(page) == [], path


def beyond_a_phone(page: Page) -> list[str]:
    """What makes a page wider than a phone; what scrolls by itself does not."""
    size = page.viewport_size
    page.set_viewport_size({"width": 360, "height": 740})
    wide: list[str] = page.evaluate(
        """() => document.documentElement.scrollWidth <= 360 ? [] :
        [...document.querySelectorAll('body *')]
            .filter(one => one.getBoundingClientRect().right > 360)
            .filter(one => !one.parentElement.closest('.card, .wide, pre'))
            .map(one => one.outerHTML.slice(0, 120))"""
    )
    page.set_viewport_size(size)
    return wide


def serious(page: Page) -> list[tuple[str, str, list[str]]]:
    """What axe finds on a page that keeps people from using it."""
    page.evaluate(AXE.read_text())
    report = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        (one["id"], one["help"], [node["html"][:200] for node in one["nodes"]])
        for one in report["violations"]
        if one["impact"] in ("serious", "critical")
    ]


def erase(grace: Tab) -> None:
    page = grace.open("/people")
    page.locator("#people a", has_text="Ada").click()
    page.get_by_text("Erase", exact=True).click()
    form = page.locator("form[data-api$='/erase']")
    form.get_by_label("Reason").fill("she asked for it")
    form.get_by_role("button", name="Erase for good").click()
    page.wait_for_url(re.compile("/people$"))
    expect(page.locator("#people tbody tr")).to_have_count(2)
    page = grace.open("/log")
    # who erased somebody, and why, is kept; what was written about her is not
    expect(page.get_by_text("she asked for it")).to_be_visible()
    assert "appeal upheld" not in page.content()

"""The gradebook in a browser: a selection is told, done once and undone."""

from __future__ import annotations

import msgspec
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.hub.service.browser import TIMEOUT_MS, chromium
from tests.hub.service.class_hub import COURSE, ClassHub
from tests.hub.service.conftest import World
from tests.hub.service.test_story import serious
from tests.programs import wait_for
from warpbook.class_hub_words import receipt_rows
from warpbook.hub_protocol import SubmissionState

HERE = f"courses/{COURSE}"
HOSTILE = "<img src=x onerror=alert(1)> see line 2"


def log_in(page: Page, hub: ClassHub, name: str) -> None:
    page.set_default_timeout(TIMEOUT_MS)
    page.on("dialog", lambda _: pytest.fail("a text of somebody's was run"))
    page.goto(f"{hub.url}hub/login")
    page.fill("#username_input", name)
    who = "staff" if name == "grace" else "learners"
    page.fill("#password_input", hub.passwords()[who])
    page.click("#login_submit")


def cell(page: Page, person: str) -> Locator:
    return page.locator(f"tr[data-person='{person}'] td:last-child")


def order(page: Page, action: str) -> Locator:
    """Have an action on the selection told."""
    form = page.locator("#order")
    form.locator("[name=action]").select_option(action)
    form.locator("[name=reason]").fill("strike")
    form.get_by_role("button", name="Preview").click()
    return page.locator("#preview")


def test_a_selection_is_told_and_done_once_and_undone(world: World) -> None:
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        log_in(page, world.hub, "grace")
        page.goto(f"{world.hub.service_url}{HERE}/gradebook")
        expect(cell(page, world.person)).to_contain_text("1 attempt")
        assert serious(page) == []
        # by keys alone: to Ada's mark, which Enter opens
        page.locator("#gradebook thead th").first.focus()
        for key in ("ArrowDown", "End", "Space"):
            page.keyboard.press(key)
        expect(page.locator("#selected")).to_have_text("Selected: 1 (learners: 1)")
        page.keyboard.press("Shift+ArrowDown")
        expect(page.locator("#selected")).to_have_text("Selected: 2 (learners: 2)")
        page.keyboard.press("?")
        expect(page.locator("#keys")).to_be_visible()
        page.keyboard.press("Escape")
        told = order(page, "excuse")
        expect(told.locator("tbody tr")).to_have_count(2)
        told.get_by_role("button", name="Do it").dblclick()
        expect(cell(page, world.person)).to_contain_text("excused")
        expect(page.get_by_text("2 changed")).to_have_count(1)
        page.get_by_role("button", name="Undo").click()
        expect(cell(page, world.person)).not_to_contain_text("excused")
        # who has no points is last, in either order
        for _ in range(2):
            page.locator("#gradebook thead button").last.click()
            first = page.locator("#gradebook tbody tr").first
            expect(first).to_have_attribute("data-person", world.person)
        # what is not shown is not selected
        page.locator("#find").fill("tuesday")
        page.locator("#select-shown").click()
        expect(page.locator("#selected")).to_have_text("Selected: 1 (learners: 1)")
        page.locator("#state").select_option("graded")
        expect(page.locator("#selected")).to_have_text("Nothing is selected")
        page.set_viewport_size({"width": 360, "height": 700})
        wide = "document.documentElement.scrollWidth > innerWidth"
        assert page.evaluate(wide) is False
        page.locator("#find").fill("")
        page.locator("#gradebook thead th").first.focus()
        for key in ("ArrowDown", "End", "Enter"):
            page.keyboard.press(key)
        page.wait_for_url(f"**/submissions/{world.submission}")
        feedback(page, world)


def test_a_screen_reader_is_told_rows_that_were_never_in_view(world: World) -> None:
    def of_a_large_class(route: Route) -> None:
        answer = route.fetch()
        page = answer.text()
        rows = page.split("<tbody>")[1].split("</tbody>")[0]
        route.fulfill(response=answer, body=page.replace(rows, 200 * rows, 1))

    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        log_in(page, world.hub, "grace")
        page.route("**/gradebook", of_a_large_class)
        page.goto(f"{world.hub.service_url}{HERE}/gradebook")
        devtools = page.context.new_cdp_session(page)

        def named_rows() -> int:
            nodes = devtools.send("Accessibility.getFullAXTree")["nodes"]
            roles = [node.get("role", {}).get("value") for node in nodes]
            return roles.count("rowheader")

        wait_for("names of all rows", lambda: named_rows() == 400 or None, 120)


def feedback(page: Page, world: World) -> None:
    """Comment on a line and give points: its learner sees both once they are shown."""
    grace, ada = world.people["grace"], world.people["ada"]
    lab, work = world.path(f"{HERE}/labs/{{lab}}"), world.submission
    page.get_by_role("button", name="Comment on line 2", exact=True).click()
    page.keyboard.type(HOSTILE)
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator("#L2 .comment")).to_contain_text(HOSTILE)
    page.goto(f"{world.hub.service_url}{lab}/settings")
    form = page.locator("#rubric")
    form.get_by_role("button", name="Another row").click()
    for row, (title, points) in enumerate((("Style", "4"), ("Reasons", "2"))):
        form.get_by_label("Row", exact=True).nth(row).fill(title)
        form.get_by_label("points at most").nth(row).fill(points)
    form.get_by_role("button", name="Set the rubric").click()
    expect(form.locator("[value=Reasons]")).to_have_count(1)
    page.goto(f"{world.hub.service_url}{HERE}/submissions/{work}")
    page.get_by_label("Style, of 4").fill("3")
    page.get_by_role("button", name="Give these points").click()
    expect(page.get_by_label("Style, of 4")).to_have_value("3")
    expect(page.locator("#state .head")).to_contain_text("13 of 16")
    assert serious(page) == []
    labs = {"action": "hide", "cells": {world.lab: None}, "reason": "x"}
    grace.done(f"{HERE}/gradebook", {**labs, "request": "h1"})
    for is_shown in (False, True):
        text = ada.page(f"{HERE}/submissions/{work}").text
        assert ("see line 2" in text, "3 of 4" in text) == (is_shown, is_shown)
        assert "<img" not in text
        # so do notebook and terminal
        answer = ada.get(f"{HERE}/submissions/{work}").content
        state = msgspec.json.decode(answer, type=SubmissionState)
        rows = receipt_rows(state.receipt, state)
        told = ("comment", f"line 2: {HOSTILE}"), ("rubric", "Style: 3 of 4")
        assert [one in rows for one in told] == [is_shown] * 2
        released = {**labs, "action": "release", "request": "r1"}
        grace.done(f"{HERE}/gradebook", released)


def test_an_assistant_acts_on_their_own_section_alone(world: World) -> None:
    una, grace = world.people["una"], world.people["grace"]
    page = una.page(f"{HERE}/gradebook").text
    assert world.person not in page and "Bob" in page
    body = {"action": "excuse", "reason": "x", "request": "a1", "is_preview": True}
    theirs = {**body, "cells": {world.lab: [world.person]}}
    assert una.post(f"{HERE}/gradebook", theirs).status_code == 404
    own = una.done(f"{HERE}/gradebook", {**body, "cells": {world.lab: None}})
    assert [line["name"] for line in own["lines"]] == ["Bob Noyce"]
    hide = {**body, "action": "hide", "cells": {world.lab: None}}
    assert una.post(f"{HERE}/gradebook", hide).status_code == 403
    done = {**body, "cells": {world.lab: None}, "is_preview": False, "request": "g1"}
    grace.done(f"{HERE}/gradebook", done)
    undo = {"request": "g1"}
    assert una.post(f"{HERE}/gradebook/undo", undo).status_code == 409
    assert grace.done(f"{HERE}/gradebook/undo", undo)["changed"] == 2

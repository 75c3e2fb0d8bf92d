"""The first class, played in a browser as its tutorial says."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.hub.service.browser import TIMEOUT_MS, chromium
from tests.hub.service.class_hub import ClassHub, class_hub
from tests.programs import ROOT

TUTORIALS = ROOT / "docs" / "tutorials"


class Script:
    """A tutorial, whose bold words are what is pressed or read, one after another."""

    def __init__(self, name: str) -> None:
        text = (TUTORIALS / name).read_text(encoding="utf-8")
        self.words = re.findall(r"\*\*(.+?)\*\*", text)
        self.blocks = re.findall(r"^ *```\w*\n(.*?)^ *```$", text, re.M | re.S)

    def next(self, words: str) -> str:
        assert self.words.pop(0) == words
        return words


def logged_in(browser: Browser, hub: ClassHub, name: str, role: str) -> Page:
    page = browser.new_context().new_page()
    page.set_default_timeout(TIMEOUT_MS)
    page.goto(hub.url)
    page.fill("#username_input", name)
    page.fill("#password_input", hub.passwords()[role])
    page.click("#login_submit")
    page.wait_for_url("**/services/warpbook/courses/*")
    return page


def test_a_first_class_goes_as_the_tutorial_says(tmp_path: Path) -> None:
    script = Script("first-class.md")
    (roster,) = (one for one in script.blocks if "username,first_name" in one)
    # the last of its sources is right
    source = [one for one in Script("first-lab.md").blocks if "__global__" in one][-1]
    with class_hub(tmp_path) as hub, chromium() as browser:
        grace = logged_in(browser, hub, "grace", "staff")
        grace.get_by_role("link", name=script.next("People"), exact=True).click()
        form = grace.locator(".card", has_text=script.next("Import a roster")).locator(
            "form[data-roster]"
        )
        form.locator("textarea").fill(textwrap.dedent(roster))
        show = script.next("Show what it would change")
        form.get_by_role("button", name=show).click()
        expect(form.get_by_role("status")).to_contain_text("would be added: 1 (ada)")
        form.get_by_role("button", name=script.next("Import")).click()
        expect(grace.locator("#people")).to_contain_text("Lovelace")
        grace.locator("nav a").first.click()
        grace.get_by_role("link", name=script.next("Publish a lab")).first.click()
        row = grace.locator("tr", has=grace.locator("[href$='=vector-add']"))
        row.get_by_role("link").click()
        for date in ("Opens", "Due", "Closes"):
            expect(grace.get_by_label(script.next(date)).first).to_have_value(
                re.compile(r"\d{4}-")
            )
        grace.get_by_role("button", name=script.next("Publish"), exact=True).click()
        grace.wait_for_url("**/labs/*")

        ada = logged_in(browser, hub, "ada", "learners")
        ada.locator("main table a").first.click()
        ada.get_by_label(script.next("or the source itself")).fill(source)
        ada.get_by_role("button", name=script.next("Hand in")).click()
        ada.wait_for_url("**/submissions/*")
        expect(ada.locator("#state .head")).to_contain_text("right · 10 of 10 points")

        menu = grace.locator("nav")
        menu.get_by_role("link", name=script.next("Class")).click()
        expect(grace.locator("#class tbody tr")).to_contain_text("passed")
        grace.locator("#class tbody a").click()
        expect(grace.locator("main")).to_contain_text("10 of 10")
        for page in ("Queue", "Data"):
            menu.get_by_role("link", name=script.next(page)).click()
            expect(grace.locator("h1")).to_have_text(re.compile(f"{page}|job"))

        # it came while her page was open
        expect(ada.locator("#unread")).to_contain_text("1 unread")
        ada.get_by_role("link", name=script.next("notices")).click()
        expect(ada.locator("#notices")).to_contain_text("was graded")
        ada.get_by_role("button", name="Mark all as read").click()
        expect(ada.locator("#unread")).not_to_contain_text("unread")
        expect(ada.get_by_text(script.next("By mail"))).to_be_visible()
    assert script.words == []

"""A learner is asked about their own source, and the instructor sees the answers."""

from __future__ import annotations

import re
import time

from playwright.sync_api import Page, expect

from tests.hub.service.browser import chromium
from tests.hub.service.class_hub import COURSE, GOOD, publish
from tests.hub.service.conftest import World
from tests.hub.service.test_gradebook import log_in
from tests.programs import wait_for

HERE = f"courses/{COURSE}"
RIGHT = re.compile("right$")


def test_questions_are_turned_on_asked_answered_and_seen(world: World) -> None:
    ada, bob, grace = (world.people[name] for name in ("ada", "bob", "grace"))
    lab = publish(grace, int(time.time() * 1000), "tiled-transpose")
    transpose = GOOD.parents[4] / "memory/tiled_transpose/solutions/correct/padded.cu"
    with chromium() as browser:
        teacher = browser.new_page()
        log_in(teacher, world.hub, "grace")
        teacher.goto(f"{world.hub.service_url}{HERE}/labs/{lab}/settings")
        box = teacher.locator("[name=asks_questions]")
        expect(box).not_to_be_checked()
        box.check()
        with teacher.expect_navigation():
            teacher.get_by_role("button", name="Change", exact=True).click()
        body = {"source": f"// <script>alert(1)</script>\n{transpose.read_text()}"}
        receipt = ada.done(f"{HERE}/labs/{lab}/submissions", body)
        path = f"{HERE}/submissions/{receipt['submission']}"

        def asked() -> list | None:
            return ada.get(f"{path}/questions").json() or None

        questions = wait_for("the questions", asked, 120)
        assert [one["right"] for one in questions] == [None] * len(questions)
        assert not any(one["because"] for one in questions)
        # nothing of the card says it, and staff know
        assert "Most work by line" not in ada.get(f"{path}/evidence").text
        truth = grace.get(f"{path}/questions").json()
        assert all(one["right"] is not None for one in truth)
        # others neither see nor answer them
        answer = {"number": 1, "choice": 0}
        assert bob.post(f"{path}/questions", answer).status_code == 404
        assert grace.post(f"{path}/questions", answer).status_code == 409
        learner = browser.new_context(viewport={"width": 360, "height": 700}).new_page()
        log_in(learner, world.hub, "ada")
        learner.goto(f"{world.hub.service_url}{path}")
        for number, question in enumerate(truth, 1):
            choose(learner, question["choices"][question["right"]], number)
        wide = "document.documentElement.scrollWidth > innerWidth"
        assert learner.evaluate(wide) is False
        teacher.goto(f"{world.hub.service_url}{path}")
        expect(teacher.locator("#questions .tag", has_text="answered")).to_have_count(
            len(truth)
        )
    told = ada.get(f"{path}/questions").json()
    assert [one["choice"] for one in told] == [one["right"] for one in truth]
    wrong = {"number": 1, "choice": (told[0]["right"] + 1) % 2}
    assert ada.post(f"{path}/questions", wrong).status_code == 409
    # they give no points
    assert ada.get(path).json()["result"]["points"]["points"] == 10


def choose(page: Page, words: str, answered: int) -> None:
    page.locator("#questions").get_by_role("button", name=words, exact=True).click()
    expect(page.locator("#questions .tag", has_text=RIGHT)).to_have_count(answered)

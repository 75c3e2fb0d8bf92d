"""What an instructor looks for on the first day, in a browser and on a phone."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.hub.service.browser import TIMEOUT_MS, chromium
from tests.hub.service.class_hub import COURSE, GOOD
from tests.hub.service.conftest import World
from tests.hub.service.test_gradebook import log_in
from tests.hub.service.test_story import AXE

HERE = f"courses/{COURSE}"
IS_WIDE = "document.documentElement.scrollWidth > innerWidth"
#: a field of a form that its card does not hold
OUTSIDE = """[...document.querySelectorAll('.card fieldset')].some(
    field => field.getBoundingClientRect().right > field.parentElement
        .closest('.card').getBoundingClientRect().right)"""
ALL = """axe.run(document).then(
    all => all.violations.map(one => [one.id, one.nodes[0].html]))"""


def test_the_next_term_is_shown_and_begun_and_gone_to(world: World) -> None:
    with chromium() as browser:
        page = browser.new_page()
        log_in(page, world.hub, "grace")
        page.goto(f"{world.hub.service_url}{HERE}/data")
        form = page.locator("form[data-api$=next-term]")
        form.get_by_label("Id of the new course").fill("next-year")
        form.get_by_role("button", name="Begin").click()
        expect(form.locator(".answer")).to_contain_text("Vector add")
        assert page.url.endswith("/data")
        form.get_by_label("only say what would be begun").uncheck()
        form.get_by_role("button", name="Begin").click()
        page.wait_for_url("**/courses/next-year")
        expect(page.locator("main table")).to_contain_text("Vector add")
        # both have one title
        page.goto(world.hub.service_url)
        expect(page.locator("main")).to_contain_text("next-year, instructor")


def test_feedback_is_noticed_and_read_where_it_is(world: World) -> None:
    work = f"{HERE}/submissions/{world.submission}"
    note = {"line": 1, "note": "Why so many blocks?"}
    world.people["grace"].done(f"{work}/comments", note)
    with chromium() as browser:
        page = browser.new_page()
        log_in(page, world.hub, "ada")
        page.goto(f"{world.hub.service_url}notices")
        page.locator("#notices").get_by_text("There are comments or points").click()
        page.wait_for_url(f"**/{work}")
        expect(page.locator("#L1 .comment")).to_contain_text("Why so many blocks?")


def test_no_page_is_wider_than_a_phone_and_axe_finds_nothing(world: World) -> None:
    bob = world.people["bob"]
    path = world.path(f"{HERE}/labs/{{lab}}/submissions")
    copied = bob.done(path, {"source": GOOD.read_text()})["submission"]
    pages = ("{c}/as/{person}", "{c}/as/{person}/labs/{lab}", "{c}/as-new/{section}")
    pair = f"?first={world.submission}&second={copied}"
    pages += ("{c}/labs/{lab}/settings", "{c}/people/{person}", "{c}/labs/{lab}/pair")
    with chromium() as browser:
        for scheme in ("light", "dark"):
            page = browser.new_page(
                color_scheme=scheme,  # type: ignore[arg-type]
                viewport={"width": 360, "height": 700},
            )
            page.set_default_timeout(TIMEOUT_MS)
            log_in(page, world.hub, "grace")
            for one in pages:
                path = world.path(one.replace("{c}", HERE))
                query = pair if one.endswith("pair") else ""
                page.goto(f"{world.hub.service_url}{path}{query}")
                assert page.evaluate(IS_WIDE) is False, path
                assert page.evaluate(OUTSIDE) is False, path
                page.evaluate(AXE.read_text())
                assert page.evaluate(ALL) == [], (scheme, path)

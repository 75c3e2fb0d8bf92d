"""What an instructor looks for on the first day, in a browser and on a phone."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from playwright.sync_api import expect

from tests.hub.service.browser import TIMEOUT_MS, chromium
from tests.hub.service.class_hub import COURSE, GOOD, TEACH
from tests.hub.service.conftest import World
from tests.hub.service.test_gradebook import log_in
from tests.hub.service.test_story import AXE
from tests.programs import environment

HERE = f"courses/{COURSE}"
IS_WIDE = "document.documentElement.scrollWidth > innerWidth"
CORE = Path(__file__).parents[1] / "core"
MOODLE = CORE / "rosters" / "moodle.csv"
GRADEBOOK = CORE / "nbgrader" / "gradebook.sql"
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


def test_how_a_file_was_read_is_shown_and_can_be_changed(world: World) -> None:
    with chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        log_in(page, world.hub, "grace")
        page.goto(f"{world.hub.service_url}{HERE}/people")
        form = page.locator("form[data-roster]")
        before = page.locator("#people tbody tr").count()
        # as Excel writes it on Windows, and with nothing that says who logs in as what
        form.locator("input[type=file]").set_input_files(MOODLE)
        expect(form.get_by_text("As Moodle exports it")).to_be_visible()
        expect(form.get_by_text("do not say which encoding")).to_contain_text("Müller")
        expect(form.get_by_text("Line 4: no learner: Trainer/in")).to_be_visible()
        problem = form.get_by_text("Choose the column that has the user names")
        expect(problem).to_be_visible()
        go = form.get_by_role("button", name="Import")
        expect(go).to_have_count(0)
        expect(form.get_by_text("would be added")).to_have_count(0)
        form.get_by_label("The user name is in").select_option("ID-Nummer")
        expect(form.get_by_role("cell", name="Schäfer")).to_be_visible()
        expect(form.get_by_text("would be added: 2")).to_be_visible()
        form.get_by_label("The section is in").select_option("no column")
        expect(form.get_by_text("Not used: Gruppen")).to_be_visible()
        form.get_by_label("Encoding").select_option("cp1250")
        expect(form.get_by_role("cell", name="Schäfer")).to_be_visible()
        assert page.locator("#people tbody tr").count() == before
        form.get_by_label("or its lines").fill("username,last_name\nada,Byron\n")
        expect(form.get_by_label("Encoding")).to_have_count(0)


def test_a_terminal_shows_the_same(world: World) -> None:
    env = environment(
        WARPBOOK_HUB_URL=world.hub.url,
        WARPBOOK_HUB_TOKEN=world.people["grace"].token(TEACH),
    )
    command = [sys.executable, "-m", "warpbook.cli.main", "hub", "roster", str(MOODLE)]
    command += ["--course", COURSE]
    asked = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert asked.returncode == 1 and "ID-Nummer" in asked.stdout, asked.stderr
    command += ["--column", "username=id-nummer", "--column", "section="]
    asked = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert asked.returncode == 0, asked.stderr
    assert "username    from `ID-Nummer`: u1001, u1002" in asked.stdout
    assert "would be added: 2 (u1001, u1002)" in asked.stdout
    assert "Nothing was changed." in asked.stdout


def test_course_of_nbgrader_is_shown_and_then_taken_over(
    world: World, tmp_path: Path
) -> None:
    grace = world.people["grace"]
    with closing(sqlite3.connect(tmp_path / "gradebook.db")) as gradebook:
        gradebook.executescript(GRADEBOOK.read_text("utf-8"))
    env = environment(
        WARPBOOK_HUB_URL=world.hub.url, WARPBOOK_HUB_TOKEN=grace.token(TEACH)
    )
    command = [sys.executable, "-m", "warpbook.cli.main", "hub", "nbgrader"]
    command += [str(tmp_path), "--course", COURSE]
    before = grace.get(f"{HERE}/labs").json()
    shown = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    assert "`ps1`: new, 5 points, cells graded by tests 2" in shown.stdout
    assert "`ps3`: REFUSED, of eve a cell waits for its grade by hand" in shown.stdout
    assert "Nothing was changed." in shown.stdout
    assert grace.get(f"{HERE}/labs").json() == before
    command += ["--import"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert "marks written: 4" in done.stdout, done.stderr
    [lab] = [
        one["id"] for one in grace.get(f"{HERE}/labs").json() if one["title"] == "ps1"
    ]
    here = f"{HERE}/labs/{lab}"
    assert "its marks come from nbgrader" in grace.page(here).text
    assert "come from nbgrader" in grace.page(f"{here}/settings").text
    # learners see the lab, and its marks once they are released
    ada = world.people["ada"]
    own = {one["id"]: one for one in ada.get(f"{HERE}/labs").json()}[lab]
    assert (own["points"], own["is_open"]) == (None, False)
    grace.done(f"{here}/release", {"is_hidden": False})
    own = {one["id"]: one for one in ada.get(f"{HERE}/labs").json()}[lab]
    assert own["points"] == 5
    assert "marks from nbgrader" in ada.page(HERE).text

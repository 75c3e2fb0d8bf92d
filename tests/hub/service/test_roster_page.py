"""A roster that is chosen on the page is shown as it is before it changes anybody."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from playwright.sync_api import expect

from tests.hub.service.browser import TIMEOUT_MS, chromium
from tests.hub.service.class_hub import COURSE, TEACH
from tests.hub.service.conftest import World
from tests.programs import environment

CORE = Path(__file__).parents[1] / "core"
MOODLE = CORE / "rosters" / "moodle.csv"
GRADEBOOK = CORE / "nbgrader" / "gradebook.sql"


def test_how_a_file_was_read_is_shown_and_can_be_changed(world: World) -> None:
    with chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(f"{world.hub.url}hub/login")
        page.fill("#username_input", "grace")
        page.fill("#password_input", world.hub.passwords()["staff"])
        page.click("#login_submit")
        page.goto(f"{world.hub.service_url}courses/{COURSE}/people")
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
    before = grace.get(f"courses/{COURSE}/labs").json()
    shown = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0, shown.stderr
    assert "`ps1`: new, 5 points, cells graded by tests 2" in shown.stdout
    assert "`ps3`: REFUSED, of eve a cell waits for its grade by hand" in shown.stdout
    assert "Nothing was changed." in shown.stdout
    assert grace.get(f"courses/{COURSE}/labs").json() == before
    command += ["--import"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert "marks written: 4" in done.stdout, done.stderr
    [lab] = [
        one["id"]
        for one in grace.get(f"courses/{COURSE}/labs").json()
        if one["title"] == "ps1"
    ]
    here = f"courses/{COURSE}/labs/{lab}"
    assert "its marks come from nbgrader" in grace.page(here).text
    assert "come from nbgrader" in grace.page(f"{here}/settings").text
    # learners see the lab, and its marks once they are released
    ada = world.people["ada"]
    own = {one["id"]: one for one in ada.get(f"courses/{COURSE}/labs").json()}[lab]
    assert (own["points"], own["is_open"]) == (None, False)
    grace.done(f"{here}/release", {"is_hidden": False})
    own = {one["id"]: one for one in ada.get(f"courses/{COURSE}/labs").json()}[lab]
    assert own["points"] == 5
    assert "marks from nbgrader" in ada.page(f"courses/{COURSE}").text

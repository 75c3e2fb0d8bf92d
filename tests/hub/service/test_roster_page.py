"""A roster that is chosen on the page is shown as it is before it changes anybody."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from playwright.sync_api import expect

from tests.hub.service.browser import TIMEOUT_MS, chromium
from tests.hub.service.class_hub import COURSE, TEACH
from tests.hub.service.conftest import World
from tests.programs import environment

MOODLE = Path(__file__).parents[1] / "core" / "rosters" / "moodle.csv"


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
        form.get_by_label("The user name is in").select_option("ID-Nummer")
        expect(form.get_by_role("cell", name="Schäfer")).to_be_visible()
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

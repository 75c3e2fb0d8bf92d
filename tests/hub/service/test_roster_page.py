"""A roster that is chosen on the page is shown as it is before it changes anybody."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from tests.hub.service.browser import TIMEOUT_MS, chromium
from tests.hub.service.class_hub import COURSE
from tests.hub.service.conftest import World

MOODLE = "Username,Surname,Email address,City\nada,Müller,ada@x.org,Zürich\n"


def test_a_file_in_another_encoding_is_named_and_offered(
    world: World, tmp_path: Path
) -> None:
    file = tmp_path / "excel.csv"
    file.write_bytes(MOODLE.encode("cp1252"))
    with chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(f"{world.hub.url}hub/login")
        page.fill("#username_input", "grace")
        page.fill("#password_input", world.hub.passwords()["staff"])
        page.click("#login_submit")
        page.goto(f"{world.hub.service_url}courses/{COURSE}/people")
        form = page.locator(f"form[data-api='courses/{COURSE}/roster']")
        page.once("dialog", lambda dialog: dialog.dismiss())
        form.locator("input[type=file]").set_input_files(file)
        expect(form.get_by_role("alert")).to_contain_text("Line 2")
        expect(form.locator("textarea")).to_have_value("")
        page.once("dialog", lambda dialog: dialog.accept())
        form.locator("input[type=file]").set_input_files(file)
        expect(form.locator("textarea")).to_have_value(MOODLE)
        form.get_by_role("button", name="Import").click()
        expect(form.locator(".answer")).to_contain_text("unused columns: 1 (City)")

"""A lab is handed in from a laptop or a notebook, and its learner is asked about it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.hub.service.browser import TIMEOUT_MS, chromium
from tests.hub.service.class_hub import COURSE, GOOD, SUBMIT, publish
from tests.hub.service.conftest import World
from tests.hub.service.test_gradebook import log_in
from tests.programs import ROOT, environment, wait_for
from warpbook.server.labs.labs_routes import own_courses


def submit(world: World, home: Path, *options: str, **env: str):
    folders = [str(ROOT / name) for name in ("extension", "labs", "monitors")]
    given = environment(HOME=str(home), PYTHONPATH=os.pathsep.join(folders), **env)
    command = [sys.executable, "-m", "warpbook.cli.main", "labs", "submit"]
    return subprocess.run(
        [*command, "vector-add", *options],
        cwd=home,
        env=given,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_laptop_hands_in_with_a_token(world: World, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(world.people["bob"].token(SUBMIT))
    source = tmp_path / "mine.cu"
    source.write_text(GOOD.read_text())
    options = [str(source), "--hub", world.hub.url, "--token-file", str(token)]
    token.chmod(0o644)
    refused = submit(world, tmp_path, *options)
    assert (refused.returncode, "chmod 600" in refused.stderr) == (1, True)
    token.chmod(0o600)
    done = submit(world, tmp_path, *options, "--wait", "--json", "--replace")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["state"]["result"]["points"]["points"] == 10
    path = f"courses/{COURSE}/submissions/{answer['receipt']['submission']}"
    assert world.people["bob"].get(path).json()["receipt"] == answer["receipt"]
    # it is his, and not ada's
    assert world.people["ada"].get(path).status_code == 404


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--hub", "ftp://x"], "no address of a hub"), (["--hub"], "Say which hub")],
)
def test_what_can_not_be_reached_is_told(
    world: World, tmp_path: Path, options: list[str], words: str
) -> None:
    source = tmp_path / "mine.cu"
    source.write_text("// mine")
    done = submit(world, tmp_path, str(source), *options, WARPBOOK_HUB_TOKEN="x")
    assert done.returncode == 1
    assert words in done.stderr


def test_notebook_of_a_named_server_hands_in(world: World, tmp_path: Path) -> None:
    """What runs in the server has its token, which may hand in and nothing more."""
    ada = world.people["ada"]
    ada.start_server("two")

    def server() -> psutil.Process | None:
        for process in psutil.Process(world.hub.supervisor.pid).children(True):
            with contextlib.suppress(psutil.Error):
                if "jupyterhub.singleuser" in process.cmdline():
                    return process
        return None

    given = wait_for("her server", server).environ()
    script = f"""
import warpbook.labs
from pathlib import Path
lab = warpbook.labs.open("vector-add")
print(lab.submit())
lab.source.write_text(Path({str(GOOD)!r}).read_text())
handed_in = lab.submit(replace=True)
print(handed_in)
print(handed_in.receipt.submission)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**given, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "nothing was handed in" in done.stdout
    submission = done.stdout.strip().splitlines()[-1]
    path = f"courses/{COURSE}/submissions/{submission}"
    assert ada.get(path).json()["receipt"]["submission"] == submission


def test_lab_browser_shows_the_course_of_the_hub(world: World) -> None:
    """In JupyterLab: a learner sees what is published, staff their pages too."""
    with chromium() as browser:
        for name, role in (("bob", "learner"), ("grace", "instructor")):
            labs = lab_browser_of(world, browser.new_page(), name)
            course = labs.get_by_role("region", name="Course GPU programming")
            expect(course.locator("h3")).to_contain_text(role)
            lab = course.locator(".wb-lab", has_text="Vector add")
            expect(lab).to_contain_text("open · due ")
            expect(lab).to_contain_text(re.compile("of 10 points|not handed in"))
            url = f"{world.hub.base_url}services/warpbook/courses/{COURSE}"
            link = lab.get_by_role("link", name="Vector add")
            expect(link).to_have_attribute("href", f"{url}/labs/{world.lab}")
            queue = course.get_by_role("link", name="Queue")
            expect(queue).to_have_count(1 if role == "instructor" else 0)
            expect(lab.get_by_role("button", name="Open the notebook")).to_be_visible()


def lab_browser_of(world: World, page: Page, name: str) -> Locator:
    """Log somebody in, and open the lab browser in their JupyterLab."""
    page.set_default_timeout(TIMEOUT_MS)
    password = world.hub.passwords()["staff" if name == "grace" else "learners"]
    page.goto(f"{world.hub.url}hub/login?next={world.hub.base_url}hub/spawn")
    page.fill("#username_input", name)
    page.fill("#password_input", password)
    page.click("#login_submit")
    page.locator(".jp-LauncherCard", has_text="GPU labs").click()
    return page.locator(".wb-labs")


def test_next_lab_of_a_course_is_an_open_one_without_a_submission(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def next_lab(person: str) -> str | None:
        monkeypatch.setenv("JUPYTERHUB_API_TOKEN", world.people[person].token(SUBMIT))
        return own_courses().next_lab

    monkeypatch.setenv("WARPBOOK_HUB_URL", world.hub.url)
    assert next_lab("ada") is None
    publish(world.people["grace"], int(time.time() * 1000), "area-codes")
    assert next_lab("ada") == "area-codes"
    assert next_lab("grace") is None


def test_questions_are_turned_on_asked_answered_and_seen(world: World) -> None:
    ada, bob, grace = (world.people[name] for name in ("ada", "bob", "grace"))
    lab = publish(grace, int(time.time() * 1000), "tiled-transpose")
    transpose = GOOD.parents[4] / "memory/tiled_transpose/solutions/correct/padded.cu"
    with chromium() as browser:
        teacher = browser.new_page()
        log_in(teacher, world.hub, "grace")
        teacher.goto(f"{world.hub.service_url}courses/{COURSE}/labs/{lab}/settings")
        box = teacher.locator("[name=asks_questions]")
        expect(box).not_to_be_checked()
        box.check()
        with teacher.expect_navigation():
            teacher.get_by_role("button", name="Change", exact=True).click()
        body = {"source": f"// <script>alert(1)</script>\n{transpose.read_text()}"}
        receipt = ada.done(f"courses/{COURSE}/labs/{lab}/submissions", body)
        path = f"courses/{COURSE}/submissions/{receipt['submission']}"

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
    expect(
        page.locator("#questions .tag", has_text=re.compile("right$"))
    ).to_have_count(answered)

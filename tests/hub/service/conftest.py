"""One hub with a small class, for the tests that do not end it.

With `WARPBOOK_TEST_DATABASE=postgres` all hubs of these tests run on PostgreSQL.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.hub.postgres import DEFAULT_DATABASE, PostgresServer
from tests.hub.service import class_hub as class_hubs
from tests.hub.service.class_hub import (
    COURSE,
    GOOD,
    ROSTER,
    ClassHub,
    Visitor,
    class_hub,
    publish,
)
from tests.programs import wait_for
from warpbook_hub.course.courses import Course
from warpbook_hub.database.hub_database import HubDatabase
from warpbook_hub.running.begin import begin_course


@dataclass
class World:
    """A course with a graded submission of ada's and an appeal about it."""

    hub: ClassHub
    people: dict[str, Visitor]
    lab: str
    submission: str
    job: str
    appeal: str
    person: str
    grader: str
    grader_token: str
    section: str

    def path(self, pattern: str) -> str:
        ids = {
            "course": COURSE,
            "lab": self.lab,
            "submission": self.submission,
            "job": self.job,
            "appeal": self.appeal,
            "person": self.person,
            "grader": self.grader,
            "section": self.section,
        }
        return pattern.format(**ids)


@pytest.fixture(scope="session", autouse=True)
def database(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where hubs of these tests keep their courses."""
    with pytest.MonkeyPatch.context() as patches:
        if DEFAULT_DATABASE == "postgres":
            server: PostgresServer = request.getfixturevalue("postgres")
            patches.setattr(class_hubs, "prepare", server.use_for)
        yield


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClassHub]:
    """A hub that is not at the root of its address, with another course of heidi's."""
    folder = tmp_path_factory.mktemp("hub")
    path = folder / "data/course/hub.db"
    class_hubs.prepare(path)
    database = HubDatabase(path)
    with database.write() as connection:
        begin_course(connection, 1, Course("other", "Another"), ["heidi"], [])
    database.close()
    with class_hub(folder, base_url="/x/y/", operator="opal") as running:
        yield running


@pytest.fixture(scope="module")
def world(hub: ClassHub) -> World:
    names = ("grace", "ada", "bob", "tim", "una", "olga")
    people = {name: Visitor(hub, name).log_in() for name in names}
    for name in ("heidi", "opal"):
        people[name] = Visitor(hub, name).log_in(is_staff=True)
    opal = people["opal"]
    grace, ada = people["grace"], people["ada"]
    course = f"courses/{COURSE}"
    changes = grace.done(f"{course}/roster", {"csv": ROSTER})
    assert changes["added"] == ["ada", "bob"]
    for name, section in (("tim", "monday"), ("una", "tuesday")):
        body = {"username": name, "role": "assistant", "section": section}
        grace.done(f"{course}/staff", body)
    lab = publish(grace, int(time.time() * 1000))
    source = f"// </pre><script>alert(1)</script>\n{GOOD.read_text()}"
    receipt = ada.done(f"{course}/labs/{lab}/submissions", {"source": source})
    submission = receipt["submission"]

    def graded() -> dict | None:
        state = ada.get(f"{course}/submissions/{submission}").json()
        return state if state["state"] == "graded" else None

    state = wait_for("the result", graded, 120)
    assert state["result"]["facts"]["verdict"] == "right"
    job = state["result"]["job"]
    appeal = ada.done(f"{course}/jobs/{job}/appeal", {"note": "<img src=x onerror=a>"})
    grader_token = opal.done("hub/graders", {"name": "spare"})["token"]
    people["grader"] = Visitor(hub, token=grader_token)
    people["nobody"] = Visitor(hub)
    page = grace.page(f"{course}/class").text
    person = page.split('id="row-', 1)[1].split('"', 1)[0]
    assert "ada" in page.split(f'id="row-{person}"', 1)[1].split("</tr>")[0]
    spare = opal.page("hub").text.split("<h3>spare", 1)[1]
    grader = spare.split("/graders/", 1)[1].split("/", 1)[0]
    (section,) = re.findall(
        r'as-new/([0-9a-z]+)">section monday', grace.page(course).text
    )
    return World(
        hub,
        people,
        lab,
        submission,
        job,
        appeal["appeal"],
        person,
        grader,
        grader_token,
        section,
    )

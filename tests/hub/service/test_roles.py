"""Who is what in a course: appeals by section, and sessions from before a change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.hub.service.class_hub import (
    COURSE,
    GOOD,
    TEACH,
    ClassHub,
    Visitor,
    class_hub,
    publish,
)
from tests.hub.service.test_live import closing_code, connect, hear
from tests.programs import wait_for

#: red is a team of two sections
ROSTER = """username,section,team
ada,monday,red
bob,tuesday,red
cyd,tuesday,
dan,wednesday,
"""
HERE = f"courses/{COURSE}"


class TeamClass(NamedTuple):
    """A course with an assistant for each section, and a lab of teams."""

    hub: ClassHub
    people: dict[str, Visitor]
    lab: str

    def graded(self, name: str) -> str:
        """Hand in as somebody, and give the job of the result."""
        path = f"{HERE}/labs/{self.lab}/submissions"
        source = f"// {name}\n{GOOD.read_text()}"
        person = self.people[name]
        submission = person.done(path, {"source": source})["submission"]

        def result() -> str | None:
            state = person.get(f"{HERE}/submissions/{submission}").json()
            return state["result"]["job"] if state["state"] == "graded" else None

        return wait_for("a result", result, 120)


@pytest.fixture(scope="module")
def team_class(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamClass]:
    with class_hub(tmp_path_factory.mktemp("hub")) as hub:
        # all of them have their cookies before anybody has a role
        names = ("grace", "ada", "bob", "cyd", "tim", "una", "vic", "zoe")
        people = {name: Visitor(hub, name).log_in() for name in names}
        grace = people["grace"]
        grace.done(f"{HERE}/roster", {"csv": ROSTER})
        sections = {"tim": "monday", "una": "tuesday", "vic": "wednesday"}
        for name, section in sections.items():
            make_staff(grace, name, section)
        lab = publish(grace, int(time.time() * 1000), is_team_work=True)
        yield TeamClass(hub, people, lab)


def make_staff(grace: Visitor, name: str, section: str) -> str:
    body = {"username": name, "role": "assistant", "section": section}
    person: str = grace.done(f"{HERE}/staff", body)["person"]
    return person


def may_answer(visitor: Visitor, appeal: str) -> bool:
    """Whether an answer without words is refused for its words."""
    body = {"decision": "upheld", "answer": " "}
    status = visitor.post(f"{HERE}/appeals/{appeal}/answer", body).status_code
    assert status in (400, 403, 404)
    return status == 400


def who_deals_with(team_class: TeamClass, appeal: str, note: str) -> set[str]:
    """Give who sees an appeal; it is the same people who may answer it."""
    pages = {
        name: visitor.page(f"{HERE}/appeals")
        for name, visitor in team_class.people.items()
    }
    seeing = {name for name, page in pages.items() if note in page.text}
    answering = {
        name
        for name, visitor in team_class.people.items()
        if may_answer(visitor, appeal)
    }
    assert seeing == answering
    assert all(pages[name].ok == (name in STAFF) for name in pages)
    return seeing


STAFF = {"grace", "tim", "una", "vic"}


def test_an_appeal_is_for_the_staff_of_its_section_alone(team_class: TeamClass) -> None:
    job = team_class.graded("cyd")
    cyd, una = team_class.people["cyd"], team_class.people["una"]
    note = "my-own-appeal"
    appeal = cyd.done(f"{HERE}/jobs/{job}/appeal", {"note": note})["appeal"]
    assert who_deals_with(team_class, appeal, note) == {"grace", "una"}
    # nobody appeals in another's name, and staff not at all
    for name in ("ada", "tim", "una", "grace"):
        path = f"{HERE}/jobs/{job}/appeal"
        answer = team_class.people[name].post(path, {"note": "mine"})
        assert answer.status_code == 404, name
    una.done(
        f"{HERE}/appeals/{appeal}/answer", {"decision": "upheld", "answer": "so it is"}
    )


def test_an_appeal_of_a_team_is_for_the_staff_of_every_members_section(
    team_class: TeamClass,
) -> None:
    """Ada of Monday hands in, and Bob of Tuesday appeals."""
    job = team_class.graded("ada")
    bob, una = team_class.people["bob"], team_class.people["una"]
    note = "our-appeal"
    appeal = bob.done(f"{HERE}/jobs/{job}/appeal", {"note": note})["appeal"]
    assert who_deals_with(team_class, appeal, note) == {"grace", "tim", "una"}
    una.done(
        f"{HERE}/appeals/{appeal}/answer", {"decision": "upheld", "answer": "so it is"}
    )
    assert "so it is" in team_class.people["tim"].page(f"{HERE}/appeals").text


def test_a_session_follows_the_role_that_its_person_has_now(
    team_class: TeamClass,
) -> None:
    zoe, grace = team_class.people["zoe"], team_class.people["grace"]
    assert zoe.page(f"{HERE}/class").status_code == 404
    person = make_staff(grace, "zoe", "monday")
    token = Visitor(team_class.hub, token=zoe.token(TEACH))
    socket = connect(zoe, team_class.lab)
    assert zoe.page(f"{HERE}/class").status_code == 200
    appeals = "/appeals"
    assert zoe.page(HERE + appeals).status_code == 200
    grace.done(f"{HERE}/people/{person}/remove-staff", {})
    # at once, with the cookie, the token and the page that is open
    assert zoe.page(HERE + appeals).status_code == 403
    assert f'{appeals}"' not in zoe.page(HERE).text
    job = f"{HERE}/people/{person}/remove-staff"
    assert zoe.post(job, {}).status_code == 403
    assert token.post(job, {}).status_code == 403
    assert closing_code(socket) == 4003


def test_an_open_page_of_a_learner_who_becomes_staff_connects_anew(
    team_class: TeamClass,
) -> None:
    people = team_class.people
    socket = connect(people["cyd"], team_class.lab)
    person = make_staff(people["grace"], "cyd", "tuesday")
    assert closing_code(socket) == 4003
    socket = connect(people["cyd"], team_class.lab)
    # from now on it hears of others of the section
    team_class.graded("bob")
    assert hear(socket, "rows")["rows"]
    socket.close()
    people["grace"].done(f"{HERE}/people/{person}/remove-staff", {})

"""Every route, asked by every role: what is somebody's own stays theirs."""

from __future__ import annotations

import pytest

from tests.hub.service.class_hub import COURSE, SUBMIT, TEACH, Visitor
from tests.hub.service.conftest import World
from warpbook_hub.service.api.routes import API_ROUTES
from warpbook_hub.service.pages.routes import PAGE_ROUTES
from warpbook_hub.service.route import ApiRoute, PageRoute

#: bodies that are understood and change little: a reason that is empty is refused by
#: what does the work, after it was asked who may
_NO_REASON = {"reason": " "}
BODIES: dict[str, dict] = {
    "notices/read": {"up_to_ms": 0},
    # of whom no course knows it is refused after it was let in
    "notices/choice": {"mail": "digest"},
    "courses/{course}/labs/{lab}/submissions": {"source": " "},
    "courses/{course}/submissions/{submission}/regrade": _NO_REASON,
    "courses/{course}/submissions/{submission}/comments": {"note": " "},
    # there is no such comment, no such row, and no such action
    "courses/{course}/submissions/{submission}/comments/remove": {"comment": "x"},
    "courses/{course}/submissions/{submission}/rubric": {
        "rows": [{"title": "x", "points": 1}]
    },
    # nothing was asked
    "courses/{course}/submissions/{submission}/questions": {"number": 1, "choice": 0},
    "courses/{course}/labs/{lab}/rubric": {"rows": [{"title": " ", "points": 1}]},
    "courses/{course}/gradebook": {"action": "regrade", "cells": {}},
    "courses/{course}/gradebook/undo": {"request": "x"},
    "courses/{course}/jobs/{job}/appeal": {"note": " "},
    "courses/{course}/appeals/{appeal}/answer": {"decision": "upheld", "answer": " "},
    "courses/{course}/roster": {"csv": "nobody"},
    "courses/{course}/roster/group": {"group": "nobody's", "is_preview": True},
    "courses/{course}/nbgrader": {"students": [], "assignments": []},
    "courses/{course}/staff": {"username": "", "role": "assistant"},
    "courses/{course}/receipts/check": {"username": "ada", "receipt": "{}"},
    "courses/{course}/next-term": {"id": "", "title": "", "days": 1, "zone": "UTC"},
    "courses/{course}/settings": {
        "title": "",
        "late_budget_h": 0,
        "timed_runs_per_hour": 6,
        "appeal_window_h": 1,
    },
    "courses/{course}/labs": {
        "lab": "vector-add",
        "title": "x",
        "windows": [],
        "thresholds": [],
    },
    "courses/{course}/labs/{lab}/version": {"digest": "none of a grader's"},
    "courses/{course}/labs/{lab}/withdraw": _NO_REASON,
    "courses/{course}/labs/{lab}/people/{person}/extension": {
        "due_ms": 0,
        "closes_ms": 0,
        "reason": " ",
    },
    "courses/{course}/labs/{lab}/people/{person}/points": {"points": 1, "reason": " "},
    "courses/{course}/labs/{lab}/people/{person}/excuse": _NO_REASON,
    # it is not hidden
    "courses/{course}/labs/{lab}/release": {"is_hidden": False},
    "courses/{course}/totals": {"drop_lowest": 1_000},
    "courses/{course}/labs/{lab}/similarity": {},
    # the time of the freeze is over, the name too short, and nothing was opened
    "courses/{course}/labs/{lab}/competition": {"freezes_ms": 0},
    "courses/{course}/labs/{lab}/competition/join": {"pseudonym": ""},
    "courses/{course}/labs/{lab}/competition/leave": {},
    "courses/{course}/labs/{lab}/competition/final": {"grader": "", "device": ""},
    "courses/{course}/labs/{lab}/competition/end": {},
    "courses/{course}/gpus/take": {"minutes": 10, "model": "no such GPU"},
    "courses/{course}/gpus/extend": {"minutes": 10},
    "courses/{course}/gpus/return": {},
    "courses/{course}/gpus/sessions": {
        "title": " ",
        "gpus": 1,
        "starts_ms": 0,
        "ends_ms": 1,
    },
    "courses/{course}/gpus/sessions/cancel": {"session": ""},
    "courses/{course}/queue/pause": _NO_REASON,
    "courses/{course}/queue/resume": {},
    "courses/{course}/jobs/{job}/cancel": _NO_REASON,
    "courses/{course}/jobs/{job}/retry": {},
    "hub/queue/pause": _NO_REASON,
    "hub/queue/resume": {},
    "hub/jobs/{job}/raise": {},
    "hub/graders": {"name": " "},
    "hub/graders/{grader}/drain": {},
    "hub/graders/{grader}/activate": {},
    "hub/graders/{grader}/retire": {},
    "courses/{course}/people/{person}/erase": _NO_REASON,
    "courses/{course}/people/{person}/remove-staff": {},
    "hub/backup": {},
    "courses/{course}/platform/scores": {},
    "courses/{course}/platform/roster": {},
    "courses/{course}/platform/unbind": {},
}
#: of a person: ada, whose section is monday
OWNED = ("{submission}", "{job}", "{appeal}", "{person}")
ROLES = (
    *("grace", "tim", "una", "ada", "bob"),
    # of no course, of another one, and of the hub alone
    *("olga", "heidi", "opal", "grader", "nobody"),
)
#: what says that somebody was let in, whatever came of it
LET_IN = {200, 201, 400, 409}


def status_of(role: str, route: ApiRoute | PageRoute) -> str | int:
    """What a role gets: let in, or a status. This is the table of who may do what."""
    if role in ("grader", "nobody"):
        return 302 if isinstance(route, PageRoute) else 403
    if route.level == "person":
        return "let in"
    if route.level == "operator":
        return "let in" if role == "opal" else 403
    if role in ("olga", "heidi", "opal"):
        return 404
    if role == "grace" and route.path.endswith("/roster/group"):
        # she is let in, and nobody is in the group
        return 404
    if route.level == "instructor":
        return "let in" if role == "grace" else 403
    if route.level == "staff" and role in ("ada", "bob"):
        return 403
    is_owned = any(part in route.path for part in OWNED)
    if is_owned and role in ("una", "bob"):
        return 404
    if route.path.endswith("/reference") and role in ("ada", "bob"):
        # before anybody may still hand in
        return 403
    return "let in"


def ask(visitor: Visitor, world: World, route: ApiRoute | PageRoute) -> int:
    path = world.path(route.path)
    if isinstance(route, PageRoute):
        if route.path.endswith("/pair"):
            path += f"?first={world.submission}&second={world.submission}"
        answer = visitor.page(path)
        assert "<script>alert" not in answer.text
        assert "<img src=x" not in answer.text
        return answer.status_code
    if route.method == "GET":
        return visitor.get(path).status_code
    return visitor.post(path, BODIES[route.path]).status_code


@pytest.mark.parametrize("role", ROLES)
def test_every_route_lets_in_who_may_and_nobody_else(world: World, role: str) -> None:
    wrong = []
    # what retires a grader comes last
    for route in (*PAGE_ROUTES, *API_ROUTES):
        wanted = status_of(role, route)
        status = ask(world.people[role], world, route)
        is_right = status in LET_IN if wanted == "let in" else status == wanted
        if not is_right:
            what = getattr(route, "method", "page")
            wrong.append(f"{role} {what} {route.path}: {status}, not {wanted}")
    assert not wrong, "\n".join(wrong)


def test_an_instructor_finds_only_counts_of_other_courses_and_of_graders(
    world: World,
) -> None:
    grace, heidi = world.people["grace"], world.people["heidi"]
    why = "heidi-holds-hers-back"
    heidi.done("courses/other/queue/pause", {"reason": why})
    pages = [
        route.path
        for route in PAGE_ROUTES
        if "{" not in route.path.removeprefix("courses/{course}")
    ]
    shown = {
        (name, page): visitor.page(page.format(course=course)).text
        for name, visitor, course in (
            ("heidi", heidi, "other"),
            ("grace", grace, COURSE),
        )
        for page in pages
    }
    # what is of the other course, or of the hub
    secrets = {
        "heidi": (world.person, world.submission, world.grader, "spare", COURSE),
        "grace": (world.grader, "spare", why, "/courses/other"),
    }
    for (name, page), text in shown.items():
        for secret in secrets[name]:
            assert secret not in text, (name, page, secret)
    assert why in shown["heidi", "courses/{course}/queue"]
    # nor is a job of another course theirs by way of their own
    job = world.path("courses/other/jobs/{job}/cancel")
    assert heidi.post(job, {"reason": "mine"}).status_code == 404
    # who operates the hub sees all of it
    hub = world.people["opal"].page("hub").text
    assert "spare" in hub and why in hub
    heidi.done("courses/other/queue/resume")


def test_staff_see_what_a_learner_sees_and_can_do_nothing_there(world: World) -> None:
    grace = world.people["grace"]
    lab = grace.page(world.path("courses/{course}/as/{person}/labs/{lab}")).text
    own = world.people["ada"].page(world.path("courses/{course}/labs/{lab}")).text
    assert "You see this as ada does" in lab
    assert "<fieldset disabled" in lab and "<fieldset disabled" not in own
    # the same history, and links that stay with her
    number = world.path('/as/{person}/submissions/{submission}">1</a>')
    assert number in lab and number.replace("/as/" + world.person, "") in own
    for staffs in ("/settings", "Similarity", "/people", "/queue"):
        assert staffs not in lab
    # nor does a file of marks, which would be of who looks
    labs = grace.page(world.path("courses/{course}/as/{person}")).text
    assert "Your marks as a file" in labs and "exports/own" not in labs
    # somebody who has just come has handed in nothing, and is on no roster
    new = grace.page(world.path("courses/{course}/as-new/{section}/labs/{lab}")).text
    assert "a new learner of the section monday" in new
    assert "Nothing yet." in new
    assert "new in" not in grace.page(f"courses/{COURSE}/people").text
    # bob's page has none of ada's work, whoever looks
    people = grace.page(f"courses/{COURSE}/people").text
    bob = people.split("<code>bob</code>")[0].rsplit("/people/", 1)[1].split('"')[0]
    path = world.path(f"courses/{{course}}/as/{bob}/submissions/{{submission}}")
    assert grace.page(path).status_code == 404
    # nor is an instructor seen as one
    mine = people.split("<code>grace</code>")[0].rsplit("/people/", 1)[1].split('"')[0]
    assert grace.page(f"courses/{COURSE}/as/{mine}").status_code == 404
    assert "seen as a learner" in grace.page(f"courses/{COURSE}/log").text


def test_reference_is_nobodys_before_it_is_everybodys(world: World) -> None:
    path = world.path("courses/{course}/labs/{lab}/reference")
    assert world.people["ada"].get(path).status_code == 403
    assert world.people["tim"].get(path).status_code == 200


def test_learner_gets_no_list_of_hidden_cases(world: World) -> None:
    path = world.path("courses/{course}/submissions/{submission}/evidence")
    (own,) = world.people["ada"].get(path).json()["results"]
    (whole,) = world.people["tim"].get(path).json()["results"]
    assert set(own["evidence"]) == {"card"}
    assert set(whole["evidence"]) == {"card", "result", "seconds"}


def test_learner_gets_nothing_of_a_result_before_its_marks_are_released(
    world: World,
) -> None:
    ada, grace = world.people["ada"], world.people["grace"]
    release = world.path("courses/{course}/labs/{lab}/release")
    at = world.path("courses/{course}/submissions/{submission}")
    course = f"courses/{COURSE}"
    grace.done(release, {"is_hidden": True})
    try:
        state = ada.get(at).json()
        assert (state["state"], state["result"]) == ("hidden", None)
        assert ada.get(f"{at}/evidence").json() == {"results": []}
        assert grace.get(f"{at}/evidence").json()["results"]
        appeal = world.path("courses/{course}/jobs/{job}/appeal")
        assert ada.post(appeal, {"note": "mine"}).status_code == 403
        for lab in ada.get(f"{course}/labs").json():
            assert lab["points"] is None and not lab["is_passed"]
        [own] = ada.get(f"{course}/exports/own?layout=json").json()
        assert {one["status"] for one in own["labs"]} <= {"hidden", "not handed in"}
        assert not any(one["score"] for one in own["labs"])
        assert "marks hidden" in grace.page(f"{course}/log").text
    finally:
        grace.done(release, {"is_hidden": False})
    assert ada.get(at).json()["result"]
    # what was said of totals is named by its lab
    lab, title = world.lab, ada.get(f"{course}/labs").json()[0]["title"]
    for weight in (3.0, None):
        labs = [{"lab": lab, "weight": weight, "is_bonus": False}]
        grace.done(f"{course}/totals", {"drop_lowest": 0, "labs": labs})
    assert f"lab: {title}, weight: 3" in grace.page(f"{course}/log").text


@pytest.mark.parametrize("course", ["other", "GPU101", "..", "gpu101%2f"])
def test_course_that_is_not_there_tells_nothing(world: World, course: str) -> None:
    assert world.people["grace"].get(f"courses/{course}/labs").status_code == 404


def test_another_sites_page_can_do_nothing(world: World) -> None:
    grace = world.people["grace"]
    foreign = [
        # no token against forgery, as a form of another site has none
        {"X-XSRFToken": ""},
        {"X-XSRFToken": "2|0000|" + "0" * 40},
        # it has it, by whatever hole, and the browser says where it comes from
        {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://other.example"},
        {"Sec-Fetch-Site": "", "Origin": "null"},
    ]
    for headers in foreign:
        for route in API_ROUTES:
            if route.method == "POST":
                path = world.path(route.path)
                answer = grace.post(path, BODIES[route.path], **headers)
                assert answer.status_code == 403, (headers, path, answer.text)
        ticket = grace.post("ticket", **headers)
        assert ticket.status_code == 403, headers
    # a picture or a script of another site would load this with her cookie
    path = world.path("courses/{course}/exports/sources")
    mode = {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Site": "cross-site"}
    assert grace.get(path, **mode).status_code == 403
    # nor is a page of ours drawn within one of theirs
    policy = grace.page(f"courses/{COURSE}").headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "'unsafe-inline'" not in policy


def test_token_does_no_more_than_it_is_for(world: World) -> None:
    """A notebook's token of an instructor hands in, and gives no marks."""
    grace = world.people["grace"]
    only_submit = Visitor(world.hub, token=grace.token(SUBMIT))
    course = f"courses/{COURSE}"
    assert only_submit.get(f"{course}/labs").status_code == 200
    assert only_submit.get(f"{course}/exports/grades").status_code == 403
    path = world.path("courses/{course}/submissions/{submission}/source")
    assert only_submit.get(path).status_code == 404
    teach = Visitor(world.hub, token=grace.token(TEACH))
    assert teach.get(f"{course}/exports/grades").status_code == 200
    assert teach.get(path).status_code == 200
    # the course's database gives the rights: a scope gives a learner none
    bob = Visitor(world.hub, token=world.people["bob"].token(TEACH))
    assert bob.get(f"{course}/exports/grades").status_code == 403
    assert bob.get(path).status_code == 404


def test_input_is_bounded_before_it_is_read(world: World) -> None:
    ada = world.people["ada"]
    path = world.path("courses/{course}/labs/{lab}/submissions")
    too_long = ada.post(path, {"source": "x" * 200_001})
    assert (too_long.status_code, "source" in too_long.text) == (400, True)
    huge = ada.post(path, {"source": "x" * (3 << 20)})
    assert huge.status_code == 413
    unknown = ada.post(path, {"source": "// x", "person": "bob"})
    assert unknown.status_code == 400
    for body in (b"[" * 100_000, b"\xff\xfe", b"{", b'{"source": 1}'):
        answer = ada.session.post(
            f"{world.hub.service_url}api/v1/{path}",
            data=body,
            headers={"X-XSRFToken": ada._xsrf, "Sec-Fetch-Site": "same-origin"},
            timeout=60,
        )
        assert answer.status_code == 400, body
        assert answer.json()["error"]

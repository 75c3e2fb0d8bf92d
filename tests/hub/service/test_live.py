"""Open pages are told of changes; a ticket or a token opens the socket, no cookie."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urlencode

import pytest
import requests
import websocket

from tests.hub.service.class_hub import COURSE, GOOD, ROSTER, SUBMIT, Visitor
from tests.hub.service.conftest import World
from warpbook_hub.clock import HubClock
from warpbook_hub.service.live_feed import LiveFeed


def connect(visitor: Visitor, lab: str = "", **more: object) -> websocket.WebSocket:
    """Open a socket with a ticket, unless something else is said."""
    ticket = more.pop("ticket", None)
    if ticket is None:
        ticket = visitor.done("ticket")["ticket"]
    query = urlencode({"course": COURSE, "lab": lab, "ticket": ticket})
    url = f"{visitor.hub.service_url}live?{query}".replace("http", "ws", 1)
    given = {"origin": f"http://127.0.0.1:{visitor.hub.port}", "timeout": 120, **more}
    return websocket.create_connection(url, **given)


def refused(*args: object, **more: object) -> int:
    with pytest.raises(websocket.WebSocketBadStatusException) as refusal:
        connect(*args, **more)  # type: ignore[arg-type]
    return int(refusal.value.status_code)


def hear(socket: websocket.WebSocket, kind: str) -> dict:
    while True:
        message = json.loads(socket.recv())
        if message["type"] == kind:
            return message


def closing_code(socket: websocket.WebSocket) -> int:
    """Read until the other side closes, and give the code that it says."""
    opcode, content = socket.recv_data()
    while opcode != websocket.ABNF.OPCODE_CLOSE:
        opcode, content = socket.recv_data()
    # it has answered the other side, and takes itself for closed
    socket.shutdown()
    return int.from_bytes(content[:2], "big")


def test_cookie_opens_no_socket(world: World) -> None:
    ada = world.people["ada"]
    request = requests.Request("GET", world.hub.service_url)
    cookies = ada.session.prepare_request(request).headers["Cookie"]
    for mode in ("websocket", "navigate"):
        header = {"Sec-Fetch-Mode": mode}
        assert refused(ada, ticket="", cookie=cookies, header=header) == 403


def test_ticket_opens_one_socket(world: World) -> None:
    ada = world.people["ada"]
    ticket = ada.done("ticket")["ticket"]
    connect(ada, ticket=ticket).close()
    assert refused(ada, ticket=ticket) == 403
    fresh = ada.done("ticket")["ticket"]
    assert refused(ada, ticket=fresh, origin="https://evil.example") == 403


def test_token_opens_a_socket_of_its_own_courses(world: World) -> None:
    ada, olga = world.people["ada"], world.people["olga"]
    header = {"Authorization": f"token {ada.token(SUBMIT)}"}
    connect(ada, ticket="", header=header).close()
    assert refused(olga) == 404
    assert refused(world.people["nobody"], ticket="x") == 403


def test_submission_is_seen_by_its_learner_and_their_staff_alone(world: World) -> None:
    """Each hears of what they may see, and of nothing else."""
    names = ("grace", "tim", "una", "ada", "bob")
    sockets = {name: connect(world.people[name], world.lab) for name in names}
    path = f"courses/{COURSE}/labs/{world.lab}/submissions"
    body = {"source": f"{GOOD.read_text()}\n// once more"}
    submission = world.people["ada"].done(path, body)["submission"]
    while True:
        own = hear(sockets["ada"], "submission")
        assert own["submission"] == submission
        state = world.people["ada"].get(f"courses/{COURSE}/submissions/{submission}")
        if state.json()["state"] == "graded":
            break
    for name in ("grace", "tim"):
        states = set()
        while "passed" not in states:
            (row,) = hear(sockets[name], "rows")["rows"]
            assert row["person"] == world.person
            states.add(row["state"])
    # a submission of bob's comes last: nothing of ada's came before it
    own = world.people["bob"].done(path, {"source": "// bob's"})["submission"]
    first = hear(sockets["bob"], "submission")
    assert first["submission"] == own
    (row,) = hear(sockets["una"], "rows")["rows"]
    assert row["username"] == "bob"
    for socket in sockets.values():
        socket.close()


def test_page_that_talks_is_cut_off(world: World) -> None:
    socket = connect(world.people["ada"])
    socket.send("{}")
    assert closing_code(socket) == 4003


def test_graders_have_a_door_of_their_own(world: World) -> None:
    """A learner's token opens no grader's route; nothing is read of who has none."""
    tokens = {
        "nobody": "",
        "ada": world.people["ada"].token(SUBMIT),
        "grader": world.grader_token,
    }
    for name, token in tokens.items():
        answer = requests.post(
            f"{world.hub.service_url}grader/v1/heartbeat",
            json={"leases": []},
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
        )
        assert answer.status_code == (200 if name == "grader" else 403), name
    forged = {
        "lease": {"job": world.job, "fence": 1},
        "facts": {
            "verdict": "right",
            "status": "passed",
            "message": "",
            "right": 99,
            "of": 99,
        },
        "lab_digest": "",
        "source_digest": "",
        "took_ms": 1,
    }
    # nor does one grader give another one's results
    answer = requests.post(
        f"{world.hub.service_url}grader/v1/result",
        json=forged,
        headers={"Authorization": f"Bearer {world.grader_token}"},
        timeout=60,
    )
    assert answer.json()["is_accepted"] is False


def test_new_learner_is_in_the_class_at_once(world: World) -> None:
    """The rows of a class are kept between pages; a change of its roster is no job."""
    grace = world.people["grace"]
    assert "cleo" not in grace.page(f"courses/{COURSE}/class").text
    socket = connect(grace, world.lab)
    roster = f"{ROSTER}cleo,Cleo,Nine,monday,\n"
    assert grace.done(f"courses/{COURSE}/roster", {"csv": roster})["added"] == ["cleo"]
    assert "cleo" in grace.page(f"courses/{COURSE}/class").text
    # pages that show the class load it anew
    hear(socket, "reload")
    socket.close()


def test_former_assistant_hears_of_nobody(world: World) -> None:
    """A page that staff have open closes when they are staff no more."""
    grace, zed = world.people["grace"], Visitor(world.hub, "zed").log_in()
    staff = {"username": "zed", "role": "assistant", "section": "monday"}
    person = grace.done(f"courses/{COURSE}/staff", staff)["person"]
    socket = connect(zed, world.lab)
    assert zed.page(f"courses/{COURSE}/class").status_code == 200
    grace.done(f"courses/{COURSE}/people/{person}/remove-staff")
    while (frame := socket.recv_frame()).opcode != websocket.ABNF.OPCODE_CLOSE:
        assert b"rows" not in frame.data
    socket.shutdown()
    assert zed.page(f"courses/{COURSE}/class").status_code == 403
    again = grace.post(f"courses/{COURSE}/people/{person}/remove-staff")
    assert again.status_code == 409 and "not staff" in again.text


def test_second_instructor_runs_the_course(world: World) -> None:
    """Whoever is added on the page is one at once, with the staff's password."""
    grace = world.people["grace"]
    assert Visitor(world.hub, "ivy").log_in().page("").status_code == 200
    staff = {"username": "ivy", "role": "instructor", "section": "monday"}
    person = grace.done(f"courses/{COURSE}/staff", staff)["person"]
    with pytest.raises(requests.HTTPError):
        Visitor(world.hub, "ivy").log_in()
    ivy = Visitor(world.hub, "ivy").log_in(is_staff=True)
    assert ivy.page(f"courses/{COURSE}/publish").status_code == 200
    ivy.done(f"courses/{COURSE}/queue/resume")
    grace.done(f"courses/{COURSE}/people/{person}/remove-staff")
    assert ivy.page(f"courses/{COURSE}/publish").status_code == 403


def test_course_keeps_an_instructor(world: World) -> None:
    grace = world.people["grace"]
    body = {"username": "grace", "role": "assistant", "section": "monday"}
    answer = grace.post(f"courses/{COURSE}/staff", body)
    assert answer.status_code == 409 and "keeps an instructor" in answer.text


def test_a_feed_ends_in_the_moment_in_which_something_is_written() -> None:
    async def ended() -> None:
        feed = LiveFeed(HubClock())
        running = asyncio.ensure_future(feed.run(None))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        feed.note_change()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, 10)

    asyncio.run(ended())

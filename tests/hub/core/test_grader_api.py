"""The graders' protocol as anybody on the network may try it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.hub.core.course import LAB_DIGEST, Classroom, facts
from warpbook.hub_protocol import (
    GRADER_MESSAGE_BYTES,
    MOST_EVIDENCE_BYTES,
    Device,
    Heartbeat,
    HeartbeatAnswer,
    Hello,
    JobOrder,
    JobResult,
    LeaseName,
    Problem,
    Receipt,
    Welcome,
    Work,
    WorkRequest,
)
from warpbook_hub.database.tables import GRADERS, JOBS, RESULTS
from warpbook_hub.queue.grader_api import answer

DATABASES = ("sqlite", "postgres")
KINDS = ("hello", "lease", "heartbeat", "result", "release")


def ask(
    room: Classroom, what: str, body: bytes | msgspec.Struct, token: str
) -> tuple[int, bytes]:
    content = body if isinstance(body, bytes) else msgspec.json.encode(body)
    with room.database.write() as connection:
        given = answer(connection, room.now_ms, what, f"Bearer {token}", content)
    return given.http_status, given.body


def result_of(order: JobOrder, **changed: object) -> JobResult:
    whole = JobResult(
        LeaseName(order.job, order.fence), facts(), LAB_DIGEST, order.source_digest, 5
    )
    return msgspec.structs.replace(whole, **changed)  # type: ignore[arg-type]


def test_a_grader_begins_leases_and_hands_over(room: Classroom) -> None:
    token = room.tokens[room.grader()]
    room.submit("ada")
    hello = Hello(2, (Device("GPU-1", "H100"),))
    status, body = ask(room, "hello", hello, token)
    welcome = msgspec.json.decode(body, type=Welcome)
    assert status == 200 and welcome.lease_s > 2 * welcome.heartbeat_s
    _, body = ask(room, "lease", WorkRequest(2, ("GPU-1",)), token)
    (order,) = msgspec.json.decode(body, type=Work).jobs
    beat = Heartbeat((LeaseName(order.job, order.fence),))
    _, body = ask(room, "heartbeat", beat, token)
    assert msgspec.json.decode(body, type=HeartbeatAnswer) == HeartbeatAnswer()
    _, body = ask(room, "result", result_of(order), token)
    assert msgspec.json.decode(body, type=Receipt).is_accepted


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic eDp5", "Bearer \ud800"]
)
def test_nobody_without_a_token_is_answered(room: Classroom, header: str) -> None:
    room.grader()
    room.submit("ada")
    for what in KINDS:
        with room.database.write() as connection:
            given = answer(connection, room.now_ms, what, header, b"{}")
        assert given.http_status == 403 and b"source" not in given.body


def test_a_grader_has_no_say_over_anothers_job(room: Classroom) -> None:
    mine, other = room.grader("mine"), room.grader("other")
    room.submit("ada")
    (order,) = room.lease(mine)
    token = room.tokens[other]
    _, body = ask(room, "result", result_of(order), token)
    assert not msgspec.json.decode(body, type=Receipt).is_accepted
    beat = Heartbeat((LeaseName(order.job, order.fence),))
    _, body = ask(room, "heartbeat", beat, token)
    assert msgspec.json.decode(body, type=HeartbeatAnswer).lost == (order.job,)
    release = {"lease": {"job": order.job, "fence": order.fence}, "reason": "crashed"}
    _, body = ask(room, "release", msgspec.json.encode(release), token)
    assert b"lost" in body
    # an older token of the same grader is void, too
    old = room.tokens[mine]
    room.grader("mine")
    assert ask(room, "lease", WorkRequest(1), old)[0] == 403


def test_tokens_are_kept_nowhere(room: Classroom) -> None:
    token = room.tokens[room.grader()]
    with room.database.read() as connection:
        [row] = connection.execute(GRADERS.select()).all()
    assert token not in str(row)


@pytest.mark.parametrize(
    "changed",
    [
        {"source_digest": "0" * 64},
        {"facts": facts("right", 5, 4)},
        {"evidence": "x" * (MOST_EVIDENCE_BYTES + 1)},
    ],
)
def test_a_result_that_cant_be_is_no_mark(
    room: Classroom, changed: dict[str, object]
) -> None:
    grader = room.grader()
    room.submit("ada")
    (order,) = room.lease(grader)
    result = result_of(order, **changed)
    _, body = ask(room, "result", result, room.tokens[grader])
    assert not msgspec.json.decode(body, type=Receipt).is_accepted
    with room.database.read() as connection:
        assert connection.execute(RESULTS.select()).all() == []
        [job] = connection.execute(JOBS.select()).all()
    assert job.state == "parked"


@given(some.sampled_from((*KINDS, "nothing", "../submissions")), some.binary())
def test_whatever_is_sent_is_answered(what: str, body: bytes) -> None:
    # what can't be read never comes to the database; the token is asked for first
    class Nobody:
        def execute(self, *_: object) -> Nobody:
            return self

        def scalar(self) -> str:
            return "grader"

    given_back = answer(Nobody(), 0, what, "Bearer x", b"\xff" + body)  # type: ignore[arg-type]
    assert given_back.http_status in (400, 404)
    assert msgspec.json.decode(given_back.body, type=Problem).error


def test_numbers_that_no_database_holds_are_refused(room: Classroom) -> None:
    grader = room.grader()
    room.submit("ada")
    (order,) = room.lease(grader)
    for changed in (
        {"took_ms": 2**70},
        {"took_ms": -1},
        {"facts": facts("right", -1, 4)},
        {"lease": LeaseName(order.job, 2**70)},
        {"lease": LeaseName("x" * 65, 1)},
    ):
        absurd = result_of(order, **changed)
        assert ask(room, "result", absurd, room.tokens[grader])[0] == 400
    assert room.finish(grader, order).is_accepted


def test_a_message_that_is_too_large_is_refused(room: Classroom) -> None:
    token = room.tokens[room.grader()]
    body = b" " * (GRADER_MESSAGE_BYTES + 1)
    assert ask(room, "lease", body, token)[0] == 400
    assert ask(room, "hello", Hello(10_000), token)[0] == 400
    assert ask(room, "lease", b'{"free_cpu_slots": "many"}', token)[0] == 400


def test_absurd_room_is_bounded(room: Classroom) -> None:
    grader = room.grader()
    for name in ("ada", "bob", "cyd"):
        room.submit(name)
    assert ask(room, "lease", WorkRequest(-5), room.tokens[grader])[0] == 400
    assert ask(room, "lease", WorkRequest(2**70), room.tokens[grader])[0] == 400
    status, body = ask(room, "lease", WorkRequest(10**9), room.tokens[grader])
    assert status == 200 and len(msgspec.json.decode(body, type=Work).jobs) == 3

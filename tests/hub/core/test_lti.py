"""Scores for a learning platform, over HTTP and on both databases.

The platform is one of the tests' own, which checks what a real one checks.
"""

from __future__ import annotations

import stat
from datetime import datetime, timezone
from pathlib import Path

import msgspec
import pytest

from tests.hub.lti.platform import Platform
from tests.hub.lti.world import COURSE, World, members
from warpbook_hub.course.courses import members as members_of
from warpbook_hub.course.mark_settings import hide_marks
from warpbook_hub.keeping.backup import back_up, restore
from warpbook_hub.lti import ledger, links
from warpbook_hub.lti.platform import BadPlatform, read_platform
from warpbook_hub.lti.tool_key import FILE, BadKey, ToolKey
from warpbook_hub.service.score_sender import Sender
from warpbook_hub.service.service import Service

DATABASES = ("sqlite", "postgres")


def test_a_mark_is_sent_once_and_each_change_of_it(world: World) -> None:
    world.mark("ada", 7.5)
    world.rounds(3)
    assert world.sent("ada") == [7.5]
    (item,) = world.platform.line_items.values()
    assert (item["label"], item["scoreMaximum"]) == ("Vector add", 10)
    # a service that starts anew, and the same points again, send nothing
    world.mark("ada", 7.5)
    world.rounds(2)
    assert world.sent("ada") == [7.5]
    world.mark("ada", 9)
    world.mark("bob", 4)
    world.rounds()
    assert (world.sent("ada"), world.sent("bob")) == ([7.5, 9], [4])
    assert len(world.platform.line_items) == 1
    seen = world.ledger()
    assert (seen.sent, seen.waiting, seen.failed) == (2, 0, 0)
    assert not seen.problems
    assert sorted(row[:2] for row in world.rows()) == [
        ("sent", 4),
        ("sent", 7.5),
        ("sent", 9),
    ]


def test_hidden_marks_are_taken_back_until_they_are_released(world: World) -> None:
    world.mark("ada", 7.5)
    world.rounds()
    for is_hidden in (True, False):
        world.room.now_ms += 60_000
        with world.room.database.write() as connection:
            at = (connection, world.room.now_ms, world.room.instructor)
            hide_marks(*at, [world.room.lab], is_hidden)
        if is_hidden:
            # of what the platform never had there is nothing to take back
            world.mark("bob", 4)
        world.rounds(2)
        assert world.sent("bob") == ([] if is_hidden else [4])
    assert world.sent("ada") == [7.5, None, 7.5]


def test_a_link_that_names_a_lab_gives_the_column_of_its_grades(world: World) -> None:
    url = f"{world.platform.url}/lineitems/9"
    world.platform.line_items["9"] = {"id": url, "resourceId": ""}
    # of another course it gives none
    elsewhere = {"context": "another", "lab": "vector-add", "line_item_url": "x"}
    world.launch("grace", "instructor", **elsewhere)
    world.launch("ada", lab="vector-add", line_item_url=url)
    world.mark("ada", 7.5)
    world.rounds()
    assert world.platform.last("s-ada", "9")["scoreGiven"] == 7.5
    assert list(world.platform.line_items) == ["9"]


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("service", "failure", "answer"),
    [
        ("token", 503, "No token for the platform was given. It answered 503"),
        ("token", 400, "No token for the platform was given. It answered 400"),
        ("token", "{}", "can't be read"),
        ("token", '{"access_token": "a\\r\\nHost: b"}', "can't be read"),
        ("line items", 500, "It answered 500"),
        ("line items", "[{]", "can't be read"),
        ("scores", 429, "It answered 429"),
        ("scores", 502, "It answered 502"),
        ("scores", 0, "does not answer"),
    ],
)
def test_a_platform_in_trouble_is_tried_again_later(
    world: World, service: str, failure: int | str, answer: str
) -> None:
    world.mark("ada", 7.5)
    world.platform.failures[service] = [failure]
    world.timeout_s = 2 if failure == 0 else 60
    world.rounds(2)
    ((state, _, said),) = world.rows()
    assert state == "waiting" and answer in said
    (problem,) = world.ledger().problems
    assert (problem.username, problem.tries) == ("ada", 1)
    # it is left alone until then, also by a service that starts anew
    before = list(world.platform.requests)
    world.rounds()
    assert world.platform.requests == before and not world.sent("ada")
    world.later_ms = 10_000
    world.rounds()
    assert world.sent("ada") == [7.5]
    assert not world.ledger().problems


def test_waits_get_longer_and_what_the_platform_says_counts(world: World) -> None:
    world.mark("ada", 7.5)
    world.platform.failures["scores"] = [503] * 5
    waits = []
    for _ in range(5):
        world.rounds()
        (problem,) = world.ledger().problems
        assert problem.answered_ms is not None
        waits.append(problem.not_before_ms - problem.answered_ms)
        world.later_ms += waits[-1] + 1_000
    assert [round(wait / 1000) for wait in waits] == [2, 4, 8, 16, 32]
    world.rounds()
    assert world.sent("ada") == [7.5]


def test_a_platform_that_is_down_loses_no_score(world: World) -> None:
    world.mark("ada", 7.5)
    world.platform.stop()
    world.rounds()
    world.mark("ada", 8)
    world.later_ms = 10_000
    world.rounds()
    assert [row[:2] for row in world.rows()] == [("replaced", 7.5), ("waiting", 8)]
    world.platform.start()
    world.later_ms = 60_000
    world.rounds()
    assert world.sent("ada") == [8]


@pytest.mark.parametrize(("status", "words"), [(403, "Allow the tool"), (422, "left")])
def test_what_is_refused_for_good_is_listed_until_it_is_sent_again(
    world: World, status: int, words: str
) -> None:
    world.mark("ada", 7.5)
    world.mark("bob", 5)
    world.platform.failures["scores"] = [status]
    world.rounds()
    world.later_ms = 1_800_000
    world.rounds()
    # the others are sent nevertheless
    assert len(world.sent("ada") + world.sent("bob")) == 1
    seen = world.ledger()
    (problem,) = seen.problems
    assert (seen.sent, seen.failed, problem.state) == (1, 1, "failed")
    assert str(status) in problem.answer and words in problem.answer
    for expected in (1, 0):
        with world.room.database.write() as connection:
            now_ms = world.room.now_ms + world.later_ms
            actor = world.room.instructor
            again = ledger.send_again(connection, now_ms, actor, COURSE)
        assert again == expected
        world.rounds()
    assert (world.sent("ada"), world.sent("bob")) == ([7.5], [5])


def test_grades_on_another_host_are_not_sent_and_it_is_said_why(world: World) -> None:
    other = Platform([])
    other.start()
    world.launch("grace", "instructor", line_items_url=f"{other.url}/lineitems")
    world.mark("ada", 7.5)
    world.rounds()
    other.stop()
    (problem,) = world.ledger().problems
    assert problem.state == "failed" and "`service_hosts`" in problem.answer
    assert not other.requests


def test_a_line_item_that_was_deleted_is_made_anew_with_all_scores(
    world: World,
) -> None:
    world.mark("ada", 7.5)
    world.mark("bob", 4)
    world.rounds()
    del world.platform.line_items["1"]
    world.mark("ada", 8)
    world.run(lambda sender, service: rounds_apart(world, sender, service))
    assert world.platform.last("s-ada", "2")["scoreGiven"] == 8
    assert world.platform.last("s-bob", "2")["scoreGiven"] == 4


def test_a_column_that_is_still_there_gets_no_score_twice(world: World) -> None:
    world.mark("ada", 7.5)
    world.mark("bob", 4)
    world.rounds()
    world.platform.failures["scores"] = [404]
    world.mark("ada", 8)
    world.run(lambda sender, service: rounds_apart(world, sender, service))
    assert (world.sent("ada"), world.sent("bob")) == ([7.5, 8], [4])


def test_a_column_of_a_link_that_comes_later_gets_all_scores(world: World) -> None:
    world.mark("ada", 7.5)
    world.mark("bob", 4)
    world.rounds()
    url = f"{world.platform.url}/lineitems/9"
    world.platform.line_items["9"] = {"id": url, "resourceId": ""}
    for _ in range(2):
        world.launch("ada", lab="vector-add", line_item_url=url)
        world.rounds(2)
        taken = {
            subject: [score["scoreGiven"] for score in scores]
            for (item, subject), scores in world.platform.scores.items()
            if item == "9"
        }
        assert taken == {"s-ada": [7.5], "s-bob": [4]}


def test_a_token_that_expired_is_asked_for_anew(world: World) -> None:
    async def twice(sender: Sender, service: Service) -> None:
        world.mark("ada", 7.5)
        await sender.round(service)
        world.platform.tokens.clear()
        world.mark("ada", 8)
        # the service learns of marks by its own writes
        await service.write(lambda _: None)
        await sender.round(service)

    world.run(twice)
    assert world.sent("ada") == [7.5, 8]


def test_a_key_of_ours_that_was_replaced_is_used_at_once(world: World) -> None:
    world.mark("ada", 7.5)
    world.rounds()
    (world.folder / FILE).unlink()
    world.mark("ada", 8)
    world.rounds()
    assert world.sent("ada") == [7.5, 8]


def test_a_score_whose_answer_was_lost_is_sent_again_and_counts_once(
    world: World,
) -> None:
    world.mark("ada", 7.5)
    world.platform.is_silent = True
    world.timeout_s = 2
    world.rounds()
    ((state, _, answer),) = world.rows()
    assert state == "waiting" and "does not answer" in answer
    world.platform.is_silent = False
    world.timeout_s = 60
    world.later_ms = 10_000
    world.rounds()
    assert world.sent("ada") == [7.5]
    assert world.rows() == [("sent", 7.5, "409: it has this score already")]


def test_a_later_grade_of_the_platform_is_said_and_replaced_when_asked(
    world: World,
) -> None:
    world.mark("ada", 7.5)
    world.rounds()
    # somebody gives a grade at the platform itself
    at = datetime.fromtimestamp(world.room.now_ms / 1000 + 5, timezone.utc)
    manual = {"scoreGiven": 3, "timestamp": at.isoformat(timespec="milliseconds")}
    world.platform.scores["1", "s-ada"].append(manual)
    world.mark("ada", 9)
    world.rounds()
    seen = world.ledger()
    assert (seen.sent, seen.failed) == (0, 1)
    assert "The platform has a later grade" in seen.problems[0].answer
    world.later_ms = 10_000
    world.rounds()
    assert world.sent("ada") == [7.5, 3]
    with world.room.database.write() as connection:
        now_ms = world.room.now_ms + world.later_ms
        ledger.send_again(connection, now_ms, world.room.instructor, COURSE)
    world.rounds()
    assert world.sent("ada") == [7.5, 3, 9]
    assert not world.ledger().problems


@pytest.mark.parametrize("service", ["members", "line items", "scores"])
def test_a_course_that_is_tied_to_another_meanwhile_tells_the_old_one_no_more(
    world: World, service: str
) -> None:
    def tie_to_another() -> None:
        with world.room.database.write() as connection:
            links.unbind(connection, world.room.now_ms, world.room.instructor, COURSE)
        world.room.now_ms += 1
        world.launch("grace", "instructor", context="the next term", **elsewhere)

    elsewhere = {"memberships_url": "", "line_items_url": ""}
    for name in ("ada", "bob", "cyd"):
        world.mark(name, 5)
    world.platform.members = members()[:2]
    world.platform.meanwhile[service] = tie_to_another
    world.next_hour()
    world.rounds()
    # that which was under way
    assert sum(map(len, world.platform.scores.values())) == (service == "scores")
    with world.room.database.read() as connection:
        context = links.bound_context(connection, COURSE)
        assert links.line_item_url(connection, world.room.lab) == ""
        there = members_of(connection, COURSE)
    assert (context.context, context.note) == ("the next term", "")
    hidden = {one.username for one in there if one.is_hidden}
    assert hidden == (set() if service == "members" else {"cyd"})


def test_after_a_restore_the_platform_is_told_what_the_backup_has(
    world: World, tmp_path: Path
) -> None:
    room, backup = world.room, tmp_path / "monday.db"
    world.mark("ada", 7.5)
    world.rounds()
    back_up(room.database, backup)
    world.mark("ada", 9)
    world.later_ms = 10_000
    world.rounds()
    room.now_ms += 20_000
    restore(room.database, backup, room.now_ms, room.instructor)
    world.rounds(2)
    assert world.sent("ada") == [7.5, 9, 7.5]


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "url",
    [
        "http://lms.example.org/a",
        "https://lms.example.org.evil.example/a",
        "https://lms.example.org@evil.example/a",
        "https://lms.example.org:8443/a",
        "https://evil.example/https://lms.example.org/",
        "https://lms.example.org/a\r\nX: y",
        "file:///etc/passwd",
        "https://[::1/",
        "",
    ],
)
def test_only_urls_of_the_platform_are_asked(url: str, tmp_path: Path) -> None:
    platform = read_platform(described(tmp_path))
    assert platform.owns("https://lms.example.org/a?b=c")
    assert platform.owns("https://Grades.example.org/a")
    assert not platform.owns(url)


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"token_url": "http://lms.example.org/token"}, "token_url is a URL"),
        ({"jwks_url": "ftp://lms.example.org/"}, "jwks_url is a URL"),
        ({"service_hosts": ["evil"]}, "service_hosts is a URL"),
        ({"deployments": []}, "deployments is empty"),
        ({"client_id": 7}, "client_id"),
        ({"unknown": ""}, "unknown"),
    ],
)
def test_a_description_that_cant_be_used_says_why(
    tmp_path: Path, changed: dict[str, object], words: str
) -> None:
    with pytest.raises(BadPlatform, match=words):
        read_platform(described(tmp_path, **changed))


@pytest.mark.sqlite
def test_our_key_is_drawn_once_and_ours_alone(tmp_path: Path) -> None:
    first = ToolKey(tmp_path).key_set
    assert ToolKey(tmp_path).key_set == first
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert set(first["keys"][0]) == {"kty", "n", "e", "kid", "alg", "use"}
    (tmp_path / FILE).write_text("no key")
    with pytest.raises(BadKey, match="Delete it"):
        ToolKey(tmp_path)


async def rounds_apart(world: World, sender: Sender, service: Service) -> None:
    """Look again ten seconds later, and once more."""
    for _ in range(3):
        await sender.round(service)
        world.later_ms += 10_000


def described(folder: Path, **changed: object) -> Path:
    host = "https://lms.example.org"
    given = {
        "issuer": host,
        "client_id": "client",
        "deployments": ["1"],
        "authorize_url": f"{host}/auth",
        "token_url": f"{host}/token",
        "jwks_url": f"{host}/jwks",
        "service_hosts": ["https://grades.example.org"],
    }
    file = folder / "platform.json"
    file.write_bytes(msgspec.json.encode({**given, **changed}))
    return file

"""What AI assistants may do with a lab, and what learners' programs tell of them."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
from msgspec import structs

from tests.hub.core.course import DUE_MS, Classroom, classroom
from warpbook.hub_protocol import AiCall, AiLog
from warpbook_hub.course.courses import change_course, course
from warpbook_hub.course.next_term import Term, copy_course
from warpbook_hub.course.publications import (
    policy_now,
    publication,
    publications,
    publish,
)
from warpbook_hub.exports.records import json_lines
from warpbook_hub.keeping.erasure import erase
from warpbook_hub.work.submissions import receive, reported_ai_log

DATABASES = ("sqlite", "postgres")
TOLD = AiLog((AiCall("lab_check", 1_790_000_000_500, 20, 900, True),), 3, 7)


def policy(room: Classroom) -> str:
    with room.database.read() as connection:
        of_course = course(connection, "gpu101")
        lab = publication(connection, room.lab)
        return policy_now(connection, room.now_ms, of_course, lab)


def test_a_lab_has_the_courses_policy_or_its_own_until_its_reference_is_shown(
    room: Classroom,
) -> None:
    assert policy(room) == "checking"
    with room.database.write() as connection:
        who = (connection, room.now_ms, room.instructor)
        change_course(
            *who, structs.replace(course(connection, "gpu101"), ai_policy="off")
        )
    assert policy(room) == "off"
    with room.database.write() as connection:
        who = (connection, room.now_ms, room.instructor)
        lab = publication(connection, room.lab)
        publish(*who, structs.replace(lab, ai_policy="checking"))
        copy_course(*who, "gpu101", Term("gpu102", "Again", 364, "UTC"))
        (next_lab,) = publications(connection, "gpu102")
        assert (next_lab.ai_policy, course(connection, "gpu102").ai_policy) == (
            "checking",
            "off",
        )
    assert policy(room) == "checking"
    room.now_ms = DUE_MS
    assert policy(room) == "checking"
    room.now_ms = DUE_MS + 1
    assert policy(room) == "on"


def test_what_a_program_told_is_kept_with_the_submission_and_erased(
    tmp_path: Path,
) -> None:
    room = classroom(tmp_path / "hub.db", is_team_work=True)
    silent = room.submit("ada").submission
    with room.database.write() as connection:
        who = (connection, room.now_ms, room.lab, room.people["bob"])
        told = receive(*who, "// of the team", ai_log=TOLD).submission
    with room.database.read() as connection:
        assert reported_ai_log(connection, silent) is None
        assert reported_ai_log(connection, told) == TOLD
        rows = [msgspec.json.decode(row) for row in json_lines(connection, "gpu101")]
    logs = {row["id"]: row["ai_log"] for row in rows if row["kind"] == "submission"}
    assert logs == {silent: None, told: json.loads(msgspec.json.encode(TOLD))}
    with room.database.write() as connection:
        who = (connection, room.now_ms, room.instructor)
        erase(*who, room.people["bob"], "asked for it")
        assert reported_ai_log(connection, told) is None
    room.database.close()

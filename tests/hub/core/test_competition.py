"""Competitions: pseudonyms, ranks and the freeze."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.hub.core.competition import (
    FREEZE_MS,
    GPUS,
    NAMES,
    end,
    join,
    leave,
    open_board,
    race,
    ranks,
    shown,
    speed_of,
    start_final,
)
from tests.hub.core.course import DUE_MS, Classroom, facts, timed
from warpbook.hub_protocol import Ratio
from warpbook_hub.competition import contests, entries
from warpbook_hub.course.courses import add_staff
from warpbook_hub.course.extensions import extend
from warpbook_hub.course.publications import publication
from warpbook_hub.errors import BadRequest, Conflict
from warpbook_hub.exports.records import json_lines
from warpbook_hub.keeping.erasure import erase
from warpbook_hub.rules.lateness import HOUR_MS
from warpbook_hub.rules.ranks import of_rounds, ranked
from warpbook_hub.work.decisions import regrade

DATABASES = ("sqlite", "postgres")


def test_nobody_is_on_the_board_who_did_not_join(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    open_board(room, "ada")
    race(room, grader, "ada", 2.0)
    race(room, grader, "bob", 3.0)
    assert ranks(room, "cyd") == [(1, "Warp Nine")]
    join(room, "bob", NAMES["bob"])
    assert ranks(room, "cyd") == [(1, "bank conflict"), (2, "Warp Nine")]
    leave(room, "bob")
    assert ranks(room, "cyd") == [(1, "Warp Nine")]
    assert shown(room, "bob").pseudonym == ""


def test_learners_see_pseudonyms_and_staff_whom_they_look_after(
    room: Classroom,
) -> None:
    grader = room.grader(gpus=1)
    with room.database.write() as connection:
        who = (room.now_ms, room.instructor, "gpu101", "tim", "assistant", "monday")
        add_staff(connection, *who)
    open_board(room, "ada", "cyd")
    race(room, grader, "ada", 2.0)
    race(room, grader, "cyd", 4.0)
    usernames = {
        name: [entry.username for entry in shown(room, name).entries]
        for name in ("ada", "grace", "tim")
    }
    assert usernames == {"ada": ["", ""], "grace": ["cyd", "ada"], "tim": ["", "ada"]}
    assert [entry.is_own for entry in shown(room, "ada").entries] == [False, True]


@pytest.mark.parametrize(
    "pseudonym",
    [
        "",
        "x",
        "x" * 31,
        "<b>x</b>",
        "a\0b",
        "a\u202eb",
        "-dash",
        "😀😀",
        "z\u0301\u0301\u0301\u0301",
    ],
)
def test_a_pseudonym_is_a_short_name(pseudonym: str) -> None:
    with pytest.raises(BadRequest, match="2 to 30"):
        entries.fit_pseudonym(pseudonym)


@pytest.mark.parametrize("lookalike", ["WARP  NINE", "warp-nine", "Ｗarp.Nine"])
def test_no_two_of_a_course_are_called_alike(room: Classroom, lookalike: str) -> None:
    open_board(room, "ada")
    with pytest.raises(Conflict, match="has this name"):
        join(room, "bob", lookalike)
    # one's own may be written differently
    join(room, "ada", lookalike)


@pytest.mark.parametrize("name", ["cyd", "Cyd Charisse", "GRACE"])
def test_nobody_joins_by_the_name_of_another(room: Classroom, name: str) -> None:
    open_board(room)
    with pytest.raises(Conflict, match="has this name"):
        join(room, "ada", name)


def test_only_learners_join_and_only_until_the_freeze(room: Classroom) -> None:
    with pytest.raises(Conflict, match="no competition"):
        join(room, "ada", "too early")
    open_board(room, "ada")
    with pytest.raises(Conflict, match="Only learners"):
        join(room, "grace", "the boss")
    room.now_ms = FREEZE_MS
    with pytest.raises(Conflict, match="frozen"):
        join(room, "bob", "too late")
    with pytest.raises(Conflict, match="frozen"):
        join(room, "ada", "another name")


def test_a_frozen_board_stands_still_for_learners(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    open_board(room, "ada", "bob")
    race(room, grader, "ada", 2.0)
    # handed in before the freeze, and timed after it
    late = room.submit("bob", "// 1.0").submission
    room.grade(grader)
    room.now_ms = FREEZE_MS + 1
    room.grade(grader, timed(1.0), GPUS[0])
    race(room, grader, "bob", 3.0)
    with room.database.write() as connection:
        who = (room.now_ms, room.instructor)
        regrade(connection, *who, [late], "to see what a regrade does")
    room.grade(grader)
    room.grade(grader, timed(9.0), GPUS[0])
    before = [(1, "Warp Nine")]
    assert (ranks(room, "ada"), shown(room, "ada").shown_ms) == (before, FREEZE_MS)
    assert ranks(room, "grace") == [(1, "bank conflict"), (2, "Warp Nine")]
    leave(room, "ada")
    assert ranks(room, "bob") == []


def test_late_wrong_and_untimed_work_does_not_count(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    open_board(room, "ada", "bob", "cyd")
    room.submit("ada")
    room.grade(grader, facts("wrong", 1))
    room.submit("bob")
    room.grade(grader)
    room.grade(grader, facts("too busy"), GPUS[0])
    room.now_ms = DUE_MS
    race(room, grader, "cyd", 2.0)
    assert ranks(room, "grace") == []
    with room.database.write() as connection:
        times = (room.now_ms + HOUR_MS, room.now_ms + HOUR_MS)
        who = (room.now_ms, room.instructor, room.lab, room.people["cyd"])
        extend(connection, *who, *times, "was ill")
    assert ranks(room, "grace") == [(1, "Ñandú 3")]


def test_the_last_whole_run_counts(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    open_board(room, "ada")
    submission = race(room, grader, "ada", 2.0)
    with room.database.write() as connection:
        who = (room.now_ms, room.instructor)
        regrade(connection, *who, [submission], "the lab was mended")
    # right, and not timed yet: the run has not ended
    room.grade(grader)
    assert shown(room, "ada").entries[0].of_baseline.middle == 2.0
    room.grade(grader, facts("wrong", 1), GPUS[0])
    assert shown(room, "ada").entries == ()
    assert shown(room, "ada").without_time == 1


def test_a_competition_is_of_a_timed_lab_and_freezes_before_it_is_due(
    room: Classroom,
) -> None:
    with room.database.write() as connection:
        lab = publication(connection, room.lab)
        args = (connection, room.now_ms, room.instructor, lab)
        for freezes_ms in (room.now_ms, DUE_MS + 1):
            with pytest.raises(BadRequest, match="ahead"):
                contests.open_competition(*args, freezes_ms)
        first = contests.open_competition(*args)
        assert first.freezes_ms == FREEZE_MS
        # it may be moved while it is ahead
        contests.open_competition(*args, FREEZE_MS - 1)
        late = (connection, FREEZE_MS - 1, room.instructor, lab)
        with pytest.raises(Conflict, match="frozen"):
            contests.open_competition(*late)


def test_without_a_final_the_board_of_the_end_is_everybodys(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    open_board(room, "ada")
    room.now_ms = FREEZE_MS + 1
    race(room, grader, "ada", 2.0)
    with pytest.raises(Conflict, match="due date"):
        end(room)
    assert ranks(room, "ada") == []
    room.now_ms = DUE_MS + 1
    end(room)
    assert ranks(room, "ada") == [(1, "Warp Nine")]


def test_erasing_takes_a_person_off_board_and_final(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    open_board(room, "ada", "bob")
    race(room, grader, "ada", 2.0)
    race(room, grader, "bob", 3.0)
    room.now_ms = DUE_MS + 1
    start_final(room, grader)
    (running,) = room.lease(grader, 0, (GPUS[0],))
    room.finish(grader, running, timed(speed_of(running)))
    with room.database.write() as connection:
        who = (room.now_ms, room.instructor, room.people["bob"])
        erase(connection, *who, "asked for it")
    assert ranks(room, "grace") == [(1, "Warp Nine")]
    left = 0
    while orders := room.lease(grader, 0, (GPUS[0],)):
        assert speed_of(orders[0]) == 2.0
        room.finish(grader, orders[0], timed(2.0))
        left += 1
    assert left >= 2


def test_exports_tell_no_pseudonym(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    open_board(room, "ada")
    race(room, grader, "ada", 2.0)
    room.now_ms = DUE_MS + 1
    start_final(room, grader)
    with room.database.read() as connection:
        lines = [json.loads(line) for line in json_lines(connection, "gpu101")]
    kinds = {line["kind"] for line in lines}
    assert {"competition", "final", "final job"} <= kinds
    assert "Warp Nine" not in json.dumps(lines)


INTERVALS = some.lists(
    some.tuples(*[some.floats(0.1, 10, allow_nan=False)] * 3).map(
        lambda ends: Ratio(*sorted(ends))
    ),
    max_size=12,
)


@given(INTERVALS)
def test_a_rank_is_shared_with_the_leader_alone(ratios: list[Ratio]) -> None:
    placed = ranked({f"{number:02d}": ratio for number, ratio in enumerate(ratios)})
    assert sorted(one.name for one in placed) == sorted(
        f"{number:02d}" for number in range(len(ratios))
    )
    groups: dict[int, list[Ratio]] = {}
    for index, one in enumerate(placed):
        groups.setdefault(one.rank, []).append(one.ratio)
        # as many are before the group as its rank says
        assert placed[one.rank - 1].rank == one.rank <= index + 1
    leaders = {rank: max(r.low for r in group) for rank, group in groups.items()}
    for rank, group in groups.items():
        assert all(ratio.high >= leaders[rank] for ratio in group)
        for later, slower in groups.items():
            if later > rank:
                assert all(ratio.high < leaders[rank] for ratio in slower)


def test_overlaps_make_no_chain() -> None:
    """Each overlaps with the next; only the first two can't be told apart."""
    chain = {name: Ratio(8 - n, 9 - n, 9.5 - n) for n, name in enumerate("abcd")}
    assert [(one.rank, one.name) for one in ranked(chain)] == [
        *((1, "a"), (1, "b"), (3, "c"), (3, "d"))
    ]


def test_rounds_are_one_speed_with_their_own_spread() -> None:
    rounds = [Ratio(m - 1, m, m + 1) for m in (2.0, 2.2, 1.9, 5.0, 2.1)]
    assert of_rounds(rounds) == Ratio(1.9, 2.1, 5.0)

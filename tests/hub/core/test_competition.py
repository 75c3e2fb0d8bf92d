"""Competitions: pseudonyms, ranks, the freeze, and the final on one GPU."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.hub.core.course import DUE_MS, Classroom, facts, timed
from warpbook.hub.competition import contests, entries, finals
from warpbook.hub.competition.board import Board, board
from warpbook.hub.course.courses import add_staff, viewer
from warpbook.hub.course.publications import extend, publication
from warpbook.hub.database.opening import HubDatabase
from warpbook.hub.errors import BadRequest, Conflict
from warpbook.hub.exports.records import json_lines
from warpbook.hub.grader_protocol import Device, Hello, JobOrder, Ratio
from warpbook.hub.keeping.erasing import erase
from warpbook.hub.queue import control, graders
from warpbook.hub.queue.listing import queue
from warpbook.hub.rules.lateness import HOUR_MS
from warpbook.hub.rules.ranks import of_rounds, ranked
from warpbook.hub.work.decisions import regrade
from warpbook.hub.work.marks import marks_of
from warpbook.hub.work.results import results, standing

DATABASES = ("sqlite", "postgres")
FREEZE_MS = DUE_MS - 24 * HOUR_MS
GPUS = ("GPU-one-0", "GPU-one-1")
NAMES = {"ada": "Warp Nine", "bob": "bank conflict", "cyd": "Ñandú 3"}


def open_board(room: Classroom, *names: str) -> None:
    with room.database.write() as connection:
        lab = publication(connection, room.lab)
        contests.open_competition(connection, room.now_ms, room.instructor, lab)
    for name in names:
        join(room, name, NAMES[name])


def join(room: Classroom, name: str, pseudonym: str) -> str:
    with room.database.write() as connection:
        lab, person = publication(connection, room.lab), room.people[name]
        return entries.join(connection, room.now_ms, lab, person, pseudonym)


def leave(room: Classroom, name: str) -> None:
    with room.database.write() as connection:
        entries.leave(connection, room.lab, room.people[name])


def shown(room: Classroom, name: str) -> Board:
    with room.database.read() as connection:
        competition = contests.require(connection, room.lab)
        who = viewer(connection, "gpu101", name)
        return board(connection, room.now_ms, "gpu101", competition, who)


def ranks(room: Classroom, name: str) -> list[tuple[int, str]]:
    return [(entry.rank, entry.pseudonym) for entry in shown(room, name).entries]


def race(room: Classroom, grader: str, name: str, middle: float) -> str:
    """Hand in, and have a GPU time it."""
    submission = room.submit(name, f"// {middle}").submission
    room.grade(grader)
    room.grade(grader, timed(middle), GPUS[0])
    return submission


def start_final(room: Classroom, grader: str, rounds: int = 3) -> finals.Final:
    with room.database.write() as connection:
        lab = publication(connection, room.lab)
        where = (lab, grader, GPUS[0], rounds)
        return finals.start_final(connection, room.now_ms, room.instructor, *where)


def end(room: Classroom) -> None:
    with room.database.write() as connection:
        lab = publication(connection, room.lab)
        contests.end_competition(connection, room.now_ms, room.instructor, lab)


def speed_of(order: JobOrder) -> float:
    """What the source itself says that it reaches."""
    return float(order.source.removeprefix("// "))


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
    with pytest.raises(Conflict, match="called so"):
        join(room, "bob", lookalike)
    # one's own may be written differently
    join(room, "ada", lookalike)


@pytest.mark.parametrize("name", ["cyd", "Cyd Charisse", "GRACE"])
def test_nobody_joins_by_the_name_of_another(room: Classroom, name: str) -> None:
    open_board(room)
    with pytest.raises(Conflict, match="called so"):
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


def test_a_final_measures_everybody_in_turns_on_one_gpu(room: Classroom) -> None:
    grader = room.grader(gpus=2)
    other = room.grader("two", gpus=1)
    open_board(room, "ada", "bob", "cyd")
    race(room, grader, "ada", 2.0)
    best = race(room, grader, "ada", 2.5)
    race(room, grader, "bob", 2.4)
    race(room, grader, "cyd", 1.0)
    with room.database.read() as connection:
        before = standing(connection, best)
        marks = marks_of(connection, "gpu101", room.people["ada"])
    with pytest.raises(Conflict, match="due date"):
        start_final(room, grader)
    room.now_ms = DUE_MS + 1
    assert start_final(room, grader).jobs == 9
    room.submit("bob", "// late")
    room.grade(grader)
    # the final's own GPU is for it alone, and no other takes part
    assert room.lease(other, 0, ("GPU-two-0",))[0].source == "// late"
    assert room.lease(grader, 0, (GPUS[1],)) == ()
    drawn: list[str] = []
    for _ in range(9):
        (order,) = room.lease(grader, 0, (GPUS[0],))
        assert room.lease(grader, 0, (GPUS[0],)) == ()
        drawn.append(order.source)
        # one is faster now than when it was handed in
        middle = speed_of(order) + (0.5 if order.source == "// 2.4" else 0.0)
        assert room.finish(grader, order, timed(middle)).is_accepted
    rounds = [sorted(drawn[start : start + 3]) for start in (0, 3, 6)]
    assert rounds == [["// 1.0", "// 2.4", "// 2.5"]] * 3
    assert room.lease(grader, 0, (GPUS[0],)) == ()
    # marks and results are what they were
    with room.database.read() as connection:
        assert standing(connection, best) == before
        assert marks_of(connection, "gpu101", room.people["ada"]) == marks
        assert [result.run for result in results(connection, best)] == [1, 1]
    # learners see nothing of it until the end
    assert (shown(room, "ada").final, shown(room, "ada").final_entries) == (None, ())
    staff = shown(room, "grace")
    assert staff.final is not None
    assert (staff.final.done, staff.final.jobs) == (9, 9)
    # what is late holds nothing up, though it still runs
    end(room)
    final = [
        (entry.rank, entry.pseudonym) for entry in shown(room, "cyd").final_entries
    ]
    assert final == [(1, "bank conflict"), (2, "Warp Nine"), (3, "Ñandú 3")]
    # those of the submissions stay beside them
    assert ranks(room, "cyd") == [
        (1, "Warp Nine"),
        (1, "bank conflict"),
        (3, "Ñandú 3"),
    ]
    with pytest.raises(Conflict, match="ended"):
        start_final(room, grader)


def test_a_final_goes_on_where_it_was_after_kills(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    open_board(room, "ada", "bob")
    race(room, grader, "ada", 2.0)
    race(room, grader, "bob", 3.0)
    room.now_ms = DUE_MS + 1
    start_final(room, grader)
    (first,) = room.lease(grader, 0, (GPUS[0],))
    room.finish(grader, first, timed(speed_of(first)))
    (second,) = room.lease(grader, 0, (GPUS[0],))
    # the service is killed and begins anew, then the grader
    room.database.close()
    room.database = HubDatabase(room.database.path)
    with room.database.write() as connection:
        hello = Hello(1, (Device(GPUS[0], "H100"),))
        graders.hello(connection, room.now_ms, grader, hello)
    (again,) = room.lease(grader, 0, (GPUS[0],))
    assert (again.job, again.fence) == (second.job, second.fence + 1)
    assert not room.finish(grader, second).is_accepted
    assert room.finish(grader, again, timed(speed_of(again))).is_accepted
    for _ in range(4):
        (order,) = room.lease(grader, 0, (GPUS[0],))
        room.finish(grader, order, timed(speed_of(order)))
    final = [(one.rank, one.pseudonym) for one in shown(room, "grace").final_entries]
    assert final == [(1, "bank conflict"), (2, "Warp Nine")]


def test_the_order_of_a_final_waits_for_a_busy_gpu(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    open_board(room, "ada", "bob")
    race(room, grader, "ada", 2.0)
    race(room, grader, "bob", 3.0)
    room.now_ms = DUE_MS + 1
    start_final(room, grader)
    (first,) = room.lease(grader, 0, (GPUS[0],))
    room.finish(grader, first, facts("too busy"))
    assert room.lease(grader, 0, (GPUS[0],)) == ()
    room.now_ms += 60_000
    (again,) = room.lease(grader, 0, (GPUS[0],))
    assert again.job == first.job


def test_a_final_that_is_begun_anew_replaces_the_one_before(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    open_board(room, "ada")
    race(room, grader, "ada", 2.0)
    room.now_ms = DUE_MS + 1
    start_final(room, grader)
    (first,) = room.lease(grader, 0, (GPUS[0],))
    again = start_final(room, grader, 4)
    assert (again.number, again.jobs) == (2, 4)
    assert not room.finish(grader, first, timed(9.0)).is_accepted
    middles = (2.1, 2.2, 2.3, 9.9)
    for middle in middles:
        (order,) = room.lease(grader, 0, (GPUS[0],))
        room.finish(grader, order, timed(middle))
    [entry] = shown(room, "grace").final_entries
    assert entry.of_baseline == Ratio(2.1, 2.25, 9.9)


def test_the_end_waits_for_what_counts(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    open_board(room, "ada")
    race(room, grader, "ada", 2.0)
    room.submit("ada", "// 3.0")
    room.now_ms = DUE_MS + 1
    for begin in (lambda: start_final(room, grader), lambda: end(room)):
        with pytest.raises(Conflict, match="not graded yet: 1"):
            begin()
    room.grade(grader)
    room.grade(grader, timed(3.0), GPUS[0])
    start_final(room, grader)
    with pytest.raises(Conflict, match="not graded yet: 1"):
        end(room)
    with room.database.write() as connection:
        for job in queue(connection, room.now_ms, "gpu101"):
            who = (room.now_ms, room.instructor)
            control.cancel(connection, *who, job.job, "the GPU is needed")
    end(room)
    # without three rounds there is no final speed
    assert (shown(room, "ada").final_entries, ranks(room, "ada")) == (
        (),
        [(1, "Warp Nine")],
    )


def test_a_final_needs_a_gpu_that_is_there(room: Classroom) -> None:
    grader = room.grader(gpus=1)
    open_board(room, "ada")
    room.now_ms = DUE_MS + 1
    with pytest.raises(Conflict, match="Nobody"):
        start_final(room, grader)
    with pytest.raises(Conflict, match="Choose another"):
        start_final(room, room.grader("two", gpus=1))
    with pytest.raises(BadRequest, match="3 to 15"):
        start_final(room, grader, 2)


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

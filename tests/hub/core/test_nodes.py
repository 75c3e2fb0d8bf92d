"""Nodes: what agents tell is counted once, bounded, and shown as it is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from sqlalchemy import func, select

from tests.hub.core.course import Classroom
from warpbook.hub.course.courses import Course, create_course
from warpbook.hub.database import settings
from warpbook.hub.database.node_tables import (
    GPU_SPANS,
    HOLDER_SPANS,
    NODE_GPUS,
    NODE_HOLDERS,
    NODE_STREAMS,
    NODES,
)
from warpbook.hub.errors import BadRequest, Conflict, Forbidden
from warpbook.hub.keeping.erasing import erase
from warpbook.hub.lease_protocol import KeptGpu, Report
from warpbook.hub.leases import asking, granting
from warpbook.hub.nodes import campus, history, registry, taking
from warpbook.hub.nodes.campus import CampusGpu
from warpbook.hub.nodes.history import CourseEnergy
from warpbook.hub.nodes.taking import HOUR_MS, MINUTE_MS, take
from warpbook.hub.service.pages.campus_page import strip
from warpbook_monitors.holders.node_protocol import (
    GpuShare,
    Holder,
    HolderShare,
    Interval,
    Intervals,
    Taken,
    Workload,
)

DATABASES = ("sqlite", "postgres")
STREAM, OTHER_STREAM = "a" * 32, "b" * 32
SECONDS_MS = 15_000
NOBODY = Workload()


def holder(account: str = "", hub_user: str = "", uid: int | None = 1007) -> Holder:
    return Holder(uid, account, hub_user, NOBODY)


def share(who: Holder, energy_mj: int | None = 1500, **more: Any) -> HolderShare:
    made = HolderShare(who, 1, 1 << 30, SECONDS_MS, 7500, energy_mj, None, True)
    return replace(made, **more)


def gpu(*holders: HolderShare, uuid: str = "GPU-1", **more: Any) -> GpuShare:
    made = GpuShare(
        *(uuid, 0, "H100", "ok", "", SECONDS_MS, 9000, 6000, 3000, 3000),
        *(1 << 30, 80 << 30, None, True, tuple(holders)),
    )
    return replace(made, **more)


class Node:
    """A node's agent, whose clock may be wrong."""

    def __init__(self, room: Classroom, name: str = "n7", ahead_ms: int = 0) -> None:
        self.room, self.ahead_ms = room, ahead_ms
        with room.database.write() as connection:
            self.token = registry.register(
                connection, room.now_ms, room.instructor, name
            )
            self.id = registry.authenticate(connection, self.token)

    def interval(self, number: int, *gpus: GpuShare, stream: str = STREAM) -> Interval:
        """Give one that has just ended."""
        end_ms = self.room.now_ms + self.ahead_ms
        return Interval(stream, number, end_ms - SECONDS_MS, end_ms, gpus)

    def send(self, *intervals: Interval, dropped: int = 0) -> Taken:
        sent_ms = self.room.now_ms + self.ahead_ms
        message = Intervals(sent_ms, dropped, intervals)
        with self.room.database.write() as connection:
            return take(connection, self.room.now_ms, self.id, message)

    def tell(self, number: int, *gpus: GpuShare) -> Taken:
        return self.send(self.interval(number, *gpus))

    def board(self) -> tuple[CampusGpu, ...]:
        (node,) = ask(self.room, campus.campus)
        return node.gpus


def ask(room: Classroom, question: Any) -> Any:
    with room.database.read() as connection:
        return question(connection, room.now_ms)


def sums(room: Classroom, width_ms: int) -> tuple[int, int, int]:
    """Time read, GPUs' energy and holders' energy, in all."""
    with room.database.read() as connection:
        of_gpus = select(
            func.sum(GPU_SPANS.c.read_ms), func.sum(GPU_SPANS.c.energy_mj)
        ).where(GPU_SPANS.c.width_ms == width_ms)
        of_holders = select(func.sum(HOLDER_SPANS.c.energy_mj)).where(
            HOLDER_SPANS.c.width_ms == width_ms
        )
        read_ms, energy_mj = connection.execute(of_gpus).one()
        held_mj = connection.execute(of_holders).scalar()
    return int(read_ms or 0), int(energy_mj or 0), int(held_mj or 0)


def count(room: Classroom, table: Any) -> int:
    with room.database.read() as connection:
        query = select(func.count()).select_from(table)
        return int(connection.execute(query).scalar_one())


def test_each_interval_counts_once_however_often_it_comes(room: Classroom) -> None:
    node = Node(room)
    first = node.interval(1, gpu(share(holder("ada"))))
    second = node.interval(2, gpu(share(holder("ada"))))
    for batch in ((first,), (first, second), (first, second), (second,)):
        assert node.send(*batch) == Taken(0)
    # another start of the agent counts from one again
    node.send(node.interval(1, gpu(share(holder("ada"))), stream=OTHER_STREAM))
    node.send(first)
    for width_ms in (MINUTE_MS, HOUR_MS):
        assert sums(room, width_ms) == (3 * SECONDS_MS, 9000, 4500)


def test_a_gap_in_the_numbers_is_no_hindrance(room: Classroom) -> None:
    node = Node(room)
    node.tell(1, gpu())
    assert node.send(node.interval(900, gpu()), dropped=898) == Taken(0)
    (info,) = ask(room, registry.nodes)
    assert (info.dropped, info.is_heard) == (898, True)
    assert sums(room, HOUR_MS)[0] == 2 * SECONDS_MS


def test_a_wrong_clock_of_a_node_is_put_right(room: Classroom) -> None:
    day_ms = 24 * HOUR_MS
    node = Node(room, ahead_ms=-300 * day_ms)
    idle_ms = room.now_ms + node.ahead_ms - HOUR_MS
    node.tell(
        1, gpu(share(holder("ada"), idle_since_ms=idle_ms), idle_since_ms=idle_ms)
    )
    (shown,) = node.board()
    assert (shown.state, shown.seen_ms) == ("idle", room.now_ms)
    assert shown.idle_since_ms == room.now_ms - HOUR_MS
    assert shown.holders[0].idle_since_ms == room.now_ms - HOUR_MS


def test_what_can_not_have_been_is_not_counted(room: Classroom) -> None:
    node = Node(room)
    good = node.interval(1, gpu(share(holder("ada"))))
    wrong = [
        replace(good, to_ms=good.from_ms),
        replace(good, from_ms=good.to_ms - 200_000),
        replace(good, from_ms=good.from_ms + HOUR_MS, to_ms=good.to_ms + HOUR_MS),
        replace(good, from_ms=good.from_ms - 9 * history.WEEK_MS, to_ms=1),
        replace(good, gpus=(gpu(read_ms=90_000),)),
        replace(good, gpus=(gpu(active_ms=SECONDS_MS + 1),)),
        replace(good, gpus=(gpu(share(holder("ada"), held_ms=90_000)),)),
        replace(good, gpus=(gpu(share(holder("ada"), busy_ms=SECONDS_MS + 1)),)),
    ]
    numbered = [replace(one, number=place) for place, one in enumerate(wrong, 1)]
    assert node.send(*numbered) == Taken(len(wrong))
    assert count(room, GPU_SPANS) == 0
    # and is not asked for again
    assert node.send(*numbered) == Taken(0)
    assert node.send(replace(good, number=9)) == Taken(0)
    assert sums(room, HOUR_MS)[0] == SECONDS_MS


@pytest.mark.parametrize(
    "change",
    [
        {"stream": "x"},
        {"number": 0},
        {"gpus": [msgspec.to_builtins(gpu())] * 33},
        {"gpus": [{**msgspec.to_builtins(gpu()), "energy_mj": 10**13}]},
        {"gpus": [{**msgspec.to_builtins(gpu()), "state": "odd"}]},
        {"gpus": [{**msgspec.to_builtins(gpu()), "name": "x" * 101}]},
        {"gpus": [{**msgspec.to_builtins(gpu()), "active_ms": -1}]},
        {"hints": []},
    ],
)
def test_a_message_is_bounded_by_its_types(change: dict[str, Any]) -> None:
    plain = msgspec.to_builtins(Interval(STREAM, 1, 0, 1, ()))
    body = {"sent_ms": 0, "dropped": 0, "intervals": [{**plain, **change}]}
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(body, Intervals)


def test_a_node_has_so_many_gpus_and_streams_and_no_more(room: Classroom) -> None:
    node = Node(room)
    for number in range(1, 5):
        more = [gpu(uuid=f"GPU-{number}-{place}") for place in range(32)]
        node.tell(number, *more)
    assert len(node.board()) == 64
    assert sums(room, HOUR_MS)[0] == 64 * SECONDS_MS
    for first in range(0, 520, 20):
        room.now_ms += 1
        starts = [f"{place:032x}" for place in range(first, first + 20)]
        node.send(*(node.interval(1, stream=stream) for stream in starts))
    assert count(room, NODE_STREAMS) == 500


def test_facts_name_people_claims_are_said_and_others_are_a_uid(
    room: Classroom,
) -> None:
    node = Node(room)
    holders = [
        share(holder("ada", "ada")),
        share(holder("jovyan", "bob", uid=1000)),
        # who says that they are somebody else
        share(holder("cyd", "ada", uid=1009)),
        share(holder("stranger", "stranger", uid=4711)),
        share(holder(uid=None)),
    ]
    node.tell(1, gpu(*holders))
    (shown,) = node.board()
    assert [(one.username, one.uid, one.claim) for one in shown.holders] == [
        ("ada", 1007, None),
        (None, 1000, "bob"),
        ("cyd", 1009, "ada"),
        (None, 4711, None),
        (None, None, None),
    ]
    with room.database.read() as connection:
        rows = connection.execute(select(NODE_HOLDERS)).all()
    # names of people whom the hub does not know are not kept
    assert "stranger" not in str(rows)
    unit = Holder(4712, "alien", "", Workload("systemd", "jupyter-alien.service"))
    node.tell(2, gpu(share(unit)))
    with room.database.read() as connection:
        assert "alien" not in str(connection.execute(select(NODE_HOLDERS)).all())


def test_stale_and_lost_are_states_and_no_zeros(room: Classroom) -> None:
    node = Node(room)
    dead = gpu(uuid="GPU-2", state="lost", why="It fell off the bus.", index=1)
    unsure = gpu(
        share(holder("ada"), busy_ms=None),
        uuid="GPU-3",
        active_ms=None,
        sm_ms=None,
        tensor_ms=None,
        index=2,
    )
    unlisted = gpu(uuid="GPU-4", idle_since_ms=1, is_listed=False, index=3)
    node.tell(1, gpu(share(holder("ada"))), dead, unsure, unlisted)
    works, unread, held, unknown = node.board()
    assert (unknown.state, unknown.holders) == ("unknown", None)
    assert (works.state, works.active_ratio) == ("works", 0.6)
    assert (unread.state, unread.why) == ("unread", "It fell off the bus.")
    assert (unread.active_ratio, unread.memory_used_bytes) == (None, None)
    assert (held.state, held.active_ratio) == ("held", None)
    # one that is told of no more, while the others are
    room.now_ms += 200_000
    node.tell(2, gpu(idle_since_ms=1))
    assert [one.state for one in node.board()] == ["free", "lost", "lost", "lost"]
    room.now_ms += 200_000
    shown = node.board()
    assert {one.state for one in shown} == {"lost"}
    assert shown[0].holders is None
    (week,) = ask(room, history.weeks).values()
    assert week.count(None) == len(week) - 1
    (hour, *_) = ask(room, history.hours).values()
    assert [ratio for ratio in hour if ratio is not None] == [0.6, 0.6]


def test_what_waited_in_a_spool_is_the_past(room: Classroom) -> None:
    node = Node(room)
    old = node.interval(1, gpu(share(holder("ada"))))
    room.now_ms += 3 * HOUR_MS
    node.send(node.interval(1, gpu(idle_since_ms=1), stream=OTHER_STREAM), old)
    (shown,) = node.board()
    assert (shown.state, shown.holders) == ("free", ())
    (week,) = ask(room, history.weeks).values()
    assert [ratio for ratio in week if ratio is not None] == [0.6, 0.6]
    assert week.index(0.6) == len(week) - 4


def test_a_courses_energy_is_of_its_members_and_its_grading(room: Classroom) -> None:
    with room.database.write() as connection:
        create_course(connection, room.now_ms, "hub", Course("other", "Other"))
    node = Node(room)
    node.tell(
        1,
        gpu(
            share(holder("ada"), 1000),
            share(holder("bob", "ada", uid=2), 2000),
            share(holder("jovyan", "cyd", uid=1000), 4000),
            share(holder("jovyan", "nobody", uid=1000), 8000),
            share(holder("ada", uid=3), None),
        ),
    )
    # a claim does not take from whom the account is
    energy = CourseEnergy("gpu101", 3.0, 4.0, None)
    assert ask(room, history.energy_of_courses) == [energy]
    grader = room.grader(gpus=1)
    room.submit("ada")
    (order,) = room.lease(grader)
    room.finish(grader, order)
    with room.database.write() as connection:
        connection.exec_driver_sql("UPDATE results SET energy_mj = 16000")
    assert ask(room, history.energy_of_courses) == [replace(energy, grading_j=16.0)]
    room.now_ms += 2 * history.WEEK_MS
    assert ask(room, history.energy_of_courses) == []


def test_hours_are_kept_as_long_as_is_set_and_minutes_two_days(
    room: Classroom,
) -> None:
    node = Node(room)
    node.tell(1, gpu(share(holder("ada"))))
    room.now_ms += 3 * 24 * HOUR_MS
    node.tell(2, gpu())
    with room.database.read() as connection:
        query = select(GPU_SPANS.c.width_ms).order_by(GPU_SPANS.c.width_ms)
        widths = list(connection.execute(query).scalars())
    assert widths == [MINUTE_MS, HOUR_MS, HOUR_MS]
    with room.database.write() as connection:
        with pytest.raises(BadRequest):
            registry.keep_weeks(connection, room.now_ms, room.instructor, 0)
        registry.keep_weeks(connection, room.now_ms, room.instructor, 2)
    room.now_ms += 3 * history.WEEK_MS
    node.tell(3, gpu())
    assert (count(room, HOLDER_SPANS), count(room, NODE_HOLDERS)) == (0, 0)
    assert (count(room, GPU_SPANS), count(room, NODE_GPUS)) == (2, 1)


def test_minutes_of_unknown_activity_make_an_hour_no_idler(room: Classroom) -> None:
    node = Node(room)
    # both end within one hour
    room.now_ms = room.now_ms // HOUR_MS * HOUR_MS + 10 * MINUTE_MS
    node.tell(1, gpu(read_ms=SECONDS_MS, active_ms=SECONDS_MS // 2))
    room.now_ms += MINUTE_MS
    node.tell(2, gpu(read_ms=SECONDS_MS, active_ms=None))
    (ratios,) = ask(room, history.weeks).values()
    assert [ratio for ratio in ratios if ratio is not None] == [0.5]


def test_a_retired_node_goes_when_nothing_of_it_is_left(room: Classroom) -> None:
    node = Node(room)
    node.tell(1, gpu(share(holder("ada"))))
    for later_ms, kept in ((HOUR_MS, 1), (9 * history.WEEK_MS, 0)):
        room.now_ms += later_ms
        with room.database.write() as connection:
            if kept:
                registry.retire(connection, room.now_ms, room.instructor, node.id)
            taking.prune(connection, room.now_ms)
        assert count(room, NODES) == kept


def test_a_void_token_and_a_retired_node_open_nothing(room: Classroom) -> None:
    node = Node(room)
    node.tell(1, gpu())
    again = Node(room)
    assert again.id == node.id
    with room.database.write() as connection:
        for token in (node.token, "", "x" * 5000, "ä"):
            with pytest.raises(Forbidden):
                registry.authenticate(connection, token)
        registry.retire(connection, room.now_ms, room.instructor, node.id)
        with pytest.raises(Forbidden):
            registry.authenticate(connection, again.token)
        with pytest.raises(Conflict):
            registry.retire(connection, room.now_ms, room.instructor, node.id)
        for name in ("", "a b", "-x", "x" * 64):
            with pytest.raises(BadRequest):
                registry.register(connection, room.now_ms, room.instructor, name)
    assert ask(room, campus.campus) == []


def test_a_gpu_that_the_hub_leased_says_so(room: Classroom) -> None:
    node = Node(room)
    node.tell(1, gpu())
    kept = Report("n7", (KeptGpu("GPU-1", "H100", "", True, None, None),), 0)
    with room.database.write() as connection:
        granting.report(connection, room.now_ms, kept)
        asking.take(connection, room.now_ms, "gpu101", room.people["ada"], 20)
        granting.report(connection, room.now_ms, kept)
    assert node.board()[0].use == "leased"


def test_who_is_erased_is_nowhere(room: Classroom) -> None:
    node = Node(room)
    unit = Holder(1000, "jovyan", "ada", Workload("systemd", "jupyter-ada.service"))
    node.tell(1, gpu(share(holder("ada")), share(unit), share(holder("bob", uid=2))))
    with room.database.write() as connection:
        ada = room.people["ada"]
        erase(connection, room.now_ms, room.instructor, ada, "asked for it")
        rows = connection.execute(select(NODE_HOLDERS)).all()
    assert [row.uid for row in rows] == [2]
    (shown,) = node.board()
    assert [one.username for one in shown.holders] == ["bob"]
    # what somebody else did who said to be them stays theirs
    node.tell(2, gpu(share(holder("cyd", "bob", uid=3))))
    with room.database.write() as connection:
        bob = room.people["bob"]
        erase(connection, room.now_ms, room.instructor, bob, "asked for it")
        rows = connection.execute(select(NODE_HOLDERS)).all()
    assert [(row.uid, row.claimant) for row in rows] == [(3, None)]


def test_what_a_gpu_did_stays_when_its_holder_is_erased(room: Classroom) -> None:
    node = Node(room)
    node.tell(1, gpu(share(holder("ada")), share(holder("bob", uid=2))))
    with room.database.write() as connection:
        ada = room.people["ada"]
        erase(connection, room.now_ms, room.instructor, ada, "asked for it")
    # what the GPU did is nobody's
    assert sums(room, HOUR_MS) == (SECONDS_MS, 3000, 1500)


def test_pruning_does_not_wait_for_a_clock_that_was_set_back(room: Classroom) -> None:
    node = Node(room)
    with room.database.write() as connection:
        settings.put(connection, "nodes_pruned_ms", str(room.now_ms + HOUR_MS))
    node.tell(1, gpu())
    with room.database.read() as connection:
        assert settings.get(connection, "nodes_pruned_ms") == str(room.now_ms)


def test_a_strip_says_what_it_shows() -> None:
    drawn = strip((None, 0.0, 0.5, 1.0), lambda place: f"cell {place}", "hours")
    words = "active 50 % of the time, most 100 % (cell 3); 1 of 4 hours not known"
    assert f'aria-label="{words}"' in drawn
    for level in ("-none", "0", "3", "4"):
        assert f'class="heat{level}"' in drawn
    assert "<title>cell 0: not known</title>" in drawn
    empty = strip((None, None), str, "minutes")
    assert 'aria-label="nothing known of 2 minutes"' in empty

"""GPU leases: who gets one, when it ends, and what graders and sessions keep."""

from __future__ import annotations

import pytest

from tests.hub.core.course import Classroom
from warpbook.hub_protocol import KeptGpu, OwnLease, Report
from warpbook_hub.course.courses import Course, create_course
from warpbook_hub.errors import BadRequest, Conflict, Forbidden
from warpbook_hub.keeping.erasure import erase
from warpbook_hub.leases import board, calendar, grants, requests
from warpbook_hub.leases.calendar import MINUTE_MS, GpuSession

IDLE_MS = 10 * MINUTE_MS


class Gpus:
    """The keeper's reports, of GPUs that a test says things of."""

    def __init__(self, room: Classroom, *names: str) -> None:
        self.room = room
        self.clear = dict.fromkeys(names, True)
        self.busy: dict[str, bool | None] = {}
        self.energy_mj = 0
        self.report()

    def report(self, minutes: float = 0) -> dict[str, str]:
        """Let time pass and report once; give who is granted what."""
        self.room.now_ms += int(minutes * MINUTE_MS)
        gpus = tuple(
            KeptGpu(name, "H100", "", is_clear, self.busy.get(name), self.energy_mj)
            for name, is_clear in self.clear.items()
        )
        with self.room.database.write() as connection:
            orders = grants.report(
                connection, self.room.now_ms, Report("node", gpus, IDLE_MS)
            )
        granted = {grant.gpu: grant.username for grant in orders.grants}
        # as the keeper then does, and its next report finds
        self.clear = {name: name not in granted for name in self.clear}
        return granted

    def take(self, name: str, minutes: int = 20, course: str = "gpu101") -> OwnLease:
        # nobody comes at the same moment
        self.room.now_ms += 1
        return self._do(requests.take, course, self.room.people[name], minutes)

    def extend(self, name: str, minutes: int) -> OwnLease:
        return self._do(requests.extend, self.room.people[name], minutes)

    def give_back(self, name: str) -> OwnLease:
        return self._do(requests.give_back, self.room.people[name])

    def own(self, name: str) -> OwnLease:
        return self._do(requests.own_lease, self.room.people[name])

    def reserve(self, course: str, in_minutes: int, gpus: int = 1) -> GpuSession:
        starts_ms = self.room.now_ms + in_minutes * MINUTE_MS
        wanted = GpuSession("", course, "lab", gpus, starts_ms, starts_ms + 3_600_000)
        return self._do(calendar.reserve, self.room.instructor, wanted)

    def _do(self, function, *given):
        with self.room.database.write() as connection:
            return function(connection, self.room.now_ms, *given)


@pytest.fixture
def gpus(room: Classroom) -> Gpus:
    return Gpus(room, "GPU-0")


def test_a_lease_is_given_and_ends_in_its_time(gpus: Gpus) -> None:
    assert gpus.take("ada", 20).state == "waiting"
    assert gpus.report() == {"GPU-0": "ada"}
    assert gpus.own("ada").left_s == 20 * 60
    assert gpus.report(19) == {"GPU-0": "ada"}
    assert "ends soon" in gpus.own("ada").note
    assert gpus.report(1) == {}
    assert gpus.own("ada").state == "ending"
    gpus.energy_mj = 5_000
    gpus.report()
    assert gpus.own("ada") == OwnLease(
        "none", note="Your last lease ended: Its time was over."
    )
    with gpus.room.database.read() as connection:
        (use,) = board.use_of_courses(connection, gpus.room.now_ms)
    assert (use.leases, use.joules) == (1, 5.0)


def test_nobody_waits_for_a_gpu_where_none_is_leased(room: Classroom) -> None:
    none = Gpus(room)
    with pytest.raises(Conflict, match="leases no GPUs"):
        none.take("ada")
    assert none.own("ada") == OwnLease("none")
    with pytest.raises(Conflict, match="No GPU can be reserved"):
        none.reserve("gpu101", 60)


def test_a_gpu_is_nobodys_until_it_is_clear(gpus: Gpus) -> None:
    """A process that holds on to a GPU keeps everybody from it, and is waited for."""
    gpus.take("ada", 10)
    gpus.report()
    gpus.take("bob")
    assert gpus.report(10) == {}
    gpus.clear["GPU-0"] = False
    assert gpus.report() == {}
    assert gpus.own("bob").state == "waiting"
    gpus.clear["GPU-0"] = True
    assert gpus.report() == {"GPU-0": "bob"}


def test_one_lease_each_and_who_used_least_comes_first(gpus: Gpus) -> None:
    gpus.take("ada", 10)
    gpus.report()
    with pytest.raises(Conflict, match="You have a GPU"):
        gpus.take("ada")
    # ada comes back first, and has used ten minutes
    gpus.give_back("ada")
    gpus.report(5)
    gpus.report()
    gpus.clear["GPU-0"] = False
    gpus.take("ada")
    gpus.take("bob")
    gpus.take("cyd", 30)
    assert [gpus.own(name).place for name in ("bob", "cyd", "ada")] == [1, 2, 3]
    gpus.clear["GPU-0"] = True
    assert gpus.report() == {"GPU-0": "bob"}
    assert round(gpus.own("cyd").eta_s / 60) == 20
    assert round(gpus.own("ada").eta_s / 60) == 50
    # once more changes the wish and not the place
    assert gpus.take("cyd", 10).place == 1
    assert round(gpus.own("ada").eta_s / 60) == 30


def test_idle_gpus_are_taken_back_after_a_warning(gpus: Gpus) -> None:
    gpus.take("ada", 30)
    gpus.report()
    gpus.busy["GPU-0"] = True
    gpus.report(4)
    gpus.busy["GPU-0"] = False
    gpus.report(4)
    assert gpus.own("ada").note == ""
    gpus.report(1)
    assert "No work for 5 minutes: after 10" in gpus.own("ada").note
    assert gpus.report(4.9) == {"GPU-0": "ada"}
    assert gpus.report(0.1) == {}
    gpus.report()
    assert "No work for 10 minutes" in gpus.own("ada").note


def test_unknown_work_is_no_idleness(gpus: Gpus) -> None:
    gpus.take("ada", 30)
    for _ in range(15):
        assert gpus.report(1) == {"GPU-0": "ada"}


def test_extending_is_for_when_nobody_waits(gpus: Gpus) -> None:
    with pytest.raises(Conflict, match="no GPU"):
        gpus.extend("ada", 10)
    gpus.take("ada", 10)
    gpus.report()
    assert gpus.extend("ada", 30).left_s == 30 * 60
    gpus.take("bob")
    with pytest.raises(Conflict, match="Others wait"):
        gpus.extend("ada", 30)
    gpus.give_back("bob")
    assert gpus.own("bob").state == "none"
    with pytest.raises(BadRequest, match="10 to 30"):
        gpus.extend("ada", 31)


def test_a_session_of_staff_finds_its_gpus(room: Classroom) -> None:
    gpus = Gpus(room, "GPU-0", "GPU-1")
    with room.database.write() as connection:
        create_course(connection, room.now_ms, "hub", Course("other", "Other"))
    session = gpus.reserve("other", 25)
    with pytest.raises(Conflict, match="Of 2 GPUs 1 are reserved"):
        gpus.reserve("gpu101", 25, 2)
    # two are free now, and one has to be in 25 minutes
    gpus.take("ada", 30)
    gpus.take("bob", 30)
    gpus.report()
    left_s = {name: gpus.own(name).left_s for name in ("ada", "bob")}
    assert sorted(round(seconds / 60) for seconds in left_s.values()) == [25, 30]
    shorter = min(left_s, key=left_s.__getitem__)
    with pytest.raises(Conflict, match="session begins"):
        gpus.extend(shorter, 30)
    gpus.report(25)
    gpus.take("cyd", 10)
    assert list(gpus.report().values()) != [shorter]
    assert gpus.own("cyd").state == "waiting"
    # of the course that has it reserved
    gpus.take(shorter, 10, "other")
    assert shorter in gpus.report().values()
    with room.database.write() as connection:
        calendar.cancel(connection, room.now_ms, room.instructor, "other", session.id)
        assert calendar.sessions(connection, 0, 2**50) == []


def test_less_than_ten_minutes_before_a_session_nothing_is_given(gpus: Gpus) -> None:
    with gpus.room.database.write() as connection:
        create_course(connection, gpus.room.now_ms, "hub", Course("other", "Other"))
    gpus.reserve("other", 9)
    gpus.take("ada", 10)
    assert gpus.report() == {}


def test_graded_and_leased_gpus_are_never_the_same(room: Classroom) -> None:
    grader = room.grader("one", gpus=1)
    gpu = "GPU-one-0"
    gpus = Gpus(room, gpu)
    room.submit("ada")
    room.grade(grader)
    # leased: the grader gets nothing on it
    gpus.take("bob", 10)
    assert gpus.report() == {gpu: "bob"}
    assert room.lease(grader, 0, (gpu,)) == ()
    gpus.report(10)
    # nor while it is taken back
    assert room.lease(grader, 0, (gpu,)) == ()
    gpus.report()
    (order,) = room.lease(grader, 0, (gpu,))
    # graded: nobody gets it
    gpus.take("cyd", 10)
    assert gpus.report() == {}
    with room.database.read() as connection:
        assert board.gpus(connection, room.now_ms)[0].state == "grades"
    room.finish(grader, order)
    assert gpus.report() == {gpu: "cyd"}


def test_who_leaves_loses_the_gpu(gpus: Gpus) -> None:
    gpus.take("ada")
    gpus.report()
    room = gpus.room
    with room.database.write() as connection:
        erase(connection, room.now_ms, room.instructor, room.people["ada"], "asked")
    assert gpus.report() == {}
    with room.database.read() as connection:
        # until the keeper has done so
        assert grants.leased_gpus(connection) == {"GPU-0"}
    gpus.report()
    with room.database.read() as connection:
        assert grants.leased_gpus(connection) == set()


def test_a_lost_keeper_is_told_as_a_state(gpus: Gpus) -> None:
    gpus.take("ada")
    gpus.room.now_ms += calendar.HEARD_MS
    with gpus.room.database.read() as connection:
        (gpu,) = board.gpus(connection, gpus.room.now_ms)
    assert gpu.state == "lost"
    assert gpus.own("ada").eta_s is None


def test_only_the_last_token_is_the_keepers(room: Classroom) -> None:
    with room.database.write() as connection:
        with pytest.raises(Forbidden):
            grants.check_keeper(connection, "")
        old = grants.register_keeper(connection)
        new = grants.register_keeper(connection)
        grants.check_keeper(connection, new)
        with pytest.raises(Forbidden):
            grants.check_keeper(connection, old)

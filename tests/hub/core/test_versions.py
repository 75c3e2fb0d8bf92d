"""A mended lab is published again: dates stay, and what was parked is graded."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from sqlalchemy import select

from tests.hub.core.course import LAB_DIGEST, Classroom
from warpbook.hub_protocol import (
    Device,
    GradableLab,
    Heartbeat,
    Hello,
    JobOrder,
    LeaseName,
    Release,
)
from warpbook_hub.course.courses import course, viewer
from warpbook_hub.course.publications import Publication, publication
from warpbook_hub.course.versions import changed_files, keep_files, kept_files
from warpbook_hub.database.tables import JOBS
from warpbook_hub.queue import completion, graders
from warpbook_hub.queue.coverage import Coverage, LabCover
from warpbook_hub.queue.dispatch import LEASE_S
from warpbook_hub.service.admitted import Admitted
from warpbook_hub.service.api.courses import publish_this_version
from warpbook_hub.service.pages.words import cover_words
from warpbook_hub.service.parameters import VersionToPublish

DATABASES = ("sqlite", "postgres")
MENDED = "cd" * 32


def say_labs(room: Classroom, grader: str, *labs: GradableLab) -> None:
    hello = Hello(2, (Device("GPU-1", "NVIDIA H200"),), labs)
    with room.database.write() as connection:
        graders.hello(connection, room.now_ms, grader, hello)


def cover(room: Classroom) -> LabCover:
    with room.database.read() as connection:
        return Coverage(connection, room.now_ms).of("vector-add")


def states(room: Classroom) -> Counter[str]:
    with room.database.read() as connection:
        return Counter(connection.execute(select(JOBS.c.state)).scalars())


def publish_anew(room: Classroom, again: Literal["waiting", "all"]) -> dict[str, int]:
    with room.database.write() as connection:
        grace = Admitted(
            connection,
            room.now_ms,
            "grace",
            course(connection, "gpu101"),
            viewer(connection, "gpu101", "grace"),
            publication(connection, room.lab),
        )
        return publish_this_version(grace, VersionToPublish(MENDED, again))


def test_what_can_be_graded_here_is_said_before_anybody_hands_in(
    room: Classroom,
) -> None:
    assert "No grader is there" in cover_words(cover(room), True)
    one, two = room.grader("one", 1), room.grader("two", 3)
    assert cover(room).unknown == 2 and not cover(room).is_hopeless
    can = GradableLab("vector-add", LAB_DIGEST)
    cannot = GradableLab("vector-add", "", "PyTorch is not installed")
    say_labs(room, one, cannot)
    say_labs(room, two)
    assert cover(room).is_hopeless and cover(room).gpus == {}
    words = cover_words(cover(room), True)
    assert "PyTorch is not installed" in words and "parked" in words
    say_labs(room, two, can)
    words = cover_words(cover(room), True)
    assert "on 2 CPU slots; speed, on 1 × NVIDIA H200" in words
    assert "Not by all graders: PyTorch" in words
    assert not cover(room).is_other(LAB_DIGEST) and cover(room).is_other(MENDED)
    # a grader that is not heard of any more grades nothing
    room.now_ms += int(LEASE_S * 1000) + 1
    assert cover(room).graders == 0


def test_this_version_is_published_and_what_was_parked_is_graded(
    room: Classroom,
) -> None:
    grader = room.grader(cpu_slots=3)
    room.submit("ada")
    room.grade(grader)
    before = kept(room)
    for name in ("bob", "cyd"):
        room.submit(name)
    parked, runs = room.lease(grader, 2)
    release = Release(LeaseName(parked.job, parked.fence), "can't grade", "other")
    with room.database.write() as connection:
        completion.release(connection, room.now_ms, grader, release)
        keep_files(connection, room.lab, {"text.md": "# Old\n"})
    room.now_ms += 1
    say = Hello(3, (), (GradableLab("vector-add", MENDED),))
    with room.database.write() as connection:
        graders.heartbeat(connection, room.now_ms, grader, beat(runs, say))
    assert states(room) == {"done": 1, "parked": 1, "leased": 1}
    assert publish_anew(room, "waiting") == {"graded again": 1}
    after = kept(room)
    assert after.lab_digest == MENDED and after.windows == before.windows
    with room.database.read() as connection:
        assert "lab.toml" in kept_files(connection, room.lab)
    # what ran by the version before is graded anew, and its late result is no result
    assert states(room) == {"done": 1, "queued": 2}
    assert not room.finish(grader, runs).is_accepted
    assert publish_anew(room, "all") == {"graded again": 1}
    assert states(room)["queued"] == 3


def kept(room: Classroom) -> Publication:
    with room.database.read() as connection:
        return publication(connection, room.lab)


def beat(order: JobOrder, has: Hello) -> Heartbeat:
    return Heartbeat((LeaseName(order.job, order.fence),), has)


def test_what_changed_is_shown_by_file() -> None:
    before = {"lab.toml": "a\nb\n", "gone.md": "x\n", "same.md": "y\n"}
    now = {"lab.toml": "a\nc\n", "new.md": "z\n", "same.md": "y\n"}
    changes = {one.name: one for one in changed_files(before, now)}
    assert {name: one.how for name, one in changes.items()} == {
        "lab.toml": "changed",
        "gone.md": "gone",
        "new.md": "new",
    }
    assert {"-b", "+c"} < {*changes["lab.toml"].lines}

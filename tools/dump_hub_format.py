"""Prints a dump of a hub's database of today's format, with a course that was graded.

Once a format is released, its dump is kept for a test that opens it for ever after:
`python tools/dump_hub_format.py > tests/data/formats/hub-N.sql`.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / name) for name in ("", "extension", "labs", "monitors")]

from tests.hub.core.course import (  # noqa: E402
    DUE_MS,
    Classroom,
    classroom,
    facts,
    timed,
)
from warpbook.hub.competition import contests, entries, finals  # noqa: E402
from warpbook.hub.course.publications import extend, publication  # noqa: E402
from warpbook.hub.database.opening import FORMAT  # noqa: E402
from warpbook.hub.database.sqlite import APPLICATION_ID  # noqa: E402
from warpbook.hub.lease_protocol import KeptGpu, Report  # noqa: E402
from warpbook.hub.leases import asking, calendar, granting  # noqa: E402
from warpbook.hub.leases.calendar import GpuSession  # noqa: E402
from warpbook.hub.lti import ledger, links  # noqa: E402
from warpbook.hub.lti.platform import Launch  # noqa: E402
from warpbook.hub.work.decisions import appeal, override  # noqa: E402


def main() -> None:
    """Make a database in a folder of its own, and print it."""
    with tempfile.TemporaryDirectory() as folder:
        room = classroom(Path(folder, "hub.db"))
        fill(room)
        room.database.close()
        connection = sqlite3.connect(room.database.path)
        for statement in connection.iterdump():
            print(statement)
        connection.close()
    print(f"PRAGMA application_id = {APPLICATION_ID};")
    print(f"PRAGMA user_version = {FORMAT};")


def fill(room: Classroom) -> None:
    """Put something into every table."""
    grader = room.grader(gpus=1)
    room.submit("ada", "// mine\n")
    order = room.grade(grader, facts("wrong", 1, kind="race"))
    late = (room.lab, room.people["bob"])
    with room.database.write() as connection:
        times = (room.now_ms + 1, room.now_ms + 2)
        extend(connection, room.now_ms, room.instructor, *late, *times, "was ill")
        points = (room.lab, room.people["ada"], 7.5, "half of it is right")
        override(connection, room.now_ms, room.instructor, *points)
        note = "The race is not mine."
        appeal(connection, room.now_ms, room.people["ada"], order.job, note)
    _lease(room)
    _launch(room)
    # of an older lease, so it is refused
    room.finish(grader, msgspec.structs.replace(order, fence=99))
    _compete(room, grader)


def _lease(room: Classroom) -> None:
    """Have a GPU reserved and leased."""
    gpu = KeptGpu("GPU-leased", "H100", "", True, None, 1_000)
    start_ms = room.now_ms + 3_600_000
    session = GpuSession("", "gpu101", "exercise", 1, start_ms, start_ms + 3_600_000)
    with room.database.write() as connection:
        report = Report("node", (gpu,), 600_000)
        granting.report(connection, room.now_ms, report)
        person = room.people["ada"]
        asking.take(connection, room.now_ms, "gpu101", person, 20)
        granting.report(connection, room.now_ms, report)
        calendar.reserve(connection, room.now_ms, room.instructor, session)


def _launch(room: Classroom) -> None:
    """Have the course bound to one of a platform, and a score on its way there."""
    host = "https://lms.example.org"
    with room.database.write() as connection:
        for subject, name, role in (("t1", "grace", "instructor"), ("s1", "ada", "")):
            launch = Launch(
                *("gpu101", host, subject, name, "", "", "", role, "context-9", "GPUs"),
                *(f"{host}/members", f"{host}/items", f"{host}/items/1", "vector-add"),
            )
            links.record_launch(connection, room.now_ms, launch)
        changed = ledger.changes(connection, "gpu101", host)
        ledger.add(connection, room.now_ms, changed)


def _compete(room: Classroom, grader: str) -> None:
    """Have somebody join a competition, whose final waits."""
    device = "GPU-one-0"
    with room.database.write() as connection:
        lab = publication(connection, room.lab)
        contests.open_competition(connection, room.now_ms, room.instructor, lab)
        entries.join(connection, room.now_ms, lab, room.people["cyd"], "Warp Nine")
    room.submit("cyd", "// fast\n")
    room.grade(grader)
    room.grade(grader, timed(1.5), device)
    room.now_ms = DUE_MS + 1
    with room.database.write() as connection:
        place = (lab, grader, device)
        finals.start_final(connection, room.now_ms, room.instructor, *place)


if __name__ == "__main__":
    main()

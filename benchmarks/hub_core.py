"""What the core of a hub takes for a class of 300: receipts, leases, views, exports.

    python -m benchmarks.hub_core [--learners 300] [--labs 10] [--attempts 4]
        [--postgres]

With `--postgres` the database is one of a PostgreSQL server on this machine. It prints
a Markdown table of times in milliseconds, without HTTP and log-in.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / name) for name in ("extension", "labs", "monitors")]

from sqlalchemy import Connection

from tests.hub.core.course import (
    FOREVER,
    LAB_DIGEST,
    START_MS,
    Classroom,
    classroom,
    facts,
    publish_lab,
)
from tests.hub.postgres import PostgresServer, remove
from warpbook.hub_protocol import JobResult, LeaseName, WorkRequest
from warpbook_hub.class_view import class_rows
from warpbook_hub.course.roster import import_roster
from warpbook_hub.course.roster_csv import read_roster
from warpbook_hub.database.group_commit import Writer
from warpbook_hub.database.tables import PEOPLE
from warpbook_hub.exports.grades import grades, nbgrader_csv
from warpbook_hub.queue import completion, dispatch, overview
from warpbook_hub.work.marks import marks_of
from warpbook_hub.work.submissions import receive

TIMES = 7


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, count in (("learners", 300), ("labs", 10), ("attempts", 4)):
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    print("| what | median ms | largest ms |\n| --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        if options.postgres:
            # a short path, as the server's socket is in it
            server_folder = Path(tempfile.mkdtemp(prefix="wb-pg-"))
            server = PostgresServer(server_folder)
            stack.callback(remove, server, server_folder)
            server.use_for(Path(folder, "hub.db"))
        room = classroom(Path(folder, "hub.db"), windows={"": FOREVER})
        people, labs = begin(room, options.learners, options.labs)
        grader = room.grader(cpu_slots=4)
        table("a receipt, all at once", receipts(room, people))
        with room.database.read() as connection:
            measured("places of all", lambda: overview.places(connection, room.now_ms))
        measured("a lease of one of them", lambda: room.lease(grader))
        for _ in range(options.attempts):
            for lab in labs:
                hand_in(room, people, lab)
                grade_all(room, grader)
        with room.database.read() as connection:
            submissions = connection.exec_driver_sql("SELECT count(*) FROM submissions")
            print(f"| ({submissions.scalar_one():,} submissions from here on) | | |")
            views(connection, room, people, labs)
        room.database.close()


def begin(room: Classroom, learners: int, labs: int) -> tuple[list[str], list[str]]:
    """Fill the course with learners and labs."""
    names = [f"learner{number}" for number in range(learners)]
    with room.database.write() as connection:
        rows = read_roster(("username\n" + "\n".join(names)).encode())
        import_roster(connection, START_MS, "hub", "gpu101", rows)
        more = [
            publish_lab(
                connection, "gpu101", lab=f"lab-{number}", windows={"": FOREVER}
            )
            for number in range(labs - 1)
        ]
        query = PEOPLE.select().where(PEOPLE.c.username.in_(names))
        people = [row.id for row in connection.execute(query)]
    return people, [room.lab, *more]


def receipts(room: Classroom, people: list[str]) -> list[float]:
    """Have everybody hand in at the same moment; give how long each waits, in ms."""
    writer = Writer(room.database)
    begun_s, waits_ms = time.perf_counter(), []

    def handed(person: str) -> Callable[[Connection], object]:
        source = "// x" * 250
        return lambda connection: receive(
            connection, room.now_ms, room.lab, person, source
        )

    for person in people:
        done = writer.submit(handed(person))
        done.add_done_callback(
            lambda _: waits_ms.append((time.perf_counter() - begun_s) * 1000)
        )
    writer.close()
    return waits_ms


def hand_in(room: Classroom, people: list[str], lab: str) -> None:
    """Have everybody hand in once."""
    with room.database.write() as connection:
        for person in people:
            room.now_ms += 3_600_000 // 50
            receive(connection, room.now_ms, lab, person, "// x", replace=True)


def grade_all(room: Classroom, grader: str) -> None:
    """Grade all that waits, in no time."""
    rng = random.Random(1)
    while True:
        with room.database.write() as connection:
            work = dispatch.lease(connection, room.now_ms, grader, WorkRequest(64))
            for order in work.jobs:
                graded = facts("right") if rng.random() < 0.3 else facts("wrong", 2)
                lease = LeaseName(order.job, order.fence)
                result = JobResult(lease, graded, LAB_DIGEST, order.source_digest, 10)
                completion.finish(connection, room.now_ms, grader, result)
        if not work.jobs:
            return


def views(
    connection: Connection, room: Classroom, people: list[str], labs: list[str]
) -> None:
    """Measure what people look at."""
    now_ms, one = room.now_ms, people[:1]
    measured("class view", lambda: class_rows(connection, now_ms, "gpu101"))
    measured(
        "class view of one lab",
        lambda: class_rows(connection, now_ms, "gpu101", publication_id=labs[0]),
    )
    measured(
        "row of one learner",
        lambda: class_rows(connection, now_ms, "gpu101", people=one),
    )
    measured("marks of one", lambda: marks_of(connection, now_ms, "gpu101", one[0]))
    measured(
        "grades of all as CSV",
        lambda: nbgrader_csv(grades(connection, now_ms, "gpu101")),
    )


def measured(what: str, work: Callable[[], object]) -> None:
    """Do something several times, and print a row."""
    table(what, list(timed(work)))


def timed(work: Callable[[], object]) -> Iterator[float]:
    """Give how long something takes, in ms."""
    for _ in range(TIMES):
        begin_s = time.perf_counter()
        work()
        yield (time.perf_counter() - begin_s) * 1000


def table(what: str, times_ms: list[float]) -> None:
    """Print a row."""
    print(
        f"| {what} | {statistics.median(times_ms):.1f} | {max(times_ms):.1f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()

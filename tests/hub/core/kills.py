"""A class that hands in while service and graders are killed again and again.

`python -m tests.hub.core.kills --seconds 600` is the long form of what the tests do for
some seconds. At the end nothing acknowledged is lost, and every job has one result.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import requests
from sqlalchemy import select

from tests.hub.core.course import FOREVER, Classroom, classroom
from tests.programs import ROOT, free_port, python_path
from warpbook_hub.course.courses import Course
from warpbook_hub.course.roster import import_roster
from warpbook_hub.course.roster_csv import read_roster
from warpbook_hub.database.hub_database import HubDatabase
from warpbook_hub.database.tables import (
    JOBS,
    PEOPLE,
    REFUSED_RESULTS,
    RESULTS,
    SUBMISSIONS,
)
from warpbook_hub.queue import control, graders

LEARNERS = 40
PATIENCE_S = 120.0
#: short, so that lost leases are seen within a test
LEASE_S = 2.0
STUB = ROOT / "tests" / "hub" / "core" / "stub_child.py"


@dataclass
class Tally:
    """What came of it."""

    acknowledged: dict[str, str] = field(default_factory=dict)
    kills: int = 0
    #: of the database's server
    crashes: int = 0
    graded: int = 0
    #: of these, in the second stage, too
    timed: int = 0
    refused: int = 0
    parked: int = 0
    #: what must be empty
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def run_class(
    folder: Path,
    seconds: float,
    seed: int,
    is_enough: Callable[[Tally], bool] = lambda tally: True,
    crash_database: Callable[[], None] | None = None,
) -> Tally:
    """Hand in and kill for some seconds, then wait until all is graded.

    Args:
        folder: of the database.
        seconds: how long at least.
        seed: of what is killed when.
        is_enough: it goes on until then, `PATIENCE_S` at most.
        crash_database: kills the database's server and starts it anew; it is a victim
            like others.
    """
    room, tokens = begin(folder)
    rng = random.Random(seed)
    tally, port = Tally(), free_port()
    url = f"http://127.0.0.1:{port}"
    ended = threading.Event()
    hands = threading.Thread(target=hand_in, args=(room, url, tally, ended))
    with contextlib.ExitStack() as stack:
        service = stack.enter_context(Restarted(service_command(room, port)))
        workers = [
            stack.enter_context(Restarted(grader_command(url), token))
            for token in tokens
        ]
        hands.start()
        begin_s = time.monotonic()
        begun = 0
        while (passed_s := time.monotonic() - begin_s) < seconds or (
            passed_s < PATIENCE_S and not is_enough(tally)
        ):
            time.sleep(rng.uniform(0.2, 0.8))
            if crash_database is not None and rng.random() < 0.4:
                crash_database()
                tally.crashes += 1
            victim = rng.choice([service, *workers])
            # one that has taken nothing may still start: mostly it is let
            if victim is service and len(tally.acknowledged) == begun:
                victim = service if rng.random() < 0.2 else rng.choice(workers)
            if victim is service:
                begun = len(tally.acknowledged)
            if rng.random() < 0.25 and victim is not service:
                # it sleeps longer than its lease, and comes back
                victim.pause(rng.uniform(2.5, 4.0))
            else:
                victim.kill()
            tally.kills += 1
        ended.set()
        hands.join()
        wait_s = time.monotonic() + PATIENCE_S
        while open_jobs(room) and time.monotonic() < wait_s:
            retry_parked(room, tally)
            time.sleep(0.3)
    judge(room, tally)
    room.database.close()
    return tally


def begin(
    folder: Path, learners: int = LEARNERS, count: int = 2
) -> tuple[Classroom, list[str]]:
    """Begin a course with many learners and some graders."""
    course = Course("gpu101", "GPU programming", timed_runs_per_hour=3600)
    room = classroom(folder / "hub.db", course, windows={"": FOREVER})
    names = "\n".join(f"learner{number}" for number in range(learners))
    with room.database.write() as connection:
        rows = read_roster(f"username\n{names}\n".encode())
        import_roster(connection, room.now_ms, "hub", "gpu101", rows)
        tokens = [
            graders.register(connection, room.now_ms, "hub", f"grader-{number}")
            for number in range(count)
        ]
    return room, tokens


def service_command(room: Classroom, port: int, lease_s: float = LEASE_S) -> list[str]:
    program = "tests.hub.core.service_process"
    options = [str(room.database.path), str(port), str(lease_s)]
    return [sys.executable, "-m", program, *options]


def grader_command(url: str) -> list[str]:
    stub = ["--command", sys.executable, str(STUB)]
    options = ["--cpu-slots", "1", "--no-gpu", "--simulated-gpus", "1", *stub]
    return [sys.executable, "-m", "warpbook_hub.grader", url, *options]


class Restarted:
    """A process that is started again whenever it has ended."""

    def __init__(self, command: list[str], token: str = "") -> None:
        self._command, self._token = command, token
        self._is_over = False
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep)

    def __enter__(self) -> Restarted:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self.kill()
        self._thread.join()

    def kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGKILL)

    def pause(self, seconds: float) -> None:
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGSTOP)
                time.sleep(seconds)
                process.send_signal(signal.SIGCONT)

    def _keep(self) -> None:
        while not self._is_over:
            self._process = subprocess.Popen(
                self._command,
                env={**os.environ, "PYTHONPATH": python_path()},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=ROOT,
            )
            if self._is_over:
                self._process.kill()
            with contextlib.suppress(BrokenPipeError):
                self._process.communicate(f"{self._token}\n".encode())
            time.sleep(0.05)


def hand_in(room: Classroom, url: str, tally: Tally, ended: threading.Event) -> None:
    """Hand in as an impatient class does, and try again what was not acknowledged."""
    rng = random.Random(1)
    with room.database.read() as connection:
        rows = connection.execute(
            select(PEOPLE.c.id).where(PEOPLE.c.username.startswith("learner"))
        )
        people = [row[0] for row in rows]
    session = requests.Session()
    session.trust_env = False
    while not ended.is_set():
        source = f"// slow {rng.uniform(0, 0.3):.3f} {secrets.token_hex(8)}"
        given = {
            "lab": room.lab,
            "person": rng.choice(people),
            "source": source,
            "request": secrets.token_hex(10),
        }
        while not ended.is_set():
            try:
                answer = session.post(f"{url}/submissions", json=given, timeout=10)
            except requests.RequestException:
                time.sleep(0.1)
                continue
            if answer.status_code == 201:
                receipt = answer.json()
                digest = sha256(source.encode()).hexdigest()
                assert receipt["source_digest"] == digest
                tally.acknowledged[receipt["submission"]] = digest
            # who has one that waits comes again with another
            break
        time.sleep(0.05)


def open_jobs(room: Classroom) -> int:
    with room.database.read() as connection:
        states = connection.execute(JOBS.select()).all()
    return sum(job.state in ("queued", "leased", "parked") for job in states)


def retry_parked(room: Classroom, tally: Tally) -> None:
    """Do what an instructor does with a job that graders fell over three times."""
    database = HubDatabase(room.database.path)
    with database.write() as connection:
        parked = JOBS.select().where(JOBS.c.state == "parked")
        for job in connection.execute(parked).all():
            tally.parked += 1
            control.retry_parked(connection, room.now_ms, room.instructor, job.id)
    database.close()


def judge(room: Classroom, tally: Tally) -> None:
    """Hold what is in the database against what was acknowledged."""
    with room.database.read() as connection:
        kept = {
            row.id: row.source_digest
            for row in connection.execute(SUBMISSIONS.select())
        }
        results = connection.execute(RESULTS.select()).all()
        jobs = {row.id: row for row in connection.execute(JOBS.select())}
        tally.refused = len(connection.execute(REFUSED_RESULTS.select()).all())
        integrity = "ok"
        if room.database.file is not None:
            integrity = connection.exec_driver_sql(
                "PRAGMA integrity_check"
            ).scalar_one()
    if integrity != "ok":
        tally.wrong.append(f"integrity: {integrity}")
    tally.graded = sum(result.stage == "cpu" for result in results)
    tally.timed = sum(result.stage == "gpu" for result in results)
    graded = [result.submission for result in results if result.stage == "cpu"]
    for submission, digest in tally.acknowledged.items():
        if kept.get(submission) != digest:
            tally.lost.append(f"{submission}: not in the database")
        if graded.count(submission) != 1:
            tally.lost.append(f"{submission}: {graded.count(submission)} results")
    for result in results:
        if jobs[result.job].fence != result.fence:
            tally.wrong.append(f"{result.job}: of an older lease")
    for job in jobs.values():
        if job.state != "done":
            tally.wrong.append(f"{job.id}: {job.state} {job.note}")


@contextlib.contextmanager
def folder_of(named: Path | None) -> Iterator[Path]:
    if named is not None:
        yield named
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    with folder_of(options.folder) as folder:
        tally = run_class(folder, options.seconds, options.seed)
    lines = [
        f"{len(tally.acknowledged)} acknowledged, {tally.graded} graded, "
        f"{tally.timed} of them on a (simulated) GPU, "
        f"{tally.kills} kills and pauses, {tally.refused} late results refused, "
        f"{tally.parked} parked and retried, {len(tally.lost)} lost, "
        f"{len(tally.wrong)} wrong",
        *tally.lost,
        *tally.wrong,
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if tally.lost or tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

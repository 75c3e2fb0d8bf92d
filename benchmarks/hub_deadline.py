"""A class of 300 before a deadline, with simulated GPUs, and with kills if wanted.

    python -m benchmarks.hub_deadline [--learners N] [--minutes N] [--kills] [--quick]

A real JupyterHub and course service; everybody has a page open, and more and more hand
in as the deadline comes near. Two graders have four CPU slots and two GPU slots, in
which a job sleeps as a job of that length would work. It prints a Markdown table, and
what must be zero; the exit code is 1 if it is not. `--quick` is the same in a minute or
two: 20 learners, jobs of a fifth of the length, and kills a fifth of the time apart.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import secrets
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / name) for name in ("extension", "labs", "monitors")]

import psutil
from tornado.httpclient import AsyncHTTPClient, HTTPClientError
from tornado.websocket import WebSocketError

from benchmarks.hub_class import ask, opened
from tests.hub.core.kills import STUB, Restarted
from tests.hub.service.class_hub import (
    COURSE,
    ClassHub,
    Visitor,
    class_hub,
    publish,
)
from warpbook_hub.database.hub_database import HubDatabase
from warpbook_hub.database.tables import JOBS, REFUSED_RESULTS, RESULTS, SUBMISSIONS

GRADERS, CPU_SLOTS, CPU_S, GPU_S = 2, 2, 2.5, 5.0
_KILL_S = (15.0, 45.0)
#: what `--quick` makes shorter, and by how much
_QUICK_LEARNERS, _QUICK_MINUTES, _QUICK = 20, 0.5, 0.2
_LOG_IN_AT_ONCE = 6
_PATIENCE_S = 900.0
#: between two tries of a page to connect, as the pages' own script has it
_LEAST_WAIT_S, _MOST_WAIT_S = 1.0, 30.0
_MOST_SHOWN = 20
#: estimates for less than this are of a job that is nearly done
_LEAST_ETA_S = 20.0


class Pace(NamedTuple):
    """How long things take."""

    within_s: float
    #: of a job beside what it is in a class, and of the time between two kills
    scale: float


class Estimate(NamedTuple):
    """What a page was told of a job."""

    submission: str
    stage: str
    told_ms: float
    eta_s: float


@dataclass
class Day:
    """What happened."""

    receipts: dict[str, str] = field(default_factory=dict)
    receipt_s: list[float] = field(default_factory=list)
    retries: int = 0
    #: learners who were not acknowledged until patience ended
    unheard: list[str] = field(default_factory=list)
    kills: int = 0
    #: by the instructor: jobs that were killed three times
    unparked: int = 0
    estimates: list[Estimate] = field(default_factory=list)


def main() -> int:
    """Play the deadline, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learners", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--kills", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    count, minutes, scale = 300, 10.0, 1.0
    if options.quick:
        count, minutes, scale = _QUICK_LEARNERS, _QUICK_MINUTES, _QUICK
    pace = Pace(60 * (options.minutes or minutes), scale)
    names = [f"learner{number:03d}" for number in range(options.learners or count)]
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        hub = stack.enter_context(class_hub(folder, "--cpu-slots", "0"))
        grace = Visitor(hub, "grace").log_in()
        roster = "username\n" + "\n".join(names)
        grace.done(f"courses/{COURSE}/roster", {"csv": roster})
        settings = {"title": "GPU programming", "timed_runs_per_hour": 60}
        settings |= {"late_budget_h": 0, "appeal_window_h": 24}
        grace.done(f"courses/{COURSE}/settings", settings)
        lab = publish(grace, int(time.time() * 1000))
        with ThreadPoolExecutor(_LOG_IN_AT_ONCE) as pool:
            learners = list(pool.map(lambda name: Visitor(hub, name).log_in(), names))
        graders = [
            stack.enter_context(start_grader(hub, grace, number))
            for number in range(GRADERS)
        ]
        AsyncHTTPClient.configure(None, max_clients=2 * len(names))
        victims = graders if options.kills else []
        day = asyncio.run(play(hub, grace, learners, lab, pace, victims))
        database = HubDatabase(hub.folder / "course" / "hub.db")
        try:
            return judge(database, day)
        finally:
            database.close()


def start_grader(hub: ClassHub, grace: Visitor, number: int) -> Restarted:
    """Register a grader with simulated slots, and keep it running."""
    name = {"name": f"simulated-{number}"}
    token = grace.done("hub/graders", name)["token"]
    command = [sys.executable, "-m", "warpbook_hub.grader", hub.inner_url]
    command += ["--cpu-slots", str(CPU_SLOTS), "--no-gpu", "--simulated-gpus", "1"]
    return Restarted([*command, "--command", sys.executable, str(STUB)], token)


async def play(
    hub: ClassHub,
    grace: Visitor,
    learners: list[Visitor],
    lab: str,
    pace: Pace,
    victims: list[Restarted],
) -> Day:
    """Have all hand in until the deadline, and wait until all is graded."""
    day, rng = Day(), random.Random(8)
    pages = [asyncio.ensure_future(watch(hub, one, day)) for one in learners]
    killing = asyncio.ensure_future(kill(hub, victims, pace.scale, day))
    await asyncio.gather(
        *(
            hand_in(hub, learner, lab, pace.within_s * rng.random() ** 0.5, pace, day)
            for learner in learners
        )
    )
    patience_s = _PATIENCE_S * pace.scale
    end_s = time.monotonic() + patience_s
    database = HubDatabase(hub.folder / "course" / "hub.db")
    while (jobs := open_jobs(database)) and time.monotonic() < end_s:
        if time.monotonic() > end_s - patience_s / 2 and not killing.done():
            # more kills than jobs that end would be no end; what is left must be graded
            killing.cancel()
        for job in jobs:
            if job.state == "parked":
                path = f"api/v1/courses/{COURSE}/jobs/{job.id}/retry"
                with contextlib.suppress(OSError, HTTPClientError):
                    await ask(hub, grace, path, {})
                    day.unparked += 1
        await asyncio.sleep(1)
    database.close()
    for task in (*pages, killing):
        task.cancel()
    # what ended it before, if anything did, is no success
    ends = await asyncio.gather(*pages, killing, return_exceptions=True)
    for end in ends:
        if isinstance(end, Exception):
            raise end
    return day


async def hand_in(
    hub: ClassHub, learner: Visitor, lab: str, at_s: float, pace: Pace, day: Day
) -> None:
    """Hand in once, and try again until it is acknowledged."""
    await asyncio.sleep(at_s)
    rng = random.Random(learner.name)
    cpu_s, gpu_s = (
        length * pace.scale * rng.uniform(0.7, 1.3) for length in (CPU_S, GPU_S)
    )
    source = f"// stages {cpu_s:.2f} {gpu_s:.2f} {learner.name}"
    body = {"source": source, "request": secrets.token_hex(10)}
    path = f"api/v1/courses/{COURSE}/labs/{lab}/submissions"
    end_s = time.monotonic() + _PATIENCE_S * pace.scale
    while time.monotonic() < end_s:
        sent_s = time.monotonic()
        try:
            receipt = json.loads(await ask(hub, learner, path, body))
        except (OSError, HTTPClientError):
            day.retries += 1
            await asyncio.sleep(0.5)
            continue
        day.receipt_s.append(time.monotonic() - sent_s)
        day.receipts[receipt["submission"]] = learner.name
        return
    day.unheard.append(learner.name)


async def watch(hub: ClassHub, learner: Visitor, day: Day) -> None:
    """Keep a page open, and note what it is told of one's place."""
    rng, wait_s = random.Random(learner.name), _LEAST_WAIT_S
    while True:
        try:
            socket = await opened(hub, learner)
            wait_s = _LEAST_WAIT_S
            while (message := await socket.read_message()) is not None:
                note(json.loads(message), day)
        except (OSError, HTTPClientError, WebSocketError):
            pass
        # all at once would be as many log-ins, which a service that begins asks for
        wait_s = min(2 * wait_s, _MOST_WAIT_S)
        await asyncio.sleep(wait_s * rng.uniform(0.5, 1))


def note(message: dict[str, Any], day: Day) -> None:
    """Keep an estimate."""
    place = message.get("place") or {}
    if place.get("eta_s") is not None:
        now_ms = time.time() * 1000
        day.estimates.append(
            Estimate(message["submission"], place["stage"], now_ms, place["eta_s"])
        )


async def kill(hub: ClassHub, victims: list[Restarted], scale: float, day: Day) -> None:
    """Kill service and graders at random, until it is cancelled."""
    rng = random.Random(3)
    while victims:
        await asyncio.sleep(scale * rng.uniform(*_KILL_S))
        victim = rng.choice([None, *victims])
        if victim is not None:
            victim.kill()
            day.kills += 1
        elif (service := hub.process("warpbook_hub.service")) is not None:
            # it may have ended since it was looked for
            with contextlib.suppress(psutil.NoSuchProcess):
                service.kill()
                day.kills += 1


def open_jobs(database: HubDatabase) -> list[Any]:
    """Give what is not graded yet."""
    with database.read() as connection:
        jobs = connection.execute(JOBS.select()).all()
    return [job for job in jobs if job.state in ("queued", "leased", "parked")]


def judge(database: HubDatabase, day: Day) -> int:
    """Hold what is in the database against what was acknowledged; print it."""
    with database.read() as connection:
        received = {
            row.id: row.received_ms for row in connection.execute(SUBMISSIONS.select())
        }
        jobs = connection.execute(JOBS.select()).all()
        results = connection.execute(RESULTS.select()).all()
        refused = len(connection.execute(REFUSED_RESULTS.select()).all())
    graded = [(result.submission, result.stage) for result in results]
    stages = [(name, stage) for name in day.receipts for stage in ("cpu", "gpu")]
    lost = sum(graded.count(stage) == 0 for stage in stages)
    twice = sum(graded.count(stage) > 1 for stage in stages)
    unfinished = [job for job in jobs if job.state != "done"]
    lost += len(unfinished) + len(day.unheard)
    finished = {(job.submission, job.stage): job.finished_ms for job in jobs}
    waits_s = [
        (finished[name, "gpu"] - received[name]) / 1000
        for name in day.receipts
        if finished.get((name, "gpu"))
    ]
    errors = [
        abs(estimate.told_ms + estimate.eta_s * 1000 - end_ms)
        / (end_ms - estimate.told_ms)
        for estimate in day.estimates
        if (end_ms := finished.get((estimate.submission, estimate.stage)) or 0)
        > estimate.told_ms + _LEAST_ETA_S * 1000
    ]
    print("| what | p50 | p95 | largest |\n| --- | --- | --- | --- |")
    row("receipt, ms", [1000 * seconds for seconds in day.receipt_s])
    row("from receipt to the whole result, s", waits_s)
    row(
        f"error of the ETA, % ({len(errors)} of 20 s or more)",
        [100 * e for e in errors],
    )
    for stage in ("cpu", "gpu"):
        row(f"overtaken in the {stage} stage, s", overtaken_s(jobs, stage))
    print(
        f"\n{len(day.receipts)} acknowledged, {day.retries} retries, "
        f"{day.kills} kills, {day.unparked} parked jobs retried, "
        f"{refused} late results refused, "
        f"{lost} lost, {twice} graded twice"
    )
    for job in unfinished[:_MOST_SHOWN]:
        print(f"{job.stage} {job.state}, leased {job.fence} times: {job.note}")
    if day.unheard:
        print(f"never acknowledged: {', '.join(day.unheard[:_MOST_SHOWN])}")
    return 1 if lost or twice else 0


def overtaken_s(jobs: Any, stage: str) -> list[float]:
    """Tell for each job by how long a later one began before it."""
    of_stage = sorted(
        (job for job in jobs if job.stage == stage and job.leased_ms),
        key=lambda job: job.queued_ms,
    )
    delays_s, first_later_ms = [], float("inf")
    for job in reversed(of_stage):
        delays_s.append(max(0.0, (job.leased_ms - first_later_ms) / 1000))
        first_later_ms = min(first_later_ms, job.leased_ms)
    return delays_s


def row(what: str, values: list[float]) -> None:
    """Print a line of the table."""
    if len(values) < 2:
        print(f"| {what} | | | |")
        return
    numbers = (median(values), quantiles(values, n=20)[-1], max(values))
    print(f"| {what} | {' | '.join(f'{value:.3g}' for value in numbers)} |")


if __name__ == "__main__":
    sys.exit(main())

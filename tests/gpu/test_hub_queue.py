"""Submissions of a class through the queue, to a real GPU: as if graded one by one."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.hub.core.course import FOREVER, classroom, publish_lab
from tests.hub.core.grading_progress import wait_until_graded
from tests.hub.core.started_hub import Hub
from tests.programs import free_port
from warpbook.hub.course.courses import Course, person_of
from warpbook.hub.course.roster import import_roster
from warpbook.hub.course.roster_csv import read_roster
from warpbook.hub.database.tables import SUBMISSIONS
from warpbook.hub.grader import labs
from warpbook.hub.grader.gpus import devices
from warpbook.hub.grader_protocol import GradedFacts, JobOrder, Ratio
from warpbook.hub.work.results import Standing
from warpbook.hub.work.submissions import receive
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.loader import load

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(0)]

#: 100 are what the evidence is of; fewer fit into a short run
SUBMISSIONS_COUNT = int(os.environ.get("WARPBOOK_HUB_SUBMISSIONS", "24"))
#: a line is printed for so many, and after so many seconds without one
EVERY, SILENT_S = 10, 20.0
#: as real ones: a job that is given to another, since all is busy here, tells nothing
LEASE_S = 30.0
LABS = (
    "kernels/vector_add",
    "kernels/reduction_and_scan",
    "kernels/thread_and_block",
    "memory/tiled_transpose",
    "memory/occupancy",
)


class Handed(NamedTuple):
    """A submission, and what it is one of."""

    id: str
    lab: LoadedLab
    about: str
    source: str


class Row(NamedTuple):
    """A submission as the queue graded it, and alone."""

    handed: Handed
    stage: str
    queued: GradedFacts
    alone: GradedFacts


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    course = Course("gpu101", "GPU programming", timed_runs_per_hour=3600)
    room = classroom(tmp_path / "hub" / "hub.db", course, windows={"": FOREVER})
    # waits are by the service's clock
    room.now_ms = int(time.time() * 1000)
    yield Hub(room, free_port(), tmp_path)
    room.database.close()


def test_a_class_is_graded_as_if_one_by_one(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    def say(words: str) -> None:
        # at once, so that a run that is cut off has told how far it was
        with capsys.disabled():
            print(words, flush=True)

    handed = hand_in(hub)
    gpus = devices()
    slots = str(max(1, len(os.sched_getaffinity(0)) // 4))
    say(f"\n{len(handed)} submissions, {slots} CPU slots, {len(gpus)} GPUs")
    options = ("--cpu-slots", slots)
    with hub.service(LEASE_S), hub.grader(*options, stub=False, use_gpu=True):
        ids = [one.id for one in handed]
        queued = wait_until_graded(hub, ids, say, EVERY)
    rows = compared(hub, handed, queued, gpus[0].uuid if gpus else "", say)
    differing = [row for row in rows if not are_equal(row.queued, row.alone)]
    for line in table_lines(rows):
        say(line)
    assert differing == []


def compared(
    hub: Hub,
    handed: Sequence[Handed],
    queued: Mapping[str, Standing],
    gpu: str,
    say: Callable[[str], None],
) -> list[Row]:
    """Grade each submission alone, beside what the queue made of it."""
    rows: list[Row] = []
    #: a source that is right takes its time on a GPU whatever its hidden cases are
    timed_alone: dict[str, GradedFacts] = {}
    began_s = said_s = time.monotonic()
    for number, one in enumerate(handed, 1):
        result = queued[one.id].result
        assert result is not None
        alone = timed_alone.get(one.source)
        if alone is None:
            alone = graded_alone(hub, one, result.stage, gpu)
        if result.stage == "gpu":
            timed_alone[one.source] = alone
        row = Row(one, result.stage, result.facts, alone)
        rows.append(row)
        if not are_equal(row.queued, row.alone):
            say(f"differs: {one.lab.lab.id}, {one.about}, in the queue and alone:")
            for facts in (row.queued, row.alone):
                say(f"| {facts.status} | {facts.of_baseline} | {facts.of_limit} |")
        now_s = time.monotonic()
        is_due = number % EVERY == 0 or number in (1, len(handed))
        if is_due or now_s - said_s > SILENT_S:
            said_s = now_s
            passed_s = now_s - began_s
            say(
                f"{number} of {len(handed)} graded alone, too, after {passed_s:.0f} s; "
                f"{len(timed_alone)} sources timed"
            )
    return rows


def hand_in(hub: Hub) -> list[Handed]:
    """Hand in right and wrong solutions of several labs, each by somebody else."""
    rng = random.Random(5)
    names = [f"learner{number}" for number in range(SUBMISSIONS_COUNT)]
    handed: list[Handed] = []
    with hub.room.database.write() as connection:
        roster = read_roster(("username\n" + "\n".join(names)).encode())
        import_roster(connection, hub.room.now_ms, "hub", "gpu101", roster)
        for number, name in enumerate(names):
            lab = load(CATALOGUE / LABS[number % len(LABS)])
            kind = "wrong" if number % 3 == 2 else "correct"
            about, source = rng.choice(sorted(getattr(lab, kind).items()))
            published = publish_lab(
                connection,
                "gpu101",
                lab=lab.lab.id,
                language=lab.lab.language,
                is_timed=lab.lab.plan is None,
                windows={"": FOREVER},
            )
            person = person_of(connection, name)
            now_ms = hub.room.now_ms + number
            given = receive(connection, now_ms, published, person, source)
            handed.append(Handed(given.submission, lab, f"{kind}/{about}", source))
    return handed


def graded_alone(hub: Hub, one: Handed, stage: str, gpu: str) -> GradedFacts:
    """Grade a submission in this process, with the hidden cases of its own."""
    with hub.room.database.read() as connection:
        row = connection.execute(
            SUBMISSIONS.select().where(SUBMISSIONS.c.id == one.id)
        ).one()
    order = JobOrder(
        "alone",
        1,
        "gpu" if stage == "gpu" else "cpu",
        one.lab.lab.id,
        "",
        one.source,
        row.source_digest,
        row.seed,
        gpu if stage == "gpu" else "",
    )
    return labs.grade(order).facts


def are_equal(queued: GradedFacts, alone: GradedFacts) -> bool:
    """Whether two gradings say the same, as far as times can."""
    if (queued.verdict, queued.right, queued.of) != (
        alone.verdict,
        alone.right,
        alone.of,
    ):
        return False
    return overlap(queued.of_baseline, alone.of_baseline) and overlap(
        queued.of_limit, alone.of_limit
    )


def overlap(first: Ratio | None, second: Ratio | None) -> bool:
    """Whether two intervals meet, or come within half a percent of one another."""
    if first is None or second is None:
        # one of them was too noisy to tell
        return True
    return first.low <= second.high * 1.005 and second.low <= first.high * 1.005


def table_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Write what was graded, and how far times of the same source are apart."""
    counts = Counter(
        (row.handed.lab.lab.id, row.stage, row.queued.verdict) for row in rows
    )
    apart: dict[str, list[float]] = {}
    for row in rows:
        first, second = row.queued.of_baseline, row.alone.of_baseline
        if first is not None and second is not None:
            ratio = first.middle / second.middle
            apart.setdefault(row.handed.lab.lab.id, []).append(abs(ratio - 1))
    yield "\n| lab | last stage | verdict | submissions |"
    yield "| --- | --- | --- | --- |"
    for (lab, stage, verdict), count in sorted(counts.items()):
        yield f"| {lab} | {stage} | {verdict} | {count} |"
    yield "\n| lab | timed twice | median apart, % | most apart, % |"
    yield "| --- | --- | --- | --- |"
    for lab, ratios in sorted(apart.items()):
        middle, most = 100 * statistics.median(ratios), 100 * max(ratios)
        yield f"| {lab} | {len(ratios)} | {middle:.2f} | {most:.2f} |"

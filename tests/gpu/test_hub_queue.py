"""Submissions of a class through the queue, to a real GPU: as if graded one by one."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.hub.core.course import FOREVER, classroom, publish_lab
from tests.hub.core.test_grader import Hub
from tests.programs import free_port
from warpbook.hub.course.courses import Course, person_of
from warpbook.hub.course.roster import import_roster
from warpbook.hub.course.roster_csv import read_roster
from warpbook.hub.database.tables import SUBMISSIONS
from warpbook.hub.grader import labs
from warpbook.hub.grader.gpus import devices
from warpbook.hub.grader_protocol import GradedFacts, JobOrder, Ratio
from warpbook.hub.work.submissions import receive
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.loader import load

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(0)]

#: 100 are what the evidence is of; fewer fit into one sitting
SUBMISSIONS_COUNT = int(os.environ.get("WARPBOOK_HUB_SUBMISSIONS", "24"))
WAIT_S = 540.0
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


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    course = Course("gpu101", "GPU programming", timed_runs_per_hour=3600)
    room = classroom(tmp_path / "hub" / "hub.db", course, windows={"": FOREVER})
    yield Hub(room, free_port(), tmp_path / "log")
    room.database.close()


def test_a_class_is_graded_as_if_one_by_one(hub: Hub) -> None:
    handed = hand_in(hub)
    gpus = devices()
    slots = str(max(1, (os.cpu_count() or 1) // 4))
    with hub.service(), hub.grader("--cpu-slots", slots, stub=False, use_gpu=True):
        begin_s = time.monotonic()
        queued = {one.id: hub.wait(one.id, "graded", WAIT_S).result for one in handed}
        print(f"\n{len(handed)} graded in {time.monotonic() - begin_s:.0f} s")
    rows, differing = [], []
    #: a source that is right takes its time on a GPU whatever its hidden cases are
    timed_alone: dict[str, GradedFacts] = {}
    for one in handed:
        result = queued[one.id]
        assert result is not None
        alone = timed_alone.get(one.source)
        if alone is None:
            alone = graded_alone(hub, one, result.stage, gpus[0].uuid if gpus else "")
        if result.stage == "gpu":
            timed_alone[one.source] = alone
        rows.append((one, result.stage, result.facts, alone))
        if not are_equal(result.facts, alone):
            differing.append((one.lab.lab.id, one.about, result.facts, alone))
    print_table(rows)
    for lab, about, first, second in differing:
        print(f"| {lab} | {about} |")
        for facts in (first, second):
            print(f"| {facts.status} | {facts.of_baseline} | {facts.of_limit} |")
    assert differing == []


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


def print_table(rows: list[tuple[Handed, str, GradedFacts, GradedFacts]]) -> None:
    counts = Counter(
        (one.lab.lab.id, stage, facts.verdict) for one, stage, facts, _ in rows
    )
    apart: dict[str, list[float]] = {}
    for one, _, queued, alone in rows:
        first, second = queued.of_baseline, alone.of_baseline
        if first is not None and second is not None:
            ratio = first.middle / second.middle
            apart.setdefault(one.lab.lab.id, []).append(abs(ratio - 1))
    print("\n| lab | last stage | verdict | submissions |\n| --- | --- | --- | --- |")
    for (lab, stage, verdict), count in sorted(counts.items()):
        print(f"| {lab} | {stage} | {verdict} | {count} |")
    print("\n| lab | timed twice | median apart, % | most apart, % |")
    print("| --- | --- | --- | --- |")
    for lab, ratios in sorted(apart.items()):
        middle, most = 100 * statistics.median(ratios), 100 * max(ratios)
        print(f"| {lab} | {len(ratios)} | {middle:.2f} | {most:.2f} |")

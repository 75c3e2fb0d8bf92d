"""A class's submissions: handed in, graded alone, and compared with the queue's."""

from __future__ import annotations

import contextlib
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.hub.core.course import FOREVER, classroom, publish_lab
from tests.hub.core.started_hub import Hub
from tests.programs import free_port
from warpbook.hub_protocol import GradedFacts, JobOrder, Ratio
from warpbook_hub.course.courses import Course, person_of
from warpbook_hub.course.roster import import_roster
from warpbook_hub.course.roster_csv import read_roster
from warpbook_hub.database.tables import SUBMISSIONS
from warpbook_hub.grader import labs
from warpbook_hub.work.results import Standing
from warpbook_hub.work.submissions import receive
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.loader import load

#: a line is printed for so many, and after so many seconds without one
EVERY, SILENT_S = 10, 20.0
#: gradings without a GPU that run side by side
CPU_AT_ONCE = 8
LABS = (
    "kernels/vector_add",
    "kernels/reduction_and_scan",
    "kernels/thread_and_block",
    "memory/tiled_transpose",
    "memory/occupancy",
)


@contextlib.contextmanager
def class_hub(folder: Path) -> Iterator[Hub]:
    """Give a course whose learners may have as many timed runs as they like."""
    course = Course("gpu101", "GPU programming", timed_runs_per_hour=3600)
    room = classroom(folder / "hub" / "hub.db", course, windows={"": FOREVER})
    # waits are by the service's clock
    room.now_ms = int(time.time() * 1000)
    yield Hub(room, free_port(), folder)
    room.database.close()


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


def compared(
    hub: Hub,
    handed: Sequence[Handed],
    queued: Mapping[str, Standing],
    gpu: str,
    say: Callable[[str], None],
    timed_alone: dict[str, GradedFacts] | None = None,
) -> list[Row]:
    """Grade each submission alone, beside what the queue made of it.

    Args:
        hub: the course that has them.
        handed: the submissions.
        queued: what the queue made of each.
        gpu: UUID of the GPU that grades those that got to one, one after another.
        say: writes a line.
        timed_alone: what a GPU said of each source; a source that is right takes its
            time whatever its hidden cases are. It is filled.
    """
    timed_alone = {} if timed_alone is None else timed_alone
    stages = {}
    for one in handed:
        result = queued[one.id].result
        assert result is not None
        stages[one.id] = result.stage
    began_s = said_s = time.monotonic()
    with ThreadPoolExecutor(CPU_AT_ONCE) as pool:
        # what has no times is the same beside others
        alone_on_cpu = {
            one.id: pool.submit(graded_alone, hub, one, "cpu", "")
            for one in handed
            if stages[one.id] == "cpu"
        }
    rows: list[Row] = []
    for number, one in enumerate(handed, 1):
        if one.id in alone_on_cpu:
            alone = alone_on_cpu[one.id].result()
        elif one.source in timed_alone:
            alone = timed_alone[one.source]
        else:
            alone = graded_alone(hub, one, "gpu", gpu)
            timed_alone[one.source] = alone
        result = queued[one.id].result
        assert result is not None
        row = Row(one, result.stage, result.facts, alone)
        rows.append(row)
        if not are_equal(row.queued, row.alone):
            say(f"differs: {one.lab.lab.id}, {one.about}, in the queue and alone:")
            for facts in (row.queued, row.alone):
                say(f"| {facts.status} | {facts.of_baseline} | {facts.of_limit} |")
        now_s = time.monotonic()
        if number == len(handed) or now_s - said_s > SILENT_S:
            said_s = now_s
            passed_s = now_s - began_s
            say(
                f"{number} of {len(handed)} graded alone, too, after {passed_s:.0f} s; "
                f"{len(timed_alone)} sources timed"
            )
    return rows


def hand_in(hub: Hub, count: int) -> list[Handed]:
    """Hand in right and wrong solutions of several labs, each by somebody else."""
    rng = random.Random(5)
    names = [f"learner{number}" for number in range(count)]
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

"""A competition's final on a real GPU: same sources share a rank, faster ones lead.

pytest -m gpu -s tests/gpu/test_finals.py
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.gpu.class_gradings import class_hub
from tests.hub.core.course import FOREVER, publish_lab
from tests.hub.core.grading_progress import wait_until_graded
from tests.hub.core.started_hub import Hub
from tests.programs import wait_for
from warpbook_hub.competition import contests, entries, finals
from warpbook_hub.competition.board import Board, board
from warpbook_hub.course.courses import person_of, viewer
from warpbook_hub.course.publications import publication
from warpbook_hub.course.roster import import_roster
from warpbook_hub.course.roster_csv import read_roster
from warpbook_hub.database.tables import FINAL_JOBS, JOBS, RESULTS
from warpbook_hub.grader.gpus import devices
from warpbook_hub.queue.graders import graders
from warpbook_hub.rules.lateness import Window
from warpbook_hub.work.results import results
from warpbook_hub.work.submissions import receive
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loader import load

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(0)]

LAB = CATALOGUE / "memory" / "matmul"
BLOCKED, WIDER = "register_blocked.cu", "wider_tiles.cu"
#: who hands in which solution: the reference is the fastest, the wider tiles come next
ENTRIES = {
    "ann": "reference",
    "ben": "reference",
    "cat": BLOCKED,
    "dan": BLOCKED,
    "eve": WIDER,
}
#: how long submissions are taken
OPEN_MS = 10_000
LEASE_S = 30.0


class Run(NamedTuple):
    """A job of the GPU: of which final, if of one, and when it ran."""

    final: str | None
    submission: str
    began_ms: int
    ended_ms: int


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with class_hub(tmp_path) as begun:
        yield begun


def hand_in(hub: Hub) -> tuple[str, dict[str, str]]:
    """Open a competition that everybody joins; give it, and submissions by person."""
    room, loaded = hub.room, load(LAB)
    solutions = {"reference": loaded.reference, **loaded.correct}
    now_ms = room.now_ms
    due_ms = now_ms + OPEN_MS
    window = Window(now_ms, due_ms, due_ms + 1)
    roster = read_roster("\n".join(["username", "ada", *ENTRIES]).encode())
    handed = {}
    with room.database.write() as connection:
        import_roster(connection, now_ms, "hub", "gpu101", roster)
        facts = {"lab": loaded.lab.id, "windows": {"": window}}
        published = publish_lab(connection, "gpu101", **facts)
        contest = publication(connection, published)
        contests.open_competition(connection, now_ms, "hub", contest, due_ms)
        for name, solution in ENTRIES.items():
            person = person_of(connection, name)
            entries.join(connection, now_ms, contest, person, f"{name} runs")
            source = f"// {name}'s own\n{solutions[solution]}"
            handed[name] = receive(connection, now_ms, published, person, source)
    return published, {name: receipt.submission for name, receipt in handed.items()}


def hand_in_meanwhile(hub: Hub) -> str:
    """Hand in to another lab, which has no competition."""
    loaded = load(CATALOGUE / "kernels" / "vector_add")
    with hub.room.database.write() as connection:
        facts = {"lab": loaded.lab.id, "windows": {"": FOREVER}}
        published = publish_lab(connection, "gpu101", **facts)
        person, now_ms = person_of(connection, "ada"), int(time.time() * 1000)
        source = loaded.reference
        return receive(connection, now_ms, published, person, source).submission


def start_final(hub: Hub, published: str) -> finals.Final:
    now_ms = int(time.time() * 1000)
    with hub.room.database.write() as connection:
        (grader,) = graders(connection, now_ms)
        lab, uuid = publication(connection, published), grader.devices[0].uuid
        return finals.start_final(connection, now_ms, "hub", lab, grader.id, uuid)


def wait_for_final(hub: Hub, published: str, say: Callable[[str], None]) -> None:
    """Wait until all its jobs have a result; fail where nothing more happens."""
    done, last_s = 0, time.monotonic()
    while True:
        fallen = hub.fallen()
        with hub.room.database.read() as connection:
            now = finals.last_final(connection, published)
        assert now is not None
        if now.done > done:
            done, last_s = now.done, time.monotonic()
            if done % len(ENTRIES) == 0:
                say(f"{done} of {now.jobs} jobs of the final are done")
        if done == now.jobs:
            return
        is_stalled = time.monotonic() - last_s > 120
        assert not (fallen or is_stalled or now.parked), hub.last_words()
        time.sleep(0.2)


def runs_on_gpu(hub: Hub) -> list[Run]:
    """Give what the GPU ran, by its beginning."""
    query = (
        RESULTS.join(JOBS, JOBS.c.id == RESULTS.c.job)
        .join(FINAL_JOBS, FINAL_JOBS.c.job == JOBS.c.id, isouter=True)
        .select()
        .with_only_columns(
            FINAL_JOBS.c.final,
            RESULTS.c.submission,
            RESULTS.c.received_ms - RESULTS.c.took_ms,
            RESULTS.c.received_ms,
        )
        .where(RESULTS.c.stage == "gpu")
    )
    with hub.room.database.read() as connection:
        rows = [Run(*row) for row in connection.execute(query)]
    return sorted(rows, key=lambda run: run.began_ms)


def shown(hub: Hub, published: str, username: str) -> Board:
    with hub.room.database.read() as connection:
        competition = contests.require(connection, published)
        who = viewer(connection, "gpu101", username)
        now_ms = int(time.time() * 1000)
        return board(connection, now_ms, "gpu101", competition, who)


def table_lines(of_gpu: str, before: Board, after: Board) -> list[str]:
    once = {entry.pseudonym: entry.of_baseline for entry in before.entries}
    lines = [
        f"{of_gpu}: speed beside the baseline, in one run and in the final",
        "| rank | who | solution | one run | final | slowest to fastest round |",
        "|---|---|---|---|---|---|",
    ]
    for entry in after.final_entries:
        name = entry.pseudonym.split()[0]
        alone, final = once[entry.pseudonym], entry.of_baseline
        lines.append(
            f"| {entry.rank} | {name} | {ENTRIES[name]} | {alone.middle:.3f} "
            f"({alone.low:.3f} to {alone.high:.3f}) | {final.middle:.3f} | "
            f"{final.low:.3f} to {final.high:.3f} |"
        )
    return lines


def test_a_final_ranks_by_speed_and_the_gpu_does_nothing_else(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    def say(words: str) -> None:
        # at once, so that a run that is cut off has said how far it was
        with capsys.disabled():
            print(words, flush=True)

    published, handed = hand_in(hub)
    (gpu,) = devices()[:1]
    with hub.service(LEASE_S), hub.grader("--cpu-slots", "4", stub=False, use_gpu=True):
        wait_until_graded(hub, list(handed.values()), say)
        closed_ms = hub.room.now_ms + OPEN_MS
        wait_for("the due date", lambda: time.time() * 1000 > closed_ms + 1 or None)
        with hub.room.database.read() as connection:
            kept = {name: results(connection, one) for name, one in handed.items()}
        before = shown(hub, published, "grace")
        started = start_final(hub, published)
        other = hand_in_meanwhile(hub)
        wait_for_final(hub, published, say)
        wait_until_graded(hub, [other], say)
    with hub.room.database.write() as connection:
        lab = publication(connection, published)
        now_ms = int(time.time() * 1000)
        contests.end_competition(connection, now_ms, "hub", lab)
        # what was measured before is what it was
        assert kept == {name: results(connection, one) for name, one in handed.items()}
    after = shown(hub, published, "ann")
    for line in table_lines(gpu.name, before, after):
        say(line)
    runs = runs_on_gpu(hub)
    of_final = [run for run in runs if run.final is not None]
    assert len(of_final) == len(ENTRIES) * started.rounds
    first, last = runs.index(of_final[0]), runs.index(of_final[-1])
    assert runs[first : last + 1] == of_final
    assert [run.submission for run in runs[last + 1 :]] == [other]
    for earlier, later in itertools.pairwise(of_final):
        assert earlier.ended_ms <= later.began_ms
    for begin in range(0, len(of_final), len(ENTRIES)):
        one_round = of_final[begin : begin + len(ENTRIES)]
        assert {run.submission for run in one_round} == set(handed.values())
    ranks = {entry.pseudonym.split()[0]: entry.rank for entry in after.final_entries}
    assert ranks == {"ann": 1, "ben": 1, "eve": 3, "cat": 4, "dan": 4}

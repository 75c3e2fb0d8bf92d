"""A class on two GPUs of one machine: by processes of this machine, and by Ray.

`pytest -m two_gpus -s tests/gpu/test_two_gpus_hub.py` grades
WARPBOOK_HUB_SUBMISSIONS submissions with each, and prints how long it took beside what
the jobs needed, and whether one quiet GPU says the same. Then each gives both GPUs to
one job at once.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.gpu.class_gradings import (
    EVERY,
    are_equal,
    class_hub,
    compared,
    hand_in,
    table_lines,
)
from tests.hub.core.grading_progress import wait_until_graded
from tests.hub.core.started_hub import Hub
from tests.hub.ray.cluster import Cluster, cluster
from tests.programs import ROOT
from warpbook.hub_protocol import GradedFacts
from warpbook_hub.database.tables import RESULTS
from warpbook_hub.grader.gpus import devices

pytestmark = [pytest.mark.two_gpus, pytest.mark.timeout(0)]

GANG_COMMAND = (sys.executable, os.fspath(ROOT / "tests" / "gpu" / "gang_child.py"))
SUBMISSIONS_COUNT = int(os.environ.get("WARPBOOK_HUB_SUBMISSIONS", "40"))
ENGINES = os.environ.get("WARPBOOK_HUB_ENGINES", "local ray").split()
#: jobs that have both GPUs
GANGS_COUNT = 4
LEASE_S = 30.0
#: what one quiet GPU said of each source, for both engines
ALONE: dict[str, GradedFacts] = {}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with class_hub(tmp_path) as begun:
        yield begun


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    def say_at_once(words: str) -> None:
        # a run that is cut off has told how far it was
        with capsys.disabled():
            print(words, flush=True)

    return say_at_once


@contextlib.contextmanager
def engine_options(engine: str, folder: Path, slots: int) -> Iterator[tuple[str, ...]]:
    """Give what a grader needs to know of an engine, while that is there."""
    if engine == "local":
        yield ("--cpu-slots", str(slots))
        return
    with cluster(folder) as begun:
        begun.start_head()
        begun.start_node(1, slots, has_gpus=True)
        yield on_ray(begun)


def on_ray(begun: Cluster) -> tuple[str, ...]:
    token = os.fspath(begun.token_file)
    return (
        "--engine",
        "ray",
        "--ray-address",
        begun.address,
        "--ray-token-file",
        token,
    )


def cpu_slots() -> int:
    return max(1, len(os.sched_getaffinity(0)) // 4)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_class_is_graded_by_both_as_by_one_quiet_gpu(
    engine: str, hub: Hub, tmp_path: Path, say: Callable[[str], None]
) -> None:
    handed = hand_in(hub, SUBMISSIONS_COUNT)
    gpus = devices()
    assert len(gpus) == 2, gpus
    say(f"\n{engine}: {len(handed)} submissions, {cpu_slots()} CPU slots, 2 GPUs")
    with engine_options(engine, tmp_path, cpu_slots()) as options, hub.service(LEASE_S):
        with hub.grader(*options, stub=False, use_gpu=True):
            ids = [one.id for one in handed]
            queued = wait_until_graded(hub, ids, say, EVERY * 4)
    say(makespan_line(hub))
    rows = compared(hub, handed, queued, gpus[0].uuid, say, ALONE)
    differing = [row for row in rows if not are_equal(row.queued, row.alone)]
    for line in table_lines(rows):
        say(line)
    say(f"{len(rows) - len(differing)} of {len(rows)} as by one quiet GPU")
    assert differing == []


def makespan_line(hub: Hub) -> str:
    """Say how long all took from the first job on, beside what it can't be below.

    The ideal has all slots of a stage busy from the first job to the last.
    """
    with hub.room.database.read() as connection:
        results = connection.execute(RESULTS.select()).all()
    began_ms = min(result.received_ms - result.took_ms for result in results)
    took_s = (max(result.received_ms for result in results) - began_ms) / 1000
    needed_s = {
        stage: sum(row.took_ms for row in results if row.stage == stage) / 1000 / places
        for stage, places in (("cpu", cpu_slots()), ("gpu", 2))
    }
    ideal_s = max(needed_s.values())
    return (
        f"makespan {took_s:.1f} s; ideal {ideal_s:.1f} s (CPU {needed_s['cpu']:.1f} s, "
        f"GPU {needed_s['gpu']:.1f} s); ratio {took_s / ideal_s:.2f}"
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_a_job_has_both_gpus_and_no_other_has_one(
    engine: str, hub: Hub, tmp_path: Path, say: Callable[[str], None]
) -> None:
    handed = hand_in(hub, GANGS_COUNT)
    ids = [one.id for one in handed if one.lab.lab.plan is None][:GANGS_COUNT]
    with engine_options(engine, tmp_path, 2) as options, hub.service(LEASE_S):
        options += ("--gpus-per-job", "2", "--command", *GANG_COMMAND)
        with hub.grader(*options, stub=False, use_gpu=True):
            queued = wait_until_graded(hub, ids, say, EVERY)
    spans = []
    uuids = {gpu.uuid.removeprefix("GPU-") for gpu in devices()}
    for submission in ids:
        result = queued[submission].result
        assert result is not None and result.stage == "gpu"
        began, ended, first, sums, second, also = result.facts.message.split()
        assert {first, second} == uuids
        assert sums == also == "[3.0]"
        spans.append((float(began), float(ended)))
    spans.sort()
    say(f"\n{engine}: {len(spans)} jobs on both GPUs, seconds of each:")
    say(" ".join(f"{end - begin:.1f}" for begin, end in spans))
    assert len(spans) > 1
    for before, after in zip(spans, spans[1:], strict=False):
        assert before[1] <= after[0], spans

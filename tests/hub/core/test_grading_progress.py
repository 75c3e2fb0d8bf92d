"""A long grading says how far it is, and ends at once where it can't go on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.core.course import FOREVER, classroom
from tests.hub.core.grading_progress import NotGraded, wait_until_graded
from tests.hub.core.test_grader import VECTOR_ADD, Hub
from tests.programs import free_port
from warpbook_labs.lab.loader import load


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    room = classroom(tmp_path / "hub" / "hub.db", windows={"": FOREVER})
    # waits are by the service's clock
    room.now_ms = int(time.time() * 1000)
    yield Hub(room, free_port(), tmp_path / "log")
    room.database.close()


def test_each_stage_tells_where_its_time_went(hub: Hub) -> None:
    source = load(VECTOR_ADD).reference
    names = ("ada", "bob", "cyd")
    ids = [hub.room.submit(name, source).submission for name in names]
    lines: list[str] = []
    # a GPU that is not there: what is done on one is checked without it
    with hub.service(), hub.grader("--simulated-gpus", "1", stub=False):
        graded = wait_until_graded(hub.room, ids, lines.append, every=2)
    assert all(graded[submission].result for submission in ids)
    heads = [line for line in lines if not line.startswith(" ")]
    # two may end between two looks
    assert heads[-1].startswith("3 of 3 graded") and len(heads) <= 2
    for stage in ("cpu", "gpu"):
        [last] = [line for line in lines if line.startswith(f"  {stage}, 3 jobs")][-1:]
        for part in ("queue wait", "process start", "correctness", "in all"):
            assert f"{part} " in last, last


def test_a_parked_job_ends_the_wait_with_its_note(hub: Hub) -> None:
    ids = [hub.room.submit("ada", "// crash").submission]
    with hub.service(), hub.grader(), pytest.raises(NotGraded, match="signal 11"):
        wait_until_graded(hub.room, ids, lambda line: None)


def test_a_grading_that_stands_still_ends_the_wait(hub: Hub) -> None:
    ids = [hub.room.submit("ada", "// right").submission]
    with pytest.raises(NotGraded, match="cpu queued, leased 0 times"):
        wait_until_graded(hub.room, ids, lambda line: None, stalled_s=0.5)

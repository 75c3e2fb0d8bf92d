"""Submissions of a class through the queue, to a real GPU: as if graded one by one."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
from warpbook_hub.grader.gpus import devices

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(0)]

#: 100 are what the evidence is of; fewer fit into a short run
SUBMISSIONS_COUNT = int(os.environ.get("WARPBOOK_HUB_SUBMISSIONS", "24"))
#: as real ones: a job that is given to another, since all is busy here, tells nothing
LEASE_S = 30.0


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with class_hub(tmp_path) as begun:
        yield begun


def test_a_class_is_graded_as_if_one_by_one(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    def say(words: str) -> None:
        # at once, so that a run that is cut off has told how far it was
        with capsys.disabled():
            print(words, flush=True)

    handed = hand_in(hub, SUBMISSIONS_COUNT)
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

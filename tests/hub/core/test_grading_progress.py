"""A long grading says how far it is, and ends at once where it can't go on."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.core.course import FOREVER, classroom
from tests.hub.core.grading_progress import NotGraded, Patience, wait_until_graded
from tests.hub.core.started_hub import Hub, started
from tests.programs import free_port
from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loader import load

VECTOR_ADD = CATALOGUE / "kernels" / "vector_add"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    room = classroom(tmp_path / "hub" / "hub.db", windows={"": FOREVER})
    # waits are by the service's clock
    room.now_ms = int(time.time() * 1000)
    yield Hub(room, free_port(), tmp_path)
    room.database.close()


def test_each_stage_tells_where_its_time_went(hub: Hub) -> None:
    source = load(VECTOR_ADD).reference
    names = ("ada", "bob", "cyd")
    ids = [hub.room.submit(name, source).submission for name in names]
    lines: list[str] = []
    # a GPU that is not there: what is done on one is checked without it
    patience = Patience(line_s=180)
    # a lease that a busy machine does not lose
    with hub.service(lease_s=600), hub.grader("--simulated-gpus", "1", stub=False):
        graded = wait_until_graded(hub, ids, lines.append, 2, patience)
    assert all(graded[submission].result for submission in ids)
    heads = [line for line in lines if not line.startswith(" ")]
    # two may end between two looks
    assert heads[-1].startswith("3 of 3 graded") and len(heads) <= 3
    for stage in ("cpu", "gpu"):
        [last] = [line for line in lines if line.startswith(f"  {stage}, 3 jobs")][-1:]
        for part in ("queue wait", "process start", "correctness", "in all"):
            assert f"{part} " in last, last


def test_a_parked_job_ends_the_wait_with_its_note(hub: Hub) -> None:
    ids = [hub.room.submit("ada", "// crash").submission]
    with hub.service(), hub.grader(), pytest.raises(NotGraded, match="signal 11"):
        wait_until_graded(hub, ids, lambda line: None)


def test_a_grading_that_stands_still_ends_the_wait(hub: Hub) -> None:
    ids = [hub.room.submit("ada", "// right").submission]
    lines: list[str] = []
    patience = Patience(lease_s=1.5, line_s=0.5)
    with pytest.raises(NotGraded, match="1 x cpu queued, leased 0 times"):
        wait_until_graded(hub, ids, lines.append, patience=patience)
    assert lines and lines[0].endswith("; 1 cpu waits")


def test_a_grader_that_falls_ends_the_wait_with_what_it_said(hub: Hub) -> None:
    ids = [hub.room.submit("ada", "// right").submission]
    with hub.service(), hub.grader("--no-such-option"):
        with pytest.raises(NotGraded) as problem:
            wait_until_graded(hub, ids, lambda line: None)
    assert "a grader has ended with status 2" in str(problem.value)
    assert "unrecognized arguments: --no-such-option" in str(problem.value)


def test_a_program_finds_packages_that_only_this_process_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / "not_installed.py").write_text("print('found')")
    monkeypatch.syspath_prepend(packages)
    log = tmp_path / "log"
    with started([sys.executable, "-m", "not_installed"], log) as process:
        assert process.wait(60) == 0, log.read_text()
    assert log.read_text() == "found\n"

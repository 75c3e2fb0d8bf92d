"""The engine of one machine does what every engine has to."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.hub.core.engine_conformance import EngineConformance, order, wait_for_ends
from tests.programs import ROOT, wait_for
from warpbook.hub_protocol import Device, JobOrder
from warpbook_hub.grader.engine import JobEnd, Places
from warpbook_hub.grader.job_run import Bounds
from warpbook_hub.grader.local_pool import LocalPool

STUB = (sys.executable, str(ROOT / "tests" / "hub" / "core" / "stub_child.py"))

PLACES = Places(2, (Device("GPU-7", "simulated"),))


@pytest.fixture
def engine() -> Iterator[LocalPool]:
    pool = LocalPool(Bounds(wall_s=120, memory_bytes=300 << 20), STUB, places=PLACES)
    yield pool
    pool.close()


@pytest.fixture
def impatient() -> Iterator[LocalPool]:
    pool = LocalPool(Bounds(wall_s=2), STUB)
    yield pool
    pool.close()


class TestLocalPool(EngineConformance):
    pass


class TestLocalPoolWithSpares(EngineConformance):
    @pytest.fixture
    def engine(self) -> Iterator[LocalPool]:
        bounds = Bounds(wall_s=120, memory_bytes=300 << 20)
        pool = LocalPool(bounds, STUB, keeps_spares=True, places=PLACES)
        yield pool
        pool.close()


@pytest.fixture
def with_spares() -> Iterator[LocalPool]:
    pool = LocalPool(Bounds(wall_s=120), STUB, keeps_spares=True)
    yield pool
    pool.close()


def waiting() -> list[int]:
    """Give the processes that have started to grade, and have not ended."""
    return [
        process.pid
        for process in psutil.Process().children()
        if process.status() != psutil.STATUS_ZOMBIE and STUB[1] in process.cmdline()
    ]


def gpu_order(source: str, job: str) -> JobOrder:
    return order(source, job, stage="gpu", device="GPU-7")


def run_to_end(engine: LocalPool, source: str, job: str) -> JobEnd:
    engine.submit(gpu_order(source, job))
    [ended] = wait_for_ends(engine, 1)
    return ended


def test_the_next_job_of_a_gpu_finds_its_process_started(
    with_spares: LocalPool, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    assert run_to_end(with_spares, "// right", "first").how == "done"
    [spare] = waiting()
    assert run_to_end(with_spares, f"// log {log}", "second").how == "done"
    _, _, device, pid = log.read_text().split()
    assert (device, int(pid)) == ("GPU-7", spare)
    # one process does one job
    assert waiting() and spare not in waiting()
    with_spares.close()
    assert waiting() == []


def test_a_waiting_process_that_has_ended_costs_no_job(with_spares: LocalPool) -> None:
    run_to_end(with_spares, "// right", "first")
    [spare] = waiting()
    process = psutil.Process(spare)
    process.kill()
    # before that it is on its way out, and not yet seen to have ended
    ended = psutil.STATUS_ZOMBIE
    wait_for("its end", lambda: True if process.status() == ended else None)
    assert run_to_end(with_spares, "// right", "second").how == "done"


def test_a_job_without_a_gpu_leaves_no_process_waiting(with_spares: LocalPool) -> None:
    with_spares.submit(order("// right"))
    wait_for_ends(with_spares, 1)
    assert waiting() == []


def test_no_secret_of_the_grader_reaches_what_grades(
    engine: LocalPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "secret")
    monkeypatch.setenv("WARPBOOK_LABS_VAULT", "/vault")
    engine.submit(order("// environment"))
    [ended] = wait_for_ends(engine, 1)
    assert "WARPBOOK_LABS_VAULT" in ended.message
    assert "TOKEN" not in ended.message


def test_a_program_that_is_not_there_is_a_crash() -> None:
    pool = LocalPool(command=("/nowhere/python",))
    pool.submit(order("// right"))
    [ended] = wait_for_ends(pool, 1)
    assert ended.how == "crashed" and "begun" in ended.message
    pool.close()

"""What every engine has to do, whatever it runs jobs on.

A subclass named `Test...` gives the fixture `engine`, whose jobs are run by
`stub_child` with 300 MiB at most, and `impatient`, which ends them after two seconds.
Both have two CPU slots and the GPU `GPU-7`.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from hashlib import sha256
from pathlib import Path

import psutil
import pytest

from tests.programs import wait_for
from warpbook.hub_protocol import JobOrder, Stage
from warpbook_hub.grader.engine import Engine, Graded, JobEnd, NotGraded

#: so that no other test's sleepers are taken for those of this one
NAP_S = f"611.{os.getpid()}"
HANG = f"// hang {NAP_S}"


def order(
    source: str, job: str = "j1", fence: int = 1, stage: Stage = "cpu", device: str = ""
) -> JobOrder:
    digest = sha256(source.encode()).hexdigest()
    return JobOrder(job, fence, stage, "some-lab", "", source, digest, 7, device)


def wait_for_ends(engine: Engine, count: int, seconds: float = 120) -> list[JobEnd]:
    ends: list[JobEnd] = []
    end_s = time.monotonic() + seconds
    while len(ends) < count:
        assert time.monotonic() < end_s, f"{len(ends)} of {count} jobs have ended"
        ends += engine.ended(0.5)
    return ends


def sleepers() -> list[int]:
    """Give the processes that a hanging job started."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if process.info["cmdline"] == ["sleep", NAP_S]
        and process.status() != psutil.STATUS_ZOMBIE
    ]


class EngineConformance:
    @pytest.mark.timeout(60)
    def test_a_signal_does_not_lengthen_a_wait(self, engine: Engine) -> None:
        before = signal.signal(signal.SIGUSR1, lambda *_: time.sleep(0.4))
        sender = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1))
        sender.start()
        try:
            assert engine.ended(0.3) == []
        finally:
            sender.join()
            signal.signal(signal.SIGUSR1, before)

    def test_it_says_what_jobs_can_have(self, engine: Engine) -> None:
        places = engine.places()
        assert places.cpu_slots == 2
        assert "GPU-7" in [device.uuid for device in places.devices]

    def test_a_job_is_run_and_told_once(self, engine: Engine) -> None:
        engine.submit(order("// right"))
        [ended] = wait_for_ends(engine, 1)
        assert (ended.how, ended.lease.job, ended.lease.fence) == ("done", "j1", 1)
        assert isinstance(ended.outcome, Graded)
        assert ended.outcome.facts.verdict == "right"
        assert engine.ended(0.2) == []

    def test_a_crash_is_one_jobs_own(self, engine: Engine) -> None:
        engine.submit(order("// crash", "bad"))
        engine.submit(order("// right", "good"))
        ends = {end.lease.job: end for end in wait_for_ends(engine, 2)}
        assert ends["bad"].how == "crashed" and "signal 11" in ends["bad"].message
        assert ends["good"].how == "done"

    def test_a_hang_is_ended_with_all_that_it_started(self, impatient: Engine) -> None:
        before = set(sleepers())
        impatient.submit(order(HANG))
        [ended] = wait_for_ends(impatient, 1)
        assert ended.how == "timed out" and ended.message
        assert set(sleepers()) <= before

    def test_memory_is_bounded(self, engine: Engine) -> None:
        engine.submit(order("// memory"))
        [ended] = wait_for_ends(engine, 1)
        assert ended.how == "out of memory" and ended.message

    def test_a_cancelled_job_is_ended_with_all_that_it_started(
        self, engine: Engine
    ) -> None:
        before = set(sleepers())
        engine.submit(order(HANG))
        wait_for("a sleeper", lambda: set(sleepers()) - before or None)
        engine.cancel("j1")
        engine.cancel("nothing")
        [ended] = wait_for_ends(engine, 1)
        assert ended.how == "cancelled"
        assert set(sleepers()) <= before

    def test_the_same_lease_twice_runs_once(
        self, engine: Engine, tmp_path: Path
    ) -> None:
        log = tmp_path / "log"
        for _ in range(2):
            engine.submit(order(f"// log {log}"))
        [ended] = wait_for_ends(engine, 1)
        assert ended.how == "done" and engine.ended(0.5) == []
        assert len(log.read_text().splitlines()) == 1

    def test_a_newer_lease_ends_the_older_one(self, engine: Engine) -> None:
        engine.submit(order(HANG, fence=1))
        engine.submit(order("// right", fence=2))
        ends = {end.lease.fence: end.how for end in wait_for_ends(engine, 2)}
        assert ends == {1: "cancelled", 2: "done"}

    def test_a_job_has_its_gpu_and_no_other(
        self, engine: Engine, tmp_path: Path
    ) -> None:
        log = tmp_path / "log"
        engine.submit(order(f"// log {log}", stage="gpu", device="GPU-7"))
        [ended] = wait_for_ends(engine, 1)
        assert ended.how == "done" and log.read_text().split()[2] == "GPU-7"

    def test_what_is_no_outcome_is_a_crash(self, engine: Engine) -> None:
        engine.submit(order("// noise"))
        [ended] = wait_for_ends(engine, 1)
        assert ended.how == "crashed" and ended.outcome is None

    def test_what_cant_be_graded_here_is_said(self, engine: Engine) -> None:
        engine.submit(order("// nowhere"))
        [ended] = wait_for_ends(engine, 1)
        assert ended.outcome == NotGraded("there is no compiler here")

    def test_closing_ends_all(self, engine: Engine) -> None:
        before = set(sleepers())
        engine.submit(order(HANG, "a"))
        engine.submit(order(HANG, "b"))
        wait_for("both sleepers", lambda: len(set(sleepers()) - before) == 2 or None)
        engine.close()
        assert set(sleepers()) <= before

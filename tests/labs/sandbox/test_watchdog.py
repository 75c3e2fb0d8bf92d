"""What a learner's process does with its time counts, not how busy the machine is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from warpbook.hub_protocol import LeaseName, Release
from warpbook_hub.grader.engine import JobEnd, NotGraded
from warpbook_hub.grader.work_loop import _message_of
from warpbook_labs.course.session import check_public, find, submit
from warpbook_labs.course.store import Store
from warpbook_labs.errors import TooBusy
from warpbook_labs.sandbox import children, warm
from warpbook_labs.sandbox.work import Limits

#: a plan with dialogues, kernels, and host code: each has processes of another kind
LABS = ("continuous-batching", "matmul", "fix-the-stream")


@pytest.fixture
def busy_core() -> Iterator[None]:
    """Share one core with four programs that never rest."""
    cores = os.sched_getaffinity(0)
    warm.close()
    os.sched_setaffinity(0, {min(cores)})
    try:
        busy = [
            subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(4)
        ]
        yield
    finally:
        os.sched_setaffinity(0, cores)
        for program in busy:
            program.kill()
            program.wait()
        warm.close()


@pytest.mark.usefixtures("busy_core")
@pytest.mark.parametrize("name", LABS)
def test_references_pass_on_a_busy_machine_in_what_they_need_alone(name: str) -> None:
    lab = find(name)
    limits = Limits(asleep_s=2.0)
    card = check_public(lab, lab.reference, limits, use_gpu=False)
    assert card.passed, card.result.message


# a kernel can't sleep
@pytest.mark.parametrize("name", [name for name in LABS if name != "matmul"])
def test_what_sleeps_for_ever_is_the_learners(name: str) -> None:
    lab = find(name)
    source = f"import time\ntime.sleep(1e6)\n{lab.reference}"
    result = check_public(lab, source, Limits(asleep_s=1.0), use_gpu=False).result
    assert result.status == "timed out"
    assert result.message == "Timed out: it slept for 1 s."


def test_who_ends_its_first_thread_is_not_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "_MOST_S", 60.0)
    program = (
        "import ctypes, platform, threading, time\n"
        "threading.Thread(target=time.sleep, args=(1e4,)).start()\n"
        "ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, 0)"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as child:
        try:
            dog = children.Watchdog(child.pid, 1.0)
            assert dog.wait(time.sleep)
        finally:
            child.kill()


@pytest.mark.parametrize("name", LABS)
def test_where_no_core_is_free_nothing_is_graded(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "_MOST_S", 0.0)
    monkeypatch.setattr(children, "_LOOK_S", 0.0)
    lab, store = find(name), Store(tmp_path / "labs.db")
    with pytest.raises(TooBusy, match="too busy.* labs regrade 1"):
        submit(store, lab, lab.reference, use_gpu=False)
    assert store.gradings(1) == []


def test_a_job_that_a_busy_grader_gives_back_is_queued_again() -> None:
    not_graded = NotGraded("too busy", is_busy=True)
    lease = LeaseName("job", 1)
    released = _message_of(JobEnd(lease, "cpu", "done", "", not_graded, 5))
    assert released == Release(lease, "timed out", "too busy")

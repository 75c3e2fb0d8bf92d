"""A process that is warm: it forks for each job, and no job harms it or the next."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.programs import wait_for
from warpbook_labs.engines.simulated.messages import CaseRun, HostCase, HostRuns, Record
from warpbook_labs.errors import NotInstalled
from warpbook_labs.sandbox import warm
from warpbook_labs.sandbox.parent import Outcome, environment
from warpbook_labs.sandbox.work import Limits
from warpbook_monitors.python_path import own_path

HEAD = "import torch\ndef run(state):\n    pass\ndef prepare():\n    "
FINE = "print(torch.ones(3, device='cuda').sum().item())"
ENDLESS = "while True: pass"


def outcome_of(
    body: str, limits: Limits | None = None, case_s: float = 60.0
) -> Outcome:
    job = Record(HEAD + body, "", (HostCase({}, (), ()),), case_s)
    return warm.run(job, limits)


def left(body: str, limits: Limits | None = None) -> CaseRun:
    outcome = outcome_of(body, limits)
    assert isinstance(outcome.result, HostRuns), outcome.message
    return outcome.result.cases[0]


def warm_process() -> psutil.Process:
    left(FINE)
    worker = warm._warm[Record.work.warm_module]
    assert worker._process is not None
    return psutil.Process(worker._process.pid)


def is_gone(process: psutil.Process) -> bool:
    _, alive = psutil.wait_procs([process], timeout=120)
    return not alive


def test_once_it_is_warm_no_process_loads_pytorch_for_a_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = warm_process().pid
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("it began one"))
        for _ in range(5):
            assert left(FINE).printed == "3.0\n"
    assert warm_process().pid == before


def test_a_child_is_shut_in_as_any_jail() -> None:
    outcome = outcome_of(FINE)
    assert outcome.tier is not None
    for body in (
        "open('/etc/passwd')",
        "import os; os.fork()",
        "import os; os.kill(1, 0)",
        "import socket; socket.socket()",
        "import os; [os.fstat(n) for n in range(3, 100)]",
    ):
        problem = left(body).problem
        assert problem.split(":")[0] in (
            *("PermissionError", "FileNotFoundError", "ModuleNotFoundError"),
            *("OSError", "BlockingIOError"),
        ), (body, problem)


def test_no_job_leaves_anything_to_the_next() -> None:
    body = "import builtins; torch.ones = None; builtins.len = None; torch.mine = 1"
    assert left(body).problem == ""
    fine = left(f"assert not hasattr(torch, 'mine') and len('abc') == 3; {FINE}")
    assert fine.printed == "3.0\n"


def test_a_job_that_does_not_end_is_ended_alone() -> None:
    before = warm_process()
    outcome = outcome_of(ENDLESS, Limits(processor_s=1))
    assert outcome.status == "timeout" and "CPU time" in outcome.message
    assert warm_process().pid == before.pid
    assert before.children() == []


def test_memory_is_bounded() -> None:
    # more than a process of PyTorch alone has, and less than these ask for
    limits = Limits(memory_bytes=1 << 30)
    assert left(FINE, limits).printed == "3.0\n"
    taken = left("held = [bytearray(1 << 28) for _ in range(9)]", limits)
    assert "MemoryError" in taken.problem
    on_gpu = left("held = [torch.ones(1 << 26).cuda() for _ in range(9)]", limits)
    assert on_gpu.problem != ""


def test_who_ends_its_own_process_ends_no_other() -> None:
    before = warm_process().pid
    outcome = outcome_of("import os; os._exit(7)")
    assert outcome.status == "crashed"
    outcome = outcome_of("import ctypes; ctypes.string_at(0)")
    assert outcome.status == "crashed" and "SIGSEGV" in outcome.message
    assert warm_process().pid == before


def test_jobs_are_done_side_by_side() -> None:
    outcomes: list[CaseRun] = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(left(FINE))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [outcome.printed for outcome in outcomes] == ["3.0\n"] * 6


def test_when_it_is_killed_its_children_end_and_the_job_is_begun_again() -> None:
    process = warm_process()
    outcomes: list[Outcome] = []
    thread = threading.Thread(
        target=lambda: outcomes.append(outcome_of(ENDLESS, Limits(processor_s=2)))
    )
    thread.start()
    [child] = wait_for("a job", lambda: process.children() or None)
    os.kill(process.pid, signal.SIGKILL)
    assert is_gone(child)
    thread.join()
    # by another process, in which it did not end either
    assert [outcome.status for outcome in outcomes] == ["timeout"]
    assert warm_process().pid != process.pid


def test_it_ends_with_the_process_that_asked() -> None:
    code = (
        "import sys\n"
        "from warpbook_labs.engines.simulated import checking\n"
        "from warpbook_labs.sandbox import warm\n"
        "from warpbook_labs.engines.simulated.messages import *\n"
        f"source = {HEAD + FINE!r}\n"
        "warm.run(Record(source, '', (HostCase({}, (), ()),), 9.0))\n"
        "[worker] = warm._warm.values()\n"
        "assert 'torch' not in sys.modules\n"
        "print(worker._process.pid, flush=True)\n"
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    asking = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        env={**environment(), "PYTHONPATH": own_path()},
        text=True,
    )
    assert asking.returncode == -signal.SIGKILL, asking.stderr
    try:
        process = psutil.Process(int(asking.stdout))
    except psutil.NoSuchProcess:
        return
    assert is_gone(process)


@pytest.fixture
def cold() -> Iterator[None]:
    """Begin and end without any warm process."""
    warm.close()
    yield
    warm.close()


@pytest.mark.parametrize(
    ("torch", "words"),
    [
        ("raise ImportError('nothing here')", "pip install 'warpbook-labs[torch]'"),
        ("import os; os.kill(os.getpid(), 11)", "this PyTorch or machine is not known"),
        ("import sys; sys.exit('no luck')", "no luck"),
    ],
)
def test_a_pytorch_that_can_not_be_loaded_is_told(
    cold: None, torch: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "torch"
    folder.mkdir()
    (folder / "__init__.py").write_text(torch, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), own_path()])
    there = {**environment(), "PYTHONPATH": path}
    monkeypatch.setattr(warm, "environment", lambda: there)
    with pytest.raises(NotInstalled) as problem:
        outcome_of(FINE)
    assert words in str(problem.value)

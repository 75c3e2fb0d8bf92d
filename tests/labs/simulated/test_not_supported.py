"""What can't be judged without a GPU is no mistake, and what is found stays one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from warpbook_labs.cases.sampling import hidden_cases, public_cases
from warpbook_labs.errors import TooBusy
from warpbook_labs.gpu.gpu import Gpu
from warpbook_labs.grading import cases as grading
from warpbook_labs.grading import table
from warpbook_labs.grading.table import case_grader_of
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.results.check import CheckResult
from warpbook_labs.results.device import DeviceCase, DeviceResult

#: the sums go through numbers of Python
LOOKS = """import torch

def prepare(n):
    return torch.cuda.Stream()

def run(side, x, y, factor, out):
    sums = factor * (x.cuda() + y[:, 0])
    out.copy_(torch.tensor(sums.tolist(), device="cuda"))
    y.add_(1)
"""
#: the same, and what is written on another stream is not waited for
RACES = LOOKS.replace(
    "    out.copy_",
    "    with torch.cuda.stream(side):\n        sums.neg_()\n    out.copy_",
).replace("tensor(sums.tolist()", "tensor([-each for each in sums.tolist()]")
THREAD = """import threading

def prepare(n):
    return None

def run(state, x, y, factor, out):
    asked = threading.Thread(target=lambda: out.copy_(factor * (x.cuda() + y[:, 0])))
    asked.start()
    asked.join()
    y.add_(1)
"""


def checked(lab: LoadedLab, source: str, use_gpu: bool) -> CheckResult:
    cases = public_cases(lab.lab) + hidden_cases(lab.lab, 5)
    return case_grader_of(lab.lab).run(Submission(lab, source, use_gpu=use_gpu), cases)


@pytest.fixture
def _gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a GPU on which all results are right."""

    def run_on_gpu(
        gpu: Gpu,
        submission: Submission,
        cases: Any,
        is_timed: bool,
        until_checked: Callable[[], object],
    ) -> DeviceResult:
        until_checked()
        device_cases = tuple(
            DeviceCase(case.about, case.is_hidden, True) for case in cases
        )
        return DeviceResult(
            gpu.name,
            gpu.architecture,
            device_cases,
            len(device_cases),
            len(device_cases),
        )

    gpu = Gpu("GPU-of-the-test", "A GPU", "sm_90", "580")
    monkeypatch.setattr(grading, "find_gpu", lambda: gpu)
    monkeypatch.setattr(table, "run_host", run_on_gpu)


def test_a_check_that_can_not_be_done_keeps_no_gpu_waiting(
    simulated: LoadedLab, _gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> CheckResult:
        raise TooBusy("Somebody works.")

    monkeypatch.setattr(table, "check_host", busy)
    with pytest.raises(TooBusy):
        checked(simulated, LOOKS, use_gpu=True)


def test_numbers_that_python_saw_are_decided_by_a_gpu(
    simulated: LoadedLab, _gpu: None
) -> None:
    alone = checked(simulated, LOOKS, use_gpu=False)
    assert alone.status == "unsupported"
    assert alone.message.startswith("It can't be checked without a GPU. Line 8: Python")
    beside = checked(simulated, LOOKS, use_gpu=True)
    assert beside.status == "passed" and beside.right == beside.of


def test_a_race_is_one_however_right_the_results(
    simulated: LoadedLab, _gpu: None
) -> None:
    for use_gpu in (False, True):
        result = checked(simulated, RACES, use_gpu)
        assert result.status == "failed"
        assert result.cases[0].message.startswith("race: ")


def test_a_thread_is_not_supported_on_a_gpu_either(
    simulated: LoadedLab, _gpu: None
) -> None:
    for use_gpu in (False, True):
        result = checked(simulated, THREAD, use_gpu)
        assert result.status == "unsupported"
        words = "It can't be checked without a GPU. Line 8: The simulated GPU"
        assert result.message.startswith(words)

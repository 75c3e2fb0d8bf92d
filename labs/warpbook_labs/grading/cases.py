"""Languages whose submissions run cases: graded without a GPU, and on one beside it.

Each sees what the other can't: the interpreter, and for host code the simulated GPU,
find races and count work; the GPU has the real order of things, large cases, and the
time. A case passes only if both accept it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np

from warpbook_labs.cases.preparation import OwnPython
from warpbook_labs.cases.sampling import (
    DrawnCase,
    hidden_cases,
    large_cases,
    public_cases,
)
from warpbook_labs.errors import BadLab, NoGpu, NotInstalled, NotOnGpu
from warpbook_labs.gpu.gpu import Gpu, find_gpu
from warpbook_labs.grading.grader import CaseEngines, Draws, Grader
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.lab.spec import Lab
from warpbook_labs.results.check import CheckResult, Status, all_passed, cases_word
from warpbook_labs.results.device import DeviceCase, DeviceResult
from warpbook_labs.results.disclosure import disclosed
from warpbook_labs.results.stage_times import stage


class CaseGrader(Grader):
    """Cases, drawn and judged."""

    def __init__(self, engines: CaseEngines) -> None:
        self.engines = engines

    def get_ready(self) -> None:
        self.engines.get_ready()

    def grade(self, submission: Submission) -> CheckResult:
        lab, seed = submission.loaded.lab, submission.seed
        cases = public_cases(lab)
        if seed is None:
            return self.run(submission, cases)
        hidden, large = hidden_cases(lab, seed), large_cases(lab, seed)
        return self.run(submission, cases + hidden, large, is_timed=True)

    def run(
        self,
        submission: Submission,
        cases: Sequence[DrawnCase],
        large: Sequence[DrawnCase] = (),
        is_timed: bool = False,
    ) -> CheckResult:
        """Run cases by all that is here, and say what a learner may know.

        Args:
            is_timed: whether its speed is graded where that can be.
        """
        cases = self.engines.fitted(submission, cases)
        result = self._run(submission, cases, large, is_timed)
        return with_lab_note(result, submission.loaded.lab)

    def _run(
        self,
        submission: Submission,
        cases: Sequence[DrawnCase],
        large: Sequence[DrawnCase],
        is_timed: bool,
    ) -> CheckResult:
        gpu: Gpu | None = None
        if submission.use_gpu:
            with contextlib.suppress(NoGpu):
                gpu = find_gpu()
        if gpu is None:
            return disclosed(self._judged(submission, cases))
        lab = submission.loaded.lab
        with ThreadPoolExecutor(1, "warpbook-gpu") as threads:
            every = [*cases, *large]
            checked = threading.Event()
            on_gpu = threads.submit(
                self.engines.run_on_gpu, gpu, submission, every, is_timed, checked.wait
            )
            try:
                whole = self._judged(submission, cases)
            finally:
                checked.set()
            result = disclosed(whole)
            try:
                device = on_gpu.result()
            except (NotOnGpu, NotInstalled) as problem:
                return without_gpu(result, lab, str(problem))
        # of the whole: what may not be told counts, too
        return joined(result, device, lab, is_timed, self.engines.has_veto(whole))

    def _judged(
        self, submission: Submission, cases: Sequence[DrawnCase]
    ) -> CheckResult:
        with stage("correctness"):
            return self.engines.check(submission, cases)

    def check_draws(self, submission: Submission, seeds: Sequence[int]) -> Draws:
        lab = submission.loaded.lab
        public = public_cases(lab)
        hidden = {
            seed: self.engines.fitted(submission, hidden_cases(lab, seed))
            for seed in seeds
        }
        cases = [*public, *(case for drawn in hidden.values() for case in drawn)]
        result = self.engines.check(submission, cases)
        by_draw, begin = {}, len(public)
        for seed, drawn in hidden.items():
            end = begin + len(drawn)
            by_draw[seed] = [*result.cases[: len(public)], *result.cases[begin:end]]
            begin = end
        return Draws(result, by_draw)

    def refuse_other_draws(self, loaded: LoadedLab, seeds: Sequence[int]) -> None:
        python, lab = OwnPython(loaded), loaded.lab
        hidden = [case for seed in seeds for case in hidden_cases(lab, seed)]
        # those that are shown are smaller
        by_kind = {case.values: case for case in [*hidden, *public_cases(lab)]}
        for case in by_kind.values():
            first, again = (
                python.inputs(case.sizes, case.values, np.random.default_rng(case.seed))
                for _ in range(2)
            )
            for parameter in lab.parameters:
                if parameter.kind not in ("input", "inout", "scalar"):
                    continue
                name = parameter.name
                one, other = np.asarray(first[name]), np.asarray(again[name])
                if not np.array_equal(one, other, equal_nan=True):
                    raise BadLab(
                        f"{loaded.folder / 'cases.py'}: inputs: with the same seed it "
                        f"gives another `{name}` (values: {case.values}). Draw from "
                        "`rng` alone."
                    )

    def record_trace(
        self, gpu: Gpu, submission: Submission, trace: Path, telemetry: Path
    ) -> None:
        self.engines.record_trace(gpu, submission, trace, telemetry)


#: nothing of it was run, here or there
_NOT_RUN: tuple[Status, ...] = ("compile error", "bad launch rule")
_NO_SPEED: dict[str, Status] = {
    "too slow": "too slow",
    "too noisy to tell": "too noisy to tell",
    "too busy": "too busy",
}


def without_gpu(result: CheckResult, lab: Lab, why: str) -> CheckResult:
    """Say of a result why there is none of the GPU beside it."""
    if result.status in _NOT_RUN:
        return result
    words = ["It was not run on the GPU: " + why]
    if lab.speed is not None:
        words.append("So its speed is not graded.")
    return msgspec.structs.replace(result, not_graded=tuple(words))


def with_lab_note(result: CheckResult, lab: Lab) -> CheckResult:
    """Add what the lab says that no grader judges."""
    note = lab.host.not_graded if lab.host is not None else ""
    if not note or result.status in _NOT_RUN:
        return result
    return msgspec.structs.replace(result, not_graded=(*result.not_graded, note))


def joined(
    result: CheckResult,
    device: DeviceResult,
    lab: Lab,
    is_timed: bool,
    has_veto: bool,
) -> CheckResult:
    """Join what both engines found: a case passes only if both accept it.

    Args:
        result: without a GPU, fit to be told.
        has_veto: whether what was found without a GPU counts although all is right on
            it.
    """
    if result.status in _NOT_RUN:
        return result
    device = disclosed(device)
    failed_there = device.of - device.right
    result = msgspec.structs.replace(
        result,
        device=device,
        right=min(result.right, max(0, result.of - failed_there)),
        not_graded=_not_graded(device, lab, is_timed),
    )
    if failed_there:
        first = next(case for case in device.cases if not case.passed)
        return msgspec.structs.replace(
            result, status="failed", message=_failed(result, device, first)
        )
    if has_veto:
        words = f"{result.message} On the GPU its results are right this time."
        return msgspec.structs.replace(result, message=words)
    if result.status != "passed":
        words = f"Only results are checked, not data races: {result.message}"
        result = msgspec.structs.replace(
            result,
            status="passed",
            right=result.of,
            not_graded=(*result.not_graded, words),
        )
    message = all_passed(device.of, ", on the GPU too")
    speed = device.speed
    if speed is None:
        return msgspec.structs.replace(result, message=message)
    return msgspec.structs.replace(
        result,
        status=_NO_SPEED.get(speed.status, "passed"),
        message=f"{message} {speed.message}"
        if speed.status != "not graded"
        else message,
    )


def _failed(result: CheckResult, device: DeviceResult, first: DeviceCase) -> str:
    noun = cases_word(device.of)
    words = f"On the GPU {device.right:,} of {device.of:,} {noun} passed."
    if result.status == "passed":
        return (
            f"{words} The first that failed: {first.about}. {first.message} Without "
            "the GPU, where cases are smaller, no mistake is found."
        )
    return f"{result.message} {words}"


def _not_graded(device: DeviceResult, lab: Lab, is_timed: bool) -> tuple[str, ...]:
    if lab.speed is None:
        return ()
    if not is_timed:
        return ("Speed is graded when you submit.",)
    if device.speed is None:
        return ("Speed is graded once all cases pass.",)
    if device.speed.status == "not graded":
        return (f"Speed is not graded: {device.speed.message}",)
    return ()

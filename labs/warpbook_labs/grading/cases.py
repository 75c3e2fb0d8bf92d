"""Languages whose submissions run cases: graded without a GPU, and on one beside it.

Each sees what the other can't: the interpreter, and for host code the simulated GPU,
find races and count work; the GPU has the real order of things, large cases, and the
time. A case passes only if both accept it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

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
from warpbook_labs.grading.joining import joined, with_lab_note, without_gpu
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.submission import Submission
from warpbook_labs.results.check import CheckResult
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
            on_gpu = threads.submit(
                self.engines.run_on_gpu, gpu, submission, every, is_timed
            )
            if self.engines.needs_quiet_cpu:
                wait([on_gpu])
            whole = self._judged(submission, cases)
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

    def check_shown(self, submission: Submission) -> CheckResult | None:
        cases = public_cases(submission.loaded.lab)
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

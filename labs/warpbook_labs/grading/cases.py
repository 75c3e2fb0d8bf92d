"""Languages whose submissions run cases: graded without a GPU, and on one beside it.

Each sees what the other can't: the interpreter, and for host code the simulated GPU,
find races and count work; the GPU has the real order of things, large cases, and the
time. A case passes only if both accept it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
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
from warpbook_labs.grading.joining import joined, with_lab_note, without_gpu
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.results.check import CheckResult
from warpbook_labs.results.disclosure import fit_to_tell
from warpbook_labs.results.stage_times import stage
from warpbook_labs.sandbox.limits import Limits

#: of all draws together
AUTHORS_LIMITS = Limits(processor_s=100, asleep_s=120.0)


class CaseGrader(Grader):
    """Cases, drawn and judged."""

    def __init__(self, engines: CaseEngines) -> None:
        """Take the engines of the language."""
        self.engines = engines

    def get_ready(self) -> None:
        """Have the engine that needs no GPU start its processes."""
        self.engines.get_ready()

    def check_public(
        self, loaded: LoadedLab, source: str, limits: Limits | None, use_gpu: bool
    ) -> CheckResult:
        """Run the cases that are shown."""
        cases = public_cases(loaded.lab)
        return self.run(loaded, source, cases, limits or Limits(), use_gpu=use_gpu)

    def grade(
        self,
        loaded: LoadedLab,
        source: str,
        seed: int,
        limits: Limits | None,
        use_gpu: bool,
    ) -> CheckResult:
        """Run all cases, on a GPU with larger ones and timed."""
        cases = public_cases(loaded.lab) + hidden_cases(loaded.lab, seed)
        large = large_cases(loaded.lab, seed)
        return self.run(loaded, source, cases, limits or Limits(), large, True, use_gpu)

    def run(
        self,
        loaded: LoadedLab,
        source: str,
        cases: Sequence[DrawnCase],
        limits: Limits,
        large: Sequence[DrawnCase] = (),
        is_timed: bool = False,
        use_gpu: bool = True,
    ) -> CheckResult:
        """Run cases by all that is here, and say what a learner may know.

        Args:
            loaded: the lab.
            source: the learner's.
            cases: for both engines.
            limits: of the processes that compile and interpret.
            large: more cases, for a GPU alone.
            is_timed: whether its speed is graded where that can be.
            use_gpu: whether a GPU may be used.
        """
        cases = self.engines.fitted(loaded, source, cases)
        result = self._run(loaded, source, cases, limits, large, is_timed, use_gpu)
        return with_lab_note(result, loaded.lab)

    def _run(
        self,
        loaded: LoadedLab,
        source: str,
        cases: Sequence[DrawnCase],
        limits: Limits,
        large: Sequence[DrawnCase],
        is_timed: bool,
        use_gpu: bool,
    ) -> CheckResult:
        gpu: Gpu | None = None
        if use_gpu:
            try:
                gpu = find_gpu()
            except NoGpu:
                gpu = None
        if gpu is None:
            return _told(self._judged(loaded, source, cases, limits))
        with ThreadPoolExecutor(1, "warpbook-gpu") as threads:
            on_gpu = threads.submit(
                self.engines.run_on_gpu,
                gpu,
                loaded,
                source,
                [*cases, *large],
                is_timed,
                limits,
            )
            if self.engines.needs_quiet_cpu:
                wait([on_gpu])
            whole = self._judged(loaded, source, cases, limits)
            result = _told(whole)
            try:
                device = on_gpu.result()
            except (NotOnGpu, NotInstalled) as problem:
                return without_gpu(result, loaded.lab, str(problem))
        # of the whole: what may not be told counts, too
        has_veto = self.engines.has_veto(whole)
        return joined(result, device, loaded.lab, is_timed, has_veto)

    def check(
        self,
        loaded: LoadedLab,
        source: str,
        cases: Sequence[DrawnCase],
        limits: Limits,
    ) -> CheckResult:
        """Run cases without a GPU, and say what a learner may know."""
        cases = self.engines.fitted(loaded, source, cases)
        return _told(self._judged(loaded, source, cases, limits))

    def _judged(
        self,
        loaded: LoadedLab,
        source: str,
        cases: Sequence[DrawnCase],
        limits: Limits,
    ) -> CheckResult:
        with stage("correctness"):
            return self.engines.check(loaded, source, cases, limits)

    def check_shown(self, loaded: LoadedLab, source: str) -> CheckResult | None:
        """Run the cases that are shown: what fails them needs no other."""
        cases = public_cases(loaded.lab)
        return self.engines.check(loaded, source, cases, AUTHORS_LIMITS)

    def check_draws(
        self, loaded: LoadedLab, source: str, seeds: Sequence[int]
    ) -> Draws:
        """Run all draws at once."""
        public = public_cases(loaded.lab)
        hidden = {
            seed: self.engines.fitted(loaded, source, hidden_cases(loaded.lab, seed))
            for seed in seeds
        }
        cases = [*public, *(case for drawn in hidden.values() for case in drawn)]
        result = self.engines.check(loaded, source, cases, AUTHORS_LIMITS)
        by_draw, begin = {}, len(public)
        for seed, drawn in hidden.items():
            end = begin + len(drawn)
            by_draw[seed] = [*result.cases[: len(public)], *result.cases[begin:end]]
            begin = end
        return Draws(result, by_draw)

    def refuse_other_draws(self, loaded: LoadedLab, seeds: Sequence[int]) -> None:
        """Draw the inputs of each kind of values twice."""
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
                        "`chance` alone."
                    )

    def record_trace(
        self, gpu: Gpu, loaded: LoadedLab, source: str, trace: Path, telemetry: Path
    ) -> None:
        """Record it by the engine that runs it on a GPU."""
        self.engines.record_trace(gpu, loaded, source, trace, telemetry)


def _told(result: CheckResult) -> CheckResult:
    return msgspec.structs.replace(result, cases=fit_to_tell(result.cases))

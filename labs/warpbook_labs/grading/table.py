"""How each language is graded, by the name that `lab.toml` gives."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from warpbook_labs.cases.fitting import fitted
from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.engines.answers.checking import (
    check_draws,
    check_plan,
    refuse_other_draws,
)
from warpbook_labs.engines.host.lane import run_on_gpu as run_host
from warpbook_labs.engines.host.tracing import trace_submission as trace_host
from warpbook_labs.engines.interpreter.checking import check_kernels
from warpbook_labs.engines.interpreter.front_ends import (
    CudaFrontEnd,
    FrontEnd,
    TritonFrontEnd,
)
from warpbook_labs.engines.kernels.lane import run_on_gpu as run_kernels
from warpbook_labs.engines.kernels.tracing import trace_submission as trace_kernels
from warpbook_labs.engines.simulated.checking import check_host
from warpbook_labs.engines.simulated.messages import Record
from warpbook_labs.errors import BadLab, BadRule, BadSource, NotOnGpu, NoTrace
from warpbook_labs.gpu.gpu import Gpu
from warpbook_labs.grading.cases import CaseGrader
from warpbook_labs.grading.grader import CaseEngines, Draws, Grader
from warpbook_labs.lab.languages.table import installed_language, rule_of
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.lab.spec import Lab
from warpbook_labs.results.check import CheckResult
from warpbook_labs.results.device import DeviceResult
from warpbook_labs.sandbox import warm
from warpbook_monitors.plain_text import bounded


class KernelEngines(CaseEngines):
    """The interpreter, and a process that launches kernels."""

    def __init__(self, front_end: FrontEnd) -> None:
        self._front_end = front_end

    def get_ready(self) -> None:
        warm.wake(self._front_end.compiler)
        warm.wake(self._front_end.kind)

    def fitted(
        self, submission: Submission, cases: Sequence[DrawnCase]
    ) -> Sequence[DrawnCase]:
        try:
            first = self._front_end.configurations(submission.source)[0]
            lab = submission.loaded.lab
            return fitted(lab, rule_of(lab, first), cases)
        except (BadSource, BadRule):
            # the check tells of it
            return cases

    def check(self, submission: Submission, cases: Sequence[DrawnCase]) -> CheckResult:
        return check_kernels(self._front_end, submission, cases)

    def run_on_gpu(
        self,
        gpu: Gpu,
        submission: Submission,
        cases: Sequence[DrawnCase],
        is_timed: bool,
        until_checked: Callable[[], object],
    ) -> DeviceResult:
        with contextlib.suppress(BadSource):
            first = self._front_end.configurations(submission.source)[0]
            submission = submission.with_source(first)
        return run_kernels(gpu, submission, cases, is_timed)

    def has_veto(self, result: CheckResult) -> bool:
        """Count findings, results that are right by luck, and work beyond the bounds.

        What the interpreter does not know, or is too slow for, does not count.
        """
        return any(
            case.findings or case.is_beyond or case.wrong is not None
            for case in result.cases
            if not case.passed
        )

    def record_trace(
        self, gpu: Gpu, submission: Submission, trace: Path, telemetry: Path
    ) -> None:
        trace_kernels(gpu, submission, trace, telemetry)


class HostEngines(CaseEngines):
    """The simulated GPU, and a learner's process beside a trusted one."""

    def get_ready(self) -> None:
        warm.wake(Record)

    def check(self, submission: Submission, cases: Sequence[DrawnCase]) -> CheckResult:
        return check_host(submission, cases)

    def run_on_gpu(
        self,
        gpu: Gpu,
        submission: Submission,
        cases: Sequence[DrawnCase],
        is_timed: bool,
        until_checked: Callable[[], object],
    ) -> DeviceResult:
        host = submission.loaded.lab.host
        if host is not None and host.on_ranks:
            raise NotOnGpu("each rank runs in a process of its own, on the CPU.")
        return run_host(gpu, submission, cases, is_timed, until_checked)

    def has_veto(self, result: CheckResult) -> bool:
        """Count whatever is found: the program is judged, not this run of it.

        Of a program that was judged, and is open only since Python looked at numbers,
        the GPU's results tell. What was never judged passes on no GPU.
        """
        if result.status != "unsupported":
            return result.status != "passed"
        return any(
            not case.passed and case.host_counts is None for case in result.cases
        )

    def record_trace(
        self, gpu: Gpu, submission: Submission, trace: Path, telemetry: Path
    ) -> None:
        trace_host(gpu, submission, trace, telemetry)


class PlanGrader(Grader):
    """Questions, answered in the jail."""

    def get_ready(self) -> None:
        """Start nothing: plain Python is there at once."""

    def grade(self, submission: Submission) -> CheckResult:
        return check_plan(submission)

    def check_draws(self, submission: Submission, seeds: Sequence[int]) -> Draws:
        results = check_draws(submission, seeds)
        cases = {
            seed: [
                case
                for case in result.cases
                if case.passed or result.status != "passed"
            ]
            for seed, result in zip(seeds, results, strict=True)
        }
        failed = [result for result in results if result.status != "passed"]
        return Draws((failed or results)[0], cases)

    def refuse_other_draws(self, loaded: LoadedLab, seeds: Sequence[int]) -> None:
        if loaded.lab.plan is not None:
            refuse_other_draws(loaded, loaded.lab.plan)

    def record_trace(
        self, gpu: Gpu, submission: Submission, trace: Path, telemetry: Path
    ) -> None:
        raise NoTrace(
            f"{submission.loaded.lab.id} runs nothing on a GPU, so there is no trace."
        )


_OF_CASES: dict[str, CaseGrader] = {
    "cuda": CaseGrader(KernelEngines(CudaFrontEnd())),
    "triton": CaseGrader(KernelEngines(TritonFrontEnd())),
    "host": CaseGrader(HostEngines()),
}
_GRADERS: dict[str, Grader] = {**_OF_CASES, "plan": PlanGrader()}


def grader_of(lab: Lab) -> Grader:
    """Return what grades a lab's submissions.

    Raises:
        BadLab: the package that brings the language brings no grader for it.
    """
    return _GRADERS.get(lab.language) or _installed(lab.language)


@cache
def _installed(language: str) -> Grader:
    try:
        grader = installed_language(language).grader()
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - a package may do anything
        why = bounded(f"{type(problem).__name__}: {problem}", 300)
        raise BadLab(f"The grader of `{language}` can't be loaded: {why}") from None
    if not isinstance(grader, Grader):
        raise BadLab(f"What the package of `{language}` brings is no Grader.")
    return grader


def case_grader_of(lab: Lab) -> CaseGrader:
    """Give what grades submissions of a lab that has cases.

    Raises:
        BadLab: it asks questions in their place, or a package brings its language.
    """
    grader = _OF_CASES.get(lab.language)
    if grader is None:
        raise BadLab(f"speed: labs in `{lab.language}` have no cases that are timed.")
    return grader

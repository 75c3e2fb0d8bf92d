"""Kernels: interpreted on every machine, and run on a GPU where there is one."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from warpbook_labs.cases.fitting import fitted
from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.engines.interpreter.checking import check_kernels
from warpbook_labs.engines.interpreter.front_ends import FrontEnd
from warpbook_labs.engines.kernels.lane import run_on_gpu
from warpbook_labs.engines.kernels.tracing import trace_submission
from warpbook_labs.errors import BadRule, BadSource
from warpbook_labs.gpu.gpu import Gpu
from warpbook_labs.grading.grader import CaseEngines
from warpbook_labs.lab.languages.table import rule_of
from warpbook_labs.lab.submission import Submission
from warpbook_labs.results.check import CheckResult
from warpbook_labs.results.device import DeviceResult
from warpbook_labs.sandbox import warm


class KernelEngines(CaseEngines):
    """The interpreter, and a process that launches kernels."""

    def __init__(self, front_end: FrontEnd) -> None:
        """Take what leads from the language to the interpreter."""
        self._front_end = front_end

    def get_ready(self) -> None:
        """Load compiler and interpreter."""
        warm.wake(self._front_end.compiler)
        warm.wake(self._front_end.kind)

    def fitted(
        self, submission: Submission, cases: Sequence[DrawnCase]
    ) -> Sequence[DrawnCase]:
        """Have one case fill the grid of the source's first configuration."""
        try:
            first = self._front_end.configurations(submission.source)[0]
            lab = submission.loaded.lab
            return fitted(lab, rule_of(lab, first), cases)
        except (BadSource, BadRule):
            # the check tells of it
            return cases

    def check(self, submission: Submission, cases: Sequence[DrawnCase]) -> CheckResult:
        """Interpret every case."""
        return check_kernels(self._front_end, submission, cases)

    def run_on_gpu(
        self,
        gpu: Gpu,
        submission: Submission,
        cases: Sequence[DrawnCase],
        is_timed: bool,
    ) -> DeviceResult:
        """Launch the first configuration of the source."""
        with contextlib.suppress(BadSource):
            first = self._front_end.configurations(submission.source)[0]
            submission = submission.with_source(first)
        return run_on_gpu(gpu, submission, cases, is_timed)

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
        """Record its launches."""
        trace_submission(gpu, submission, trace, telemetry)

"""Host code: judged as a program without a GPU, and run beside a referee on one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.engines.host.lane import run_on_gpu
from warpbook_labs.engines.host.tracing import trace_submission
from warpbook_labs.engines.simulated.checking import check_host
from warpbook_labs.engines.simulated.messages import Record
from warpbook_labs.gpu.gpu import Gpu
from warpbook_labs.grading.grader import CaseEngines
from warpbook_labs.lab.submission import Submission
from warpbook_labs.results.check import CheckResult
from warpbook_labs.results.device import DeviceResult
from warpbook_labs.sandbox import warm


class HostEngines(CaseEngines):
    """The simulated GPU, and a learner's process beside a trusted one."""

    needs_quiet_cpu = True

    def get_ready(self) -> None:
        """Load PyTorch, and give it a simulated GPU."""
        warm.wake(Record)

    def check(self, submission: Submission, cases: Sequence[DrawnCase]) -> CheckResult:
        """Record what is asked of the GPU, and judge it."""
        return check_host(submission, cases)

    def run_on_gpu(
        self,
        gpu: Gpu,
        submission: Submission,
        cases: Sequence[DrawnCase],
        is_timed: bool,
    ) -> DeviceResult:
        """Run it; bounds of its own hold there."""
        return run_on_gpu(gpu, submission, cases, is_timed)

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
        """Have the learner's process record itself."""
        trace_submission(gpu, submission, trace, telemetry)

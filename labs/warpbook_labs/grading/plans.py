"""Functions that answer questions: graded alike on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warpbook_labs.engines.answers.checking import (
    check_draws,
    check_plan,
    refuse_other_chance,
)
from warpbook_labs.errors import NoTrace
from warpbook_labs.gpu.gpu import Gpu
from warpbook_labs.grading.grader import Draws, Grader
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.submission import Submission
from warpbook_labs.results.check import CheckResult


class PlanGrader(Grader):
    """Questions, answered in the jail."""

    def get_ready(self) -> None:
        """Start nothing: plain Python is there at once."""

    def grade(self, submission: Submission) -> CheckResult:
        """Ask the questions that are shown, and of a seed its hidden ones."""
        return check_plan(submission)

    def check_draws(self, submission: Submission, seeds: Sequence[int]) -> Draws:
        """Ask draw by draw; enough right answers count as all."""
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
        """Draw the same questions twice."""
        if loaded.lab.plan is not None:
            refuse_other_chance(loaded, loaded.lab.plan)

    def record_trace(
        self, gpu: Gpu, submission: Submission, trace: Path, telemetry: Path
    ) -> None:
        """Refuse: nothing of it runs on a GPU."""
        raise NoTrace(
            f"{submission.loaded.lab.id} runs nothing on a GPU, so there is no trace."
        )

"""Sources of labs, checked without a GPU; what `warpbook labs` does, case by case."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook_labs.cases.sampling import DrawnCase, public_cases
from warpbook_labs.engines.answers import checking as answers
from warpbook_labs.grading.table import case_grader_of
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.results.check import CheckResult
from warpbook_labs.results.disclosure import disclosed
from warpbook_labs.sandbox.work import Limits


def check(
    loaded: LoadedLab,
    source: str,
    cases: Sequence[DrawnCase] | None = None,
    limits: Limits | None = None,
) -> CheckResult:
    """What a learner may know of it: of cases that the lab shows, if of no others."""
    cases = public_cases(loaded.lab) if cases is None else cases
    engines = case_grader_of(loaded.lab).engines
    submission = Submission(loaded, source, limits=limits)
    return disclosed(engines.check(submission, engines.fitted(submission, cases)))


def check_all(
    loaded: LoadedLab,
    source: str,
    cases: Sequence[DrawnCase] | None = None,
    limits: Limits | None = None,
) -> CheckResult:
    """All of it, for a lab's author."""
    cases = public_cases(loaded.lab) if cases is None else cases
    submission = Submission(loaded, source, limits=limits)
    return case_grader_of(loaded.lab).engines.check(submission, cases)


def check_plan(
    loaded: LoadedLab,
    source: str,
    seed: int | None = None,
    limits: Limits | None = None,
) -> CheckResult:
    """Of functions that answer questions; with a seed its hidden ones, too."""
    return answers.check_plan(Submission(loaded, source, seed, limits))

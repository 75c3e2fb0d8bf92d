"""A source graded, whichever language it is in."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.grading.table import case_grader_of
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.results.check import CheckResult
from warpbook_labs.sandbox.limits import Limits


def check(
    loaded: LoadedLab, source: str, cases: Sequence[DrawnCase], limits: Limits
) -> CheckResult:
    """Check a submission without a GPU, and say what a learner may know.

    Raises:
        NotInstalled: a compiler or PyTorch is not here.
        BadLab: the lab's own Python fails.
    """
    return case_grader_of(loaded.lab).check(loaded, source, cases, limits)


def check_all(
    loaded: LoadedLab, source: str, cases: Sequence[DrawnCase], limits: Limits
) -> CheckResult:
    """Check a submission; every case is in the result, for a lab's author.

    Raises:
        NotInstalled: a compiler or PyTorch is not here.
        BadLab: the lab's own Python fails.
    """
    return case_grader_of(loaded.lab).engines.check(loaded, source, cases, limits)

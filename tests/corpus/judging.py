"""Judges a source as the product does a submission: shown and hidden cases."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

from tests.corpus.causes import names_cause, names_line
from tests.corpus.entries import Entry
from tests.lab_checks import check, check_plan
from warpbook_labs.cases.sampling import hidden_cases, large_cases, public_cases
from warpbook_labs.course.progress import UNDECIDED
from warpbook_labs.course.session import find
from warpbook_labs.grading.table import case_grader_of
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.results.check import CheckResult
from warpbook_labs.sandbox.work import Limits

#: hidden cases are drawn from it, so that everybody's are the same
SEED = 11
_MOST_WORDS = 240

Verdict = Literal["passed", "failed", "not supported"]


@dataclass(frozen=True)
class Judged:
    """What became of a source."""

    entry: Entry
    verdict: Verdict
    #: in one line
    message: str
    has_line: bool
    has_cause: bool
    seconds: float

    @property
    def is_as_known(self) -> bool:
        """Whether the verdict is the one that is known to be right."""
        return self.verdict == ("passed" if self.entry.is_right else "failed")


def judge(entry: Entry, use_gpu: bool = False) -> Judged:
    """Judge one source; nothing is kept of it."""
    begin = time.monotonic()
    result = _checked(find(entry.lab), entry, use_gpu)
    words = _words(result)
    verdict: Verdict = "passed" if result.status == "passed" else "failed"
    if verdict == "failed" and is_unsupported(result):
        verdict = "not supported"
    return Judged(
        entry,
        verdict,
        _first(result),
        names_line(entry.lines, words),
        bool(entry.cause) and names_cause(entry.cause, words),
        time.monotonic() - begin,
    )


def is_unsupported(result: CheckResult) -> bool:
    """Say whether a source was not judged, since something in it is not known here.

    One that fails on a GPU was judged there.
    """
    if result.device is not None and result.device.right < result.device.of:
        return False
    return result.status in ("unsupported", *UNDECIDED)


def _checked(loaded: LoadedLab, entry: Entry, use_gpu: bool) -> CheckResult:
    lab, source = loaded.lab, entry.source
    if lab.plan is not None:
        return check_plan(loaded, source, SEED)
    shown, limits = public_cases(lab), Limits(processor_s=100, asleep_s=120.0)
    cases = shown + hidden_cases(lab, SEED)
    if use_gpu:
        large = large_cases(lab, SEED)
        return case_grader_of(lab).run(
            Submission(loaded, source, limits=limits),
            cases,
            large,
            is_timed=entry.needs_gpu,
        )
    if not entry.is_right:
        # they are part of a submission's cases, and most wrong ones fail with them
        result = check(loaded, source, shown, limits)
        if result.status != "passed":
            return result
    return check(loaded, source, cases, limits)


def _words(result: CheckResult) -> str:
    """Give all that a learner is told of what is wrong, with the lines."""
    words = [result.message, *result.log.splitlines()[:3]]
    if result.device is not None:
        words += [case.message for case in result.device.cases if not case.passed]
    for case in result.cases:
        if case.passed:
            continue
        words += [case.message, case.advice]
        words += [
            f"{finding.kind}: {finding.message} line {finding.line}"
            for finding in case.findings
        ]
    return "\n".join(words)


def _first(result: CheckResult) -> str:
    """Give the reason that is told first, in one line."""
    failed = [case for case in result.cases if not case.passed]
    words = [result.message]
    if result.status in ("compile error", "bad launch rule"):
        words += result.log.splitlines()[:1]
    elif failed:
        words = [failed[0].message, failed[0].advice]
    elif result.device is not None:
        words += [case.message for case in result.device.cases if not case.passed][:1]
    line = " ".join(" ".join(text for text in words if text).split())
    return line if len(line) <= _MOST_WORDS else f"{line[: _MOST_WORDS - 3]}..."

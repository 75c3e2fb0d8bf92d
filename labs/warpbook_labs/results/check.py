"""What is told of a submission: case by case, and in all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from warpbook_labs.cases.comparison import WrongElement
from warpbook_labs.results.device import DeviceResult
from warpbook_labs.results.findings import Bar, Counts, Finding, HostCounts
from warpbook_labs.results.occupancy import KernelOccupancy

#: "unsupported": the checker without a GPU does not know what a GPU does there: it is
#: neither right nor wrong. "too slow", "too noisy to tell" and "too busy" are right,
#: and not fast enough, or nobody could tell whether they are
Status = Literal[
    "passed",
    "failed",
    "compile error",
    "bad launch rule",
    "stopped",
    "timed out",
    "unsupported",
    "too slow",
    "too noisy to tell",
    "too busy",
]


class CaseResult(Struct, frozen=True):
    """How one case went."""

    about: str
    is_hidden: bool
    passed: bool
    #: in words; empty if it passed
    message: str
    #: of a case that the learner sees
    sizes: dict[str, int] | None = None
    wrong: WrongElement | None = None
    #: its results are right; what it asks of the machine is beyond the lab's bounds
    is_beyond: bool = False
    findings: tuple[Finding, ...] = ()
    counts: Counts | None = None
    lines: dict[int, Counts] = {}
    printed: str = ""
    #: of host code: what may help with what is wrong
    advice: str = ""
    #: of host code: the first call that left something wrong, unless it is the first
    call: int = 0
    #: of host code on the simulated GPU: of the last call
    host_counts: HostCounts | None = None
    #: the same of a case that the learner sees: what each engine did when
    bars: tuple[Bar, ...] = ()
    #: of the source, where the message is about one
    line: int | None = None
    #: it failed because the checker can't run it, which is no mistake
    is_unsupported: bool = False
    #: of the first shown question with a wrong answer: Python that asks it again
    question: str = ""


class Provenance(Struct, frozen=True):
    """Which lab judged which source, by which version."""

    #: SHA-256 of what decides a grade of the lab
    lab_digest: str
    #: SHA-256 of the source
    source_digest: str
    #: of warpbook
    version: str


class CheckResult(Struct, frozen=True):
    """How a submission went, case by case."""

    lab: str
    status: Status
    #: in one sentence
    message: str
    cases: tuple[CaseResult, ...] = ()
    #: cases that are right, of how many; not all of them are told above
    right: int = 0
    of: int = 0
    #: what the compiler said
    log: str = ""
    #: where it was done, in words
    isolation: str = ""
    #: what can't be graded here, and why
    not_graded: tuple[str, ...] = ()
    #: what a multiprocessor holds of each kernel, by a real compile; no GPU is needed
    resources: tuple[KernelOccupancy, ...] = ()
    #: what a GPU made of it; None where there is none
    device: DeviceResult | None = None
    #: what it is the result of; None of a result from before it was noted
    provenance: Provenance | None = None
    #: of the source, where the message is about one
    line: int | None = None


def status_of(cases: Sequence[CaseResult]) -> Status:
    """Judge by all cases: what can't be checked is no mistake, unless others fail."""
    if all(case.passed for case in cases):
        return "passed"
    return "failed" if has_wrong(cases) else "unsupported"


def has_wrong(cases: Sequence[CaseResult]) -> bool:
    """Return whether one fails that can be checked."""
    return not all(case.passed or case.is_unsupported for case in cases)


def sentence(cases: Sequence[CaseResult]) -> str:
    """Say how many cases passed, and how many more would, but for the limits."""
    right, of = sum(case.passed for case in cases), len(cases)
    if status_of(cases) == "unsupported":
        first = next(case for case in cases if case.is_unsupported)
        return f"It can't be checked without a GPU. {first.message}"
    if right == of:
        return all_passed(of)
    beyond = sum(case.is_beyond for case in cases)
    if not beyond:
        return f"{right:,} of {of:,} {cases_word(of)} passed."
    return (
        f"{right + beyond:,} of {of:,} {cases_word(of)} give the right result, "
        f"{right:,} of them within the lab's limits."
    )


def cases_word(of: int) -> str:
    """Choose between the singular and the plural."""
    return "case" if of == 1 else "cases"


def all_passed(of: int, where: str = "") -> str:
    """Say that no case failed.

    Args:
        where: follows, such as ", on the GPU too".
    """
    if of == 1:
        return f"The case passed{where}."
    return f"All {of:,} cases passed{where}."

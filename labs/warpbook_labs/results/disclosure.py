"""What learners are told of hidden cases: the first that fails, without its sizes."""

from __future__ import annotations

import builtins
import dataclasses
import re
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from warpbook_labs.cases.comparison import count_words
from warpbook_labs.results.check import CaseResult, CheckResult
from warpbook_labs.results.device import DeviceCase, DeviceResult

#: how large a buffer is, as CUDA's interpreter says it and as Triton's does
_SIZES = (
    (
        re.compile(
            r"[\d,]+ bytes (past the end|before the start) of (`\w+`) \([\d,]+ bytes\)"
        ),
        r"\1 of \2",
    ),
    (re.compile(r", and `\w+` has [\d,]+ elements"), ", outside of the buffer"),
)
#: what is said of a hidden case too: it holds no number of it
_OURS = re.compile(
    r"(Timed out after [\d.]+ s( of CPU time)?|Timed out: it slept for [\d.]+ s"
    r"|It returned more than \d+ KiB|It writes `\w+`, which is an input"
    r"|Its process ended: it crashed, or took too much memory)\.",
    re.ASCII,
)
_NO_DATA = "It can't be called so, or returned no plain data"

Case = TypeVar("Case", CaseResult, DeviceCase)
Result = TypeVar("Result", CheckResult, DeviceResult)


def disclosed(result: Result) -> Result:
    """Return a result as a learner may see it; see `fit_to_tell`."""
    return msgspec.structs.replace(result, cases=fit_to_tell(result.cases))


def fit_to_tell(cases: Iterable[Case]) -> tuple[Case, ...]:
    """Leave out hidden failures but the first: they would tell too much at once."""
    cases = tuple(cases)
    failed = [at for at, case in enumerate(cases) if case.is_hidden and not case.passed]
    # what can't be checked is no mistake, and says less than one
    mistakes = [at for at in failed if _is_mistake(cases[at])]
    told_at = (mistakes or failed)[:1]
    return tuple(
        _without_sizes(case) if at in told_at else case
        for at, case in enumerate(cases)
        if at in told_at or at not in failed
    )


def _is_mistake(case: CaseResult | DeviceCase) -> bool:
    return not (isinstance(case, CaseResult) and case.is_unsupported)


def without_words(problem: str) -> str:
    """Leave of what was raised only its kind: a learner can put sizes into the rest."""
    if _OURS.fullmatch(problem):
        return problem
    name = problem.partition(":")[0]
    if name == _NO_DATA:
        return f"{name}."
    return kind_alone(name)


def kind_alone(name: str) -> str:
    """Return what may be said of an exception: its kind, if that is Python's own."""
    kind = getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        name = "It raised an exception"
    return f"{name}; details are shown for visible cases only."


def _without_sizes(case: Case) -> Case:
    """Leave out how many elements and bytes there are; where it is wrong stays."""
    less: dict[str, Any] = {"message": _sizeless(case.message)}
    if case.wrong is not None:
        if case.wrong.elements is not None:
            counted = f" {count_words(case.wrong)}"
            less["message"] = less["message"].replace(counted, "")
        less["wrong"] = msgspec.structs.replace(
            case.wrong, wrong=None, elements=None, inputs=()
        )
    if isinstance(case, CaseResult):
        less["findings"] = tuple(
            dataclasses.replace(finding, message=_sizeless(finding.message))
            for finding in case.findings
        )
    return msgspec.structs.replace(case, **less)


def _sizeless(words: str) -> str:
    for pattern, instead in _SIZES:
        words = pattern.sub(instead, words)
    return words

"""Calls a learner's `prepare` and `run` in the jail, case by case."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import msgspec

from warpbook_labs.host.messages import HostCase, HostRan, Left, Record, RunTorch
from warpbook_labs.jail.jobs import Refused
from warpbook_labs.jail.learner_code import MODULES, Printed, told, within

SOURCE_NAME, GIVEN_NAME = "solution.py", "given.py"
_IMPORTED = ["torch", "given", *MODULES]

#: does one case with the learner's module
CaseOf = Callable[[ModuleType, HostCase], Left]


class NotFit(Exception):
    """The learner's code did what it may not; the message says what."""


def run_cases(job: RunTorch | Record, one: CaseOf) -> HostRan | Refused:
    """Load a learner's module, and do every case with it."""
    module = ModuleType("solution")
    printed = Printed()
    try:
        with contextlib.redirect_stdout(printed), within(job.case_s):
            if job.given:
                given = ModuleType("given")
                _load(given, job.given, GIVEN_NAME)
                sys.modules["given"] = given
            _load(module, job.source, SOURCE_NAME)
    except BaseException as problem:  # noqa: BLE001 - whatever the learner's code does
        line, words = told(problem, job.case_s, SOURCE_NAME, _IMPORTED)
        return Refused(f"Line {line}: {words}" if line else words)
    return HostRan(tuple(_left(module, each, job.case_s, one) for each in job.cases))


def _load(module: ModuleType, source: str, name: str) -> None:
    code = compile(source, name, "exec", dont_inherit=True)
    exec(code, module.__dict__)


def _left(module: ModuleType, case: HostCase, case_s: float, one: CaseOf) -> Left:
    printed = Printed()
    try:
        with contextlib.redirect_stdout(printed), within(case_s):
            left = one(module, case)
        return msgspec.structs.replace(left, printed=printed.held)
    except NotFit as problem:
        return Left(problem=str(problem), printed=printed.held)
    except BaseException as problem:  # noqa: BLE001 - whatever the learner's code does
        line, words = told(problem, case_s, SOURCE_NAME, _IMPORTED)
        return Left(problem=words, line=line, printed=printed.held)


def arguments(case: HostCase, number: int, tensors: dict[str, Any]) -> dict[str, Any]:
    """Give what `run` is called with: tensors and numbers by name."""
    return {**tensors, **case.calls[number].numbers}

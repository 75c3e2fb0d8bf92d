"""Calls a learner's `prepare` and `run` in the jail, case by case."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from types import CodeType, FrameType, ModuleType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from warpbook_labs.engines.simulated.lacking import lacking
from warpbook_labs.engines.simulated.messages import (
    BeginRank,
    CaseRun,
    HostCall,
    HostCase,
    HostRuns,
    Record,
    RunTorch,
)
from warpbook_labs.errors import SourceProblem
from warpbook_labs.sandbox.learner_code import (
    MODULES,
    Printed,
    TooLong,
    within,
    words_of,
)
from warpbook_labs.sandbox.lines.follower import Follower
from warpbook_labs.sandbox.lines.objects import VersionOf, merge, version_of
from warpbook_labs.sandbox.progress import note_step
from warpbook_labs.sandbox.work import Refused, Status

SOURCE_NAME, GIVEN_NAME = "solution.py", "given.py"
_IMPORTED = ["torch", "given", *MODULES]

#: lines of the GPU's work that are as near as one statement of Python's
_LINES_OF_ONE_STEP = 3

_Numbers = tuple[int, ...]
#: loads the learner's module, as new
Load = Callable[[], ModuleType]


class NotFit(Exception):
    """The learner's code did what it may not."""

    def __init__(self, left: CaseRun) -> None:
        super().__init__(left.problem)
        self.left = left


class CantLoad(SourceProblem):
    """The learner's module itself fails; the message is for the learner."""

    status: Status = "refused"


def run_cases(
    job: RunTorch | Record,
    one: Callable[[Load, HostCase], CaseRun],
    writes_of: VersionOf = version_of,
) -> HostRuns | Refused:
    """Do every case of a job, up to the first that takes too long.

    Args:
        writes_of: counts how often a tensor was written.
    """
    warnings.showwarning = print_warning
    done: list[CaseRun] = []
    try:
        for case in job.cases:
            done.append(_left(job, case, one, writes_of))
            note_step()
            # the others would hardly be faster, and the learner waits
            if done[-1].is_too_long:
                break
    except CantLoad as problem:
        return Refused(str(problem), problem.status, problem.line)
    return HostRuns(tuple(done))


def values_of(case: HostCase, call: HostCall) -> dict[str, NDArray[Any]]:
    """Give what buffers hold before a call, by name; nobody may write there."""
    return {
        buffer.name: np.frombuffer(call.data[buffer.name], buffer.dtype).reshape(
            buffer.shape
        )
        for buffer in case.buffers
        if buffer.name in call.data
    }


def _left(
    job: RunTorch | Record,
    case: HostCase,
    one: Callable[[Load, HostCase], CaseRun],
    writes_of: VersionOf,
) -> CaseRun:
    printed = Printed()
    try:
        # of the CPU: on a busy machine the same code takes longer by the clock
        took = within(job.case_s)
        watching, lines_of = _followed(job, writes_of)
        with contextlib.redirect_stdout(printed), took, watching:
            left = one(lambda: loaded(job, case), case)
        lines, unread = lines_of()
        return msgspec.structs.replace(
            left, printed=printed.held, lines=lines, unread=unread
        )
    except CantLoad:
        raise
    except NotFit as problem:
        return msgspec.structs.replace(problem.left, printed=printed.held)
    except BaseException as problem:  # noqa: BLE001 - whatever the learner's code does
        called = f"They are called as {_called(case)}."
        return fallen(problem, job.case_s, called, printed)


def fallen(
    problem: BaseException, case_s: float, called: str, printed: Printed
) -> CaseRun:
    """Say what the learner's code raised.

    Args:
        called: how it is called, in words.
    """
    line, words = words_of(problem, case_s, SOURCE_NAME, _IMPORTED)
    if line is None and isinstance(problem, TypeError):
        words = f"TypeError: {problem}. {called}".rstrip()
    lack = lacking(problem, SOURCE_NAME)
    return CaseRun(
        problem=lack or words,
        line=line,
        is_unsupported=bool(lack),
        printed=printed.held,
        is_too_long=isinstance(problem, TooLong),
    )


def _followed(
    job: RunTorch | Record, writes_of: VersionOf
) -> tuple[AbstractContextManager[None], Callable[[], tuple[_Numbers, _Numbers]]]:
    """Give what follows a case, and then the lines asked for, and those not read."""
    question = job.followed
    if question is None:
        return contextlib.nullcontext(), lambda: ((), ())
    follower = Follower(job.source, SOURCE_NAME, writes_of)

    def lines() -> tuple[_Numbers, _Numbers]:
        runs = [of for name, of in follower.ended if name == "run"]
        if len(runs) < question.call:
            return (), ()
        lines_of = dict(follower.settings)
        for place, line in enumerate(question.lines):
            # what Python did there comes behind the line itself
            merge(lines_of, {line: 0}, place // _LINES_OF_ONE_STEP)
            merge(lines_of, follower.of_line(line), place + 1)
        if question.output:
            merge(
                lines_of,
                runs[question.call - 1].get(question.output, {}),
                len(question.lines),
            )
        return follower.explanation(lines_of)

    return follower.watching(), lines


def _called(case: HostCase) -> str:
    """Say how the learner's functions are called: by name, in whatever order."""
    sizes = ", ".join(f"{name}=..." for name in case.sizes)
    buffers = [buffer.name for buffer in case.buffers]
    numbers = [name for call in case.calls[:1] for name in call.numbers]
    given = ", ".join(["state", *(f"{name}=..." for name in buffers + numbers)])
    return f"prepare({sizes}) and run({given})"


def loaded(job: RunTorch | Record | BeginRank, case: HostCase) -> ModuleType:
    """Execute the learner's source.

    Raises:
        CantLoad: it fails, or lacks a function.
    """
    module = _solution(job)
    for name in ("prepare", "run"):
        if not callable(getattr(module, name, None)):
            words = f"There is no function `{name}`: the lab calls {_called(case)}."
            raise CantLoad(words)
    return module


def given_module(source: str) -> ModuleType:
    """Execute what a lab gives, and have it imported from then on."""
    sys.modules["given"] = given = _module("given", source, GIVEN_NAME)
    return given


def _solution(job: RunTorch | Record | BeginRank) -> ModuleType:
    try:
        own_run = None
        if job.given:
            # the learner imports another copy, whose names it may set
            own_run = getattr(given_module(job.given), "run", None)
            given_module(job.given)
        module = _module("solution", job.source, SOURCE_NAME)
        if own_run is not None:
            # the lab itself uses what the learner prepares
            module.run = own_run  # type: ignore[attr-defined]
        return module
    except BaseException as problem:  # noqa: BLE001 - whatever the learner's code does
        line, words = words_of(problem, job.case_s, SOURCE_NAME, _IMPORTED)
        lack = lacking(problem, SOURCE_NAME)
        cant_load = CantLoad(lack or words, line or None)
        if lack:
            cant_load.status = "unsupported"
        raise cant_load from None


def print_warning(
    message: Warning | str, category: type[Warning], *_: Any, **__: Any
) -> None:
    """Print a warning beside what the learner prints, with their line."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename != SOURCE_NAME:
        frame = frame.f_back
    at = f"Line {frame.f_lineno}: " if frame is not None else ""
    print(f"{at}{category.__name__}: {message}")  # noqa: T201 - it is caught


def _module(name: str, source: str, file: str) -> ModuleType:
    module = ModuleType(name)
    exec(_compiled(source, file), module.__dict__)
    return module


@cache
def _compiled(source: str, file: str) -> CodeType:
    return compile(source, file, "exec", dont_inherit=True)

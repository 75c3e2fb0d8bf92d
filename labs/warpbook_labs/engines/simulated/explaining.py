"""Asks, of the first case that fails, from which lines of the source its output came.

It is done once more for it, so that a check of what passes takes no longer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from warpbook_labs.engines.simulated.messages import (
    HostRuns,
    LineRequest,
    Record,
    RunTorch,
)
from warpbook_labs.lab.texts import named_lines, unread_words
from warpbook_labs.results.check import CaseResult
from warpbook_labs.sandbox import parent

_MOST_LINES = 24
#: to follow a source takes so much longer
_TIMES_LONGER = 5.0


class Lines(NamedTuple):
    """Lines of a source that explain what is wrong."""

    #: from which it came, the nearest first
    lines: tuple[int, ...] = ()
    #: of assignments whose values nothing reads
    unread: tuple[int, ...] = ()


def asked_of(case: CaseResult, from_lines: Sequence[int] = ()) -> LineRequest | None:
    """Say what is asked of a case; None where there is nothing to ask.

    Args:
        from_lines: of the GPU's work from which a wrong number came, or that the
            message of a case beyond its bounds names.
    """
    wrong = case.wrong
    if case.passed or case.findings:
        return None
    if wrong is not None:
        known = (wrong.computed_line, wrong.line, *from_lines)
        lines = tuple(dict.fromkeys(line for line in known if line))
        return LineRequest(wrong.output, max(case.call, 1), lines)
    if not case.is_beyond:
        return None
    return LineRequest("", 1, tuple(from_lines[:1]))


def followed(
    job: RunTorch | Record,
    question: LineRequest,
    outcome_of: Callable[[RunTorch | Record], parent.Outcome[HostRuns]],
) -> Lines:
    """Do a job of one case once more, and give the lines that are asked for."""
    job = msgspec.structs.replace(
        job, followed=question, case_s=_TIMES_LONGER * job.case_s
    )
    outcome = outcome_of(job)
    if not isinstance(outcome.result, HostRuns):
        return Lines()
    last_line = len(job.source.splitlines())
    lines = [line for left in outcome.result.cases for line in left.lines]
    unread = [line for left in outcome.result.cases for line in left.unread]
    return Lines(*(_believed(candidate, last_line) for candidate in (lines, unread)))


def _believed(lines: list[int], last_line: int) -> tuple[int, ...]:
    return tuple(line for line in lines if 0 < line <= last_line)[:_MOST_LINES]


def with_lines(case: CaseResult, lines: Lines, named: Sequence[int]) -> CaseResult:
    """Say from which lines what is wrong came, beside those that are named."""
    case = _with_origin(case, lines.lines, named)
    if case.wrong is None or not lines.unread:
        return case
    words = f"{case.message} {unread_words(lines.unread)}"
    return msgspec.structs.replace(case, message=words)


def _with_origin(
    case: CaseResult, lines: Sequence[int], named: Sequence[int]
) -> CaseResult:
    wrong = case.wrong
    known = set(named)
    if wrong is not None:
        known = {wrong.line or 0, wrong.computed_line or 0}
    others = sorted(set(lines) - known)
    if not others:
        return case
    if wrong is None:
        source = named_lines(others)
        verb = "lead" if len(others) > 1 else "leads"
        words = f"{case.message} {source[0].upper()}{source[1:]} {verb} to it."
        return msgspec.structs.replace(case, message=words)
    words = f"The value comes from {named_lines(others)}."
    place = len(case.message)
    if case.advice and case.message.endswith(case.advice):
        place -= len(case.advice)
    before, after = case.message[:place].rstrip(), case.message[place:]
    return msgspec.structs.replace(
        case,
        message=f"{before} {words} {after}".rstrip(),
        wrong=msgspec.structs.replace(wrong, from_lines=tuple(others)),
    )

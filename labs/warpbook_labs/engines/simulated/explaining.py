"""Asks, of the first case that fails, from which lines of the source its output came.

It is done once more for it, so that a check of what passes takes no longer.
"""

from __future__ import annotations

import msgspec

from warpbook_labs.engines.simulated.messages import (
    Followed,
    HostRan,
    Record,
    RunTorch,
)
from warpbook_labs.lab.texts import named_lines
from warpbook_labs.results.check import CaseResult
from warpbook_labs.sandbox import parent, warm
from warpbook_labs.sandbox.limits import Limits

#: so that a message stays short
_MOST_LINES = 6
#: to follow a source takes so much longer
_TIMES_LONGER = 5.0


def asked_of(case: CaseResult) -> Followed | None:
    """Say what is asked of a case; None where there is nothing to ask."""
    wrong = case.wrong
    if case.passed or wrong is None or case.findings:
        return None
    return Followed(wrong.output, max(case.call, 1))


def followed(job: RunTorch | Record, asked: Followed, limits: Limits) -> list[int]:
    """Do a job of one case once more, and give the lines that are asked for.

    Args:
        job: as it was done.
        asked: of what.
        limits: of the process.
    """
    job = msgspec.structs.replace(
        job, followed=asked, case_s=_TIMES_LONGER * job.case_s
    )
    outcome: parent.Outcome[HostRan] = warm.run(job, limits)
    if not isinstance(outcome.result, HostRan):
        return []
    last_line = len(job.source.splitlines())
    lines = [line for left in outcome.result.cases for line in left.lines]
    return [line for line in lines if 0 < line <= last_line][:_MOST_LINES]


def with_lines(case: CaseResult, lines: list[int]) -> CaseResult:
    """Say from which lines what is wrong came, beside those that are told."""
    wrong = case.wrong
    if wrong is None:
        return case
    others = sorted(set(lines) - {wrong.line, wrong.computed_line})
    if not others:
        return case
    words = f"It came from {named_lines(others)}."
    place = len(case.message)
    if case.advice and case.message.endswith(case.advice):
        place -= len(case.advice)
    before, after = case.message[:place].rstrip(), case.message[place:]
    return msgspec.structs.replace(
        case,
        message=f"{before} {words} {after}".rstrip(),
        wrong=msgspec.structs.replace(wrong, from_lines=tuple(others)),
    )

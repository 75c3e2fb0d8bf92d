"""The result of one case on host code, and the lines that it came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from warpbook_labs.cases.comparison import NOTHING, WrongElement
from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.engines.simulated.lacking import LACKS
from warpbook_labs.engines.simulated.messages import (
    CaseRun,
    HostRuns,
    LineRequest,
    Record,
    RunTorch,
)
from warpbook_labs.engines.simulated.preparation import WrongCall
from warpbook_labs.lab.texts import at_line, named_lines, unread_words
from warpbook_labs.results.check import CaseResult
from warpbook_labs.results.disclosure import without_words
from warpbook_labs.sandbox import parent

_UNWRITTEN = (
    "`{0} = ...` only gives a new tensor that name: `{0}.copy_(...)` or "
    "`{0}[...] = ...` writes."
)
_PARTLY_WRITTEN = (
    "Only part of `{0}` is written: this is the first element that is not."
)
_MOST_PRINTED = 4_000
_MOST_WORDS = 600


def case_result(
    case: DrawnCase,
    left: CaseRun,
    message: str = "",
    wrong: WrongCall | None = None,
    advice: str = "",
    line: int | None = None,
    **more: Any,
) -> CaseResult:
    """Say how a case went; of a hidden one neither sizes nor what was printed.

    Args:
        left: what the process says; its problem goes before all else.
        message: why it failed; what is wrong if left out.
        wrong: what is wrong in its outputs; None if nothing is.
        advice: what may help with that; without a message a guess if left out.
        line: of the source, if the message is about one.
    """
    if wrong is not None:
        call = wrong.number if wrong.number > 1 else 0
        if not (advice or message) and wrong.wrong.got == NOTHING:
            words = _UNWRITTEN if _is_untouched(wrong.wrong) else _PARTLY_WRITTEN
            advice = words.format(wrong.wrong.output)
        more |= {"wrong": wrong.wrong, "call": call, "advice": advice}
    words = message or (f"{wrong.words} {advice}".strip() if wrong else "")
    if left.problem:
        words = left.problem
        if case.is_hidden:
            words = LACKS if left.is_unsupported else without_words(words)
        words, line = at_line(words, left.line), left.line
        more["is_unsupported"] = left.is_unsupported
    return CaseResult(
        case.about,
        case.is_hidden,
        not words,
        words if len(words) <= _MOST_WORDS else f"{words[: _MOST_WORDS - 1]}…",
        None if case.is_hidden else dict(case.sizes),
        line=line,
        printed="" if case.is_hidden else left.printed[:_MOST_PRINTED],
        **more,
    )


def _is_untouched(wrong: WrongElement) -> bool:
    """Tell whether nobody seems to have written any of an output."""
    return not any(wrong.index) and wrong.wrong == wrong.elements


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

"""Computes the card of a result: what is shown of it, in which order.

Notebook, terminal and page draw what they are given here, so that they say the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from warpbook_labs.cards.failure import (
    device_failure_sections,
    failure_sections,
    location,
)
from warpbook_labs.cards.host_code import host_sections
from warpbook_labs.cards.model import (
    PRACTICE,
    Card,
    CardLog,
    CardSection,
    CardTable,
    CardText,
    Cell,
    Part,
    StatusCell,
    TextCell,
)
from warpbook_labs.cards.speed import speed_sections
from warpbook_labs.cards.words import (
    GRADED_HERE,
    UNSUPPORTED,
    UNSUPPORTED_BESIDE_A_GPU,
    card_status,
    case_status,
    is_unsupported,
    limited,
    limited_lines,
    not_shown,
)
from warpbook_labs.cards.work import (
    effort,
    resource_sections,
    stall_sections,
    work_sections,
)
from warpbook_labs.results.check import CaseResult, CheckResult
from warpbook_labs.results.device import DeviceCase, DeviceResult

_MOST_CASES = 60
_MOST_LOG_LINES = 40
_MOST_PRINTED_LINES = 40
_MOST_NOTES = 20
_MOST_WORDS = 600
_WIDTH = 160


def card_of(
    result: CheckResult,
    source: str,
    submission: int | None = None,
    *,
    number: int | None = None,
    source_words: str = "",
    left_out: Collection[str] = (),
    more: tuple[CardSection, ...] = (),
) -> Card:
    """Make the card of a result.

    Args:
        source: what was checked; lines of it are quoted where one is named.
        submission: its id in the store; None if it is kept nowhere.
        number: among the lab's own submissions, from 1; the id if left out.
        source_words: which version of a file was checked.
        left_out: conditions that an earlier card has said.
        more: sections that come last, such as what to do next.
    """
    status = card_status(result)
    label = "unsupported" if status == "unsupported" else result.status
    message = result.message
    if status == "unsupported":
        words = UNSUPPORTED if result.device is None else UNSUPPORTED_BESIDE_A_GPU
        message = f"{words[0].upper()}{words[1:]}. {message}"
    kept = PRACTICE
    if submission is not None:
        kept = f"{submission_words(submission, number)}. {GRADED_HERE}"
    head = tuple(_head(result, source.splitlines(), kept, source_words))
    sections = (
        CardSection("", head),
        *_sections(result, source.splitlines()),
        *_conditions(result, left_out),
        *more,
    )
    return Card(
        limited(result.lab, 100), status, label, limited(message, _MOST_WORDS), sections
    )


def submission_words(submission: int, number: int | None = None) -> str:
    """Name a submission by its number within the lab, and by its id if that differs."""
    if number is None or number == submission:
        return f"Submission {submission}"
    return f"Submission {number} of this lab (id {submission})"


def condition_words(isolation: str) -> str:
    """Say how well the process was shut in that ran a source."""
    return f"It was run {isolation}."


def conditions(result: CheckResult) -> tuple[str, ...]:
    """Say under which conditions a result holds, mostly those of a machine."""
    words = [condition_words(result.isolation)] if result.isolation else []
    return (*words, *result.not_graded[:_MOST_NOTES])


def _sections(result: CheckResult, code: Sequence[str]) -> Iterator[CardSection]:
    device, cases = result.device, result.cases
    failed = min(
        (case for case in cases if not case.passed), key=is_unsupported, default=None
    )
    shown = failed or max(cases, key=effort, default=None)
    yield from _log("Compiler output", result.log, _MOST_LOG_LINES, is_open=True)
    yield from _cases("Cases", cases, result)
    yield from failure_sections(failed, code)
    if device is not None:
        where = f"{limited(device.gpu, 100)} ({limited(device.architecture, 20)})"
        yield from _cases(f"Cases on {where}", device.cases, device)
        on_gpu = next((case for case in device.cases if not case.passed), None)
        yield from device_failure_sections(on_gpu)
        yield from speed_sections(device)
        yield from stall_sections(device, shown, code)
    yield from work_sections(shown, code)
    yield from host_sections(shown)
    yield from resource_sections(result.resources)
    yield from _printed(cases)


def _head(
    result: CheckResult, code: Sequence[str], kept: str, source_words: str
) -> Iterator[Part]:
    yield CardText(kept, "quiet")
    if source_words:
        yield CardText(limited(source_words, _MOST_WORDS))
    yield from location(code, result.line)
    for flag in (result.device.flags if result.device else ())[:_MOST_NOTES]:
        yield CardText(limited(f"For review: {flag}", _MOST_WORDS), "warning")


def _log(title: str, log: str, most: int, *, is_open: bool) -> Iterator[CardSection]:
    lines = log.splitlines()
    if not lines:
        return
    shown_log = CardLog(limited_lines(lines[:most], _WIDTH), max(len(lines) - most, 0))
    yield CardSection(title, (shown_log,), "open" if is_open else "closed")


def _cases(
    title: str,
    cases: Sequence[CaseResult] | Sequence[DeviceCase],
    result: CheckResult | DeviceResult,
) -> Iterator[CardSection]:
    """Tell each case; of hidden ones that failed a result has only the first."""
    if not cases:
        # a result of the GPU alone says at least how many passed
        if isinstance(result, DeviceResult) and result.of:
            yield CardSection(_passed(title, result), ())
        return
    rows = tuple(map(_case, cases[:_MOST_CASES]))
    parts: list[Part] = [CardTable(("result", "set", "kind of case"), rows)]
    more = len(cases) - _MOST_CASES
    if more > 0:
        parts.append(CardText(f"{more:,} more cases."))
    hidden = result.of - len(cases)
    if hidden > 0:
        parts.append(CardText(not_shown(hidden)))
    has_failed = any(not case.passed for case in cases)
    yield CardSection(
        _passed(title, result), tuple(parts), "open" if has_failed else "closed"
    )


def _passed(title: str, result: CheckResult | DeviceResult) -> str:
    return f"{title}: {result.right:,} of {result.of:,} passed"


def _case(case: CaseResult | DeviceCase) -> tuple[Cell, ...]:
    hidden = "hidden" if case.is_hidden else "shown"
    about = TextCell(limited(case.about, _WIDTH))
    return (StatusCell(case_status(case)), TextCell(hidden), about)


def _printed(cases: Sequence[CaseResult]) -> Iterator[CardSection]:
    case = next(
        (judged for judged in cases if judged.printed and not judged.is_hidden), None
    )
    if case is not None:
        title = f"Printed output ({limited(case.about, 120)})"
        yield from _log(title, case.printed, _MOST_PRINTED_LINES, is_open=False)


def _conditions(
    result: CheckResult, left_out: Collection[str]
) -> Iterator[CardSection]:
    words = [condition for condition in conditions(result) if condition not in left_out]
    if words:
        quiet = (CardText(limited(word, _MOST_WORDS), "quiet") for word in words)
        yield CardSection("", tuple(quiet))

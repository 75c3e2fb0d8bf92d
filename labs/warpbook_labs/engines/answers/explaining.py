"""Asks, of answers that are wrong, from which lines of the source they came."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from warpbook_labs.engines.answers.jobs import Answered, Asked, Call, Called
from warpbook_labs.lab.plan_spec import Function
from warpbook_labs.lab.questions import Question
from warpbook_labs.lab.texts import named_lines
from warpbook_labs.results.check import CaseResult
from warpbook_labs.sandbox import parent
from warpbook_labs.sandbox.limits import Limits

#: kinds of questions that are asked again, and lines that are named
_MOST_ASKED, _MOST_LINES = 4, 24
#: to follow a source takes so much longer
_TIMES_LONGER = 20.0


class Put(Struct, frozen=True):
    """A question with what may be told of it."""

    question: Question
    function: Function
    is_hidden: bool


def followed(
    source: str,
    calls: Sequence[Asked],
    told: Sequence[tuple[Put, CaseResult]],
    answers: Sequence[Answered],
    call_s: float,
    limits: Limits,
) -> list[tuple[int, Answered]]:
    """Ask the first question of each kind again that has a wrong answer.

    Args:
        source: the learner's.
        calls: all that was asked.
        told: of each whether it is right.
        answers: to each.
        call_s: what each call may take.
        limits: of the process.

    Returns:
        Places of questions, each with its answer and the lines that it came from.
    """
    first: dict[tuple[str, bool], int] = {}
    for place, (put, case) in enumerate(told):
        if not case.passed and answers[place].data:
            first.setdefault((case.about, put.is_hidden), place)
    places = list(first.values())[:_MOST_ASKED]
    if not places:
        return []
    asked = tuple(calls[place] for place in places)
    job = Call(source, asked, _TIMES_LONGER * call_s, is_followed=True)
    outcome = parent.run(job, limits)
    if not isinstance(outcome.result, Called):
        return []
    last_line = len(source.splitlines())
    found = []
    for place, answer in zip(places, outcome.result.answers, strict=False):
        if answer.data != answers[place].data:
            # it is another, now that it was asked alone
            continue
        lines = tuple(line for line in answer.lines if 0 < line <= last_line)
        found.append((place, msgspec.structs.replace(answers[place], lines=lines)))
    return found


def from_lines(lines: Sequence[int]) -> str:
    """Say from which lines an answer came."""
    if not lines:
        return ""
    return f". It came from {named_lines(sorted(lines[:_MOST_LINES]))}"

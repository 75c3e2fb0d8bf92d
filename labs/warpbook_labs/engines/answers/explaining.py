"""Asks, of answers that are wrong, from which lines of the source they came."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from warpbook_labs.engines.answers.jobs import Answered, Asked, Call, Called
from warpbook_labs.lab.plan_spec import ROWS, Function
from warpbook_labs.lab.questions import Question
from warpbook_labs.lab.texts import named_lines, unread_words
from warpbook_labs.results.check import CaseResult
from warpbook_labs.sandbox import parent
from warpbook_labs.sandbox.limits import Limits

#: kinds of questions that are asked again, and lines that are named
_MOST_ASKED, _MOST_LINES = 4, 24
#: right answers with which wrong ones are compared
_MOST_RIGHT = 12
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
    judged: Sequence[tuple[Put, CaseResult]],
    answers: Sequence[Answered],
    call_s: float,
    limits: Limits,
) -> list[tuple[int, Answered]]:
    """Ask the first question of each kind again that has a wrong answer.

    Args:
        source: the learner's.
        calls: all that was asked.
        judged: of each whether it is right.
        answers: to each.
        call_s: what each call may take.
        limits: of the process.

    Returns:
        Places of questions, each with its answer and the lines that it came from.
    """
    first: dict[tuple[str, bool], int] = {}
    for place, (put, case) in enumerate(judged):
        # rows come from all lines of their function, and their judge names the row
        is_followed = put.function.names_lines and put.function.returns != ROWS
        if is_followed and not case.passed and answers[place].data:
            first.setdefault((case.about, put.is_hidden), place)
    places = list(first.values())[:_MOST_ASKED]
    if not places:
        return []
    beside = _right_beside(places, judged)
    again = tuple(calls[place] for place in (*places, *beside))
    wrong = (True,) * len(places) + (False,) * len(beside)
    job = Call(source, again, _TIMES_LONGER * call_s, wrong)
    outcome = parent.run(job, limits)
    if not isinstance(outcome.result, Called):
        return []
    last_line = len(source.splitlines())
    explanations = []
    for place, answer in zip(places, outcome.result.answers, strict=False):
        if answer.data != answers[place].data:
            # it is another, now that it was asked alone
            continue
        lines, unread = (
            tuple(line for line in those if 0 < line <= last_line)[:_MOST_LINES]
            for those in (answer.lines, answer.unread)
        )
        explained = msgspec.structs.replace(answers[place], lines=lines, unread=unread)
        explanations.append((place, explained))
    return explanations


def _right_beside(
    places: Sequence[int], judged: Sequence[tuple[Put, CaseResult]]
) -> list[int]:
    """Give questions to the same functions that have right answers."""
    functions = {judged[place][0].function.name for place in places}
    right = [
        place
        for place, (put, case) in enumerate(judged)
        if case.passed and put.function.name in functions
    ]
    return right[:: max(1, len(right) // _MOST_RIGHT)][:_MOST_RIGHT]


def from_lines(answer: Answered) -> str:
    """Say from which lines an answer came."""
    words = ""
    if answer.lines:
        words = f". It came from {named_lines(sorted(answer.lines))}"
    if answer.unread:
        words += f". {unread_words(answer.unread).rstrip('.')}"
    return words

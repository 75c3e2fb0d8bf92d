"""Which choice of a quiz's question is right, by the engine of the question's lab."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from warpbook_labs.course.quiz import UNKNOWN, Choice, Marked, QuizQuestion
from warpbook_labs.course.session import check_public, find
from warpbook_labs.errors import BadQuiz
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.lab.python.questions import Question
from warpbook_labs.results.check import CaseResult

#: places in a source within a sentence, and sentences about them alone
_PLACES = re.compile(r" (?:on|of) line \d+|\bLine \d+: ")
_LINES = re.compile(r"\b[Ll]ines? \d")
_END = re.compile(r"(?<=[.])\s+(?=[A-Z])")


def mark_answers(
    questions: Sequence[QuizQuestion], answers: Sequence[str]
) -> Iterator[Marked]:
    """Mark each question when it is asked for: an engine takes a moment for it.

    Args:
        answers: a letter or "?" for each.

    Raises:
        BadQuiz: an engine can't tell, or takes none or several choices.
        KeptApart: the judge of a lab's answers is not on this machine.
        NotInstalled: what an engine needs is not here.
    """
    for question, answer in zip(questions, answers, strict=True):
        if answer != UNKNOWN:
            choice = question.lettered[answer]
            is_right, finding = judge_choice(question, choice)
        else:
            is_right, finding = False, ""
        right = answer if is_right else _right_letter(question, answer)
        text = question.lettered[right].text.rstrip(".")
        if question.code:
            text = f"`{text}`"
        yield Marked(
            question.lab, question.ask, answer, right, text, finding, question.because
        )


def judge_choice(question: QuizQuestion, choice: Choice) -> tuple[bool, str]:
    """Ask the lab's engine about one choice, unless the text states it.

    Returns:
        Whether it is the right one, and what the engine says of one that is not.

    Raises:
        BadQuiz: the engine can't tell.
    """
    if question.grade == "stated":
        return choice.is_right, ""
    loaded = _loaded(question.lab)
    if question.grade == "answers":
        value = question.value if choice.value is None else choice.value
        arguments = {**question.arguments, **choice.arguments}
        why = loaded.cases.judge(Question(question.function, arguments), value)
        return why == "", why
    result = check_public(loaded, question.source_with(choice), use_gpu=False).result
    if question.grade == "counts":
        counts = result.cases[0].counts if result.cases else None
        if counts is None or question.count is None:
            raise BadQuiz(f"{question.lab}: nothing was counted: {result.message}")
        number = getattr(counts, question.count)
        why = f"The interpreter counts {number:,}."
        return number == choice.value, "" if number == choice.value else why
    if result.status not in ("passed", "failed"):
        raise BadQuiz(f"{question.lab}: `{choice.text}`: {result.message}")
    if question.grade == "fails":
        passes = "The lab's check passes with it."
        return result.status == "failed", "" if result.status == "failed" else passes
    failed = next((case for case in result.cases if not case.passed), None)
    return failed is None, "" if failed is None else _failure_words(failed)


def _failure_words(case: CaseResult) -> str:
    """Say why a case failed, and not where: the person sees a part of the source."""
    text = case.findings[0].message if case.findings else case.message
    sentences = _END.split(_PLACES.sub("", text))
    return " ".join(words for words in sentences if not _LINES.search(words))


def _right_letter(question: QuizQuestion, answer: str) -> str:
    for letter, choice in question.lettered.items():
        if letter != answer and judge_choice(question, choice)[0]:
            return letter
    raise BadQuiz(f"{question.lab}: no choice is right of: {question.ask}")


@lru_cache(maxsize=64)
def _loaded(lab: str) -> LoadedLab:
    return find(lab)

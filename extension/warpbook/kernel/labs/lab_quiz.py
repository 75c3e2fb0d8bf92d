"""What `%labquiz` shows: the placement quiz, or the questions of a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from warpbook.kernel.runs.profile import Notice
from warpbook_labs.course.overview import look_here, overview, so_far
from warpbook_labs.course.quiz import (
    LETTERS,
    UNKNOWN,
    BadAnswers,
    Marked,
    QuizQuestion,
    begin_words,
    left_out_words,
    mark_words,
    marks_words,
    placement,
    question_lines,
    question_markdown,
    questions_here,
    read_answers,
    read_quiz,
)
from warpbook_labs.course.reading import find_text
from warpbook_labs.errors import LabError
from warpbook_monitors.plain_text import joined


class ShownQuiz:
    """The questions, and how to answer them."""

    def __init__(
        self,
        questions: Sequence[QuizQuestion],
        left_out: Mapping[str, str],
        text: str = "",
    ) -> None:
        """Take the questions that can be asked here, why others can't, and a text."""
        self.questions = questions
        example = " ".join(LETTERS[at % 3] for at in range(len(questions)))
        command = f"%labquiz --text {text} {example}" if text else f"%labquiz {example}"
        self._end = [
            *filter(None, [left_out_words(left_out)]),
            f'Answer with a letter each, or "{UNKNOWN}", such as `{command}`. '
            "Nothing is kept.",
        ]

    def __repr__(self) -> str:
        lines = [
            line
            for number, question in enumerate(self.questions, 1)
            for line in (*question_lines(number, question), "")
        ]
        return joined([*lines, *self._end])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        parts = [
            question_markdown(number, question)
            for number, question in enumerate(self.questions, 1)
        ]
        markdown = "\n\n".join([*parts, *self._end])
        return {"text/plain": repr(self), "text/markdown": markdown}


class ShownMarks:
    """How each question was answered, below a sentence on all."""

    def __init__(self, marks: Sequence[Marked], sentence: str) -> None:
        self.marks = tuple(marks)
        self._sentence = sentence
        self._rows = [mark_words(number, mark) for number, mark in enumerate(marks, 1)]

    def __repr__(self) -> str:
        return joined([self._sentence, *self._rows])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        rows = [f"**{self._sentence}**", *map(_escaped, self._rows)]
        return {"text/plain": repr(self), "text/markdown": "\n\n".join(rows)}


def quiz(answers: Sequence[str], text: str) -> ShownQuiz | ShownMarks | Notice:
    """Return the questions, of a text if it is named; with answers how each was."""
    try:
        return _shown(answers, text)
    except (BadAnswers, LabError) as problem:
        return Notice(str(problem))


def _shown(words: Sequence[str], text: str) -> ShownQuiz | ShownMarks | Notice:
    labs_here = overview(look_here(), so_far({}))[0]
    of = find_text(text) if text else read_quiz("placement")
    questions, left_out = questions_here(of.questions, labs_here)
    if not questions:
        return Notice(f"No question can be asked here. {left_out_words(left_out)}")
    if not words:
        return ShownQuiz(questions, left_out, text)
    answers = read_answers(words, questions)
    from warpbook_labs.course import quiz_grading as grading

    marks = tuple(grading.mark_answers(questions, answers))
    if text:
        return ShownMarks(marks, marks_words(marks))
    result = placement(marks, labs_here)
    command = f'warpbook.labs.open("{result.begin}")'
    sentence = f"{begin_words(result, labs_here)} `{command}` opens it."
    return ShownMarks(marks, sentence)


def _escaped(words: str) -> str:
    """Keep what engines say from being taken for Markdown, but for code."""
    for mark in ("\\", "*", "_", "<", "#"):
        words = words.replace(mark, f"\\{mark}")
    return words

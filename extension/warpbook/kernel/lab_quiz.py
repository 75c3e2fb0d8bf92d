"""`%labquiz`: the placement quiz in a notebook."""

# IPython's decorators have no types
# mypy: disallow-untyped-decorators=False
from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from warpbook import labs
from warpbook.kernel.profile import Notice
from warpbook_labs.course.overview import look_here, overview, so_far
from warpbook_labs.course.paths import along, chosen_path
from warpbook_labs.course.quiz import (
    LETTERS,
    UNKNOWN,
    BadAnswers,
    Placement,
    QuizQuestion,
    placement,
    questions_here,
    read_answers,
    read_quiz,
)
from warpbook_labs.course.quiz_words import (
    begin_words,
    left_out_words,
    mark_words,
    question_lines,
    question_markdown,
)
from warpbook_labs.errors import LabError
from warpbook_labs.lab.entries import LabEntry
from warpbook_monitors.plain_text import joined


class ShownQuiz:
    """The questions, and how to answer them."""

    def __init__(
        self, questions: Sequence[QuizQuestion], left_out: Mapping[str, str]
    ) -> None:
        """Take the questions that can be asked here, and why others can't."""
        self.questions = questions
        example = " ".join(LETTERS[at % 3] for at in range(len(questions)))
        self._end = [
            *filter(None, [left_out_words(left_out)]),
            f'Answer with a letter each, or "{UNKNOWN}", such as `%labquiz {example}`. '
            "Nothing is kept.",
        ]

    def __repr__(self) -> str:
        """Write them as text."""
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


class ShownPlacement:
    """Where to begin, and how each question was answered."""

    def __init__(self, result: Placement, labs_here: Sequence[LabEntry]) -> None:
        """Take what was found."""
        self.result = result
        command = f'warpbook.labs.open("{result.begin}")'
        self._begin = f"{begin_words(result, labs_here)} `{command}` opens it."

    def __repr__(self) -> str:
        """Write it as text."""
        marks = enumerate(self.result.marks, 1)
        return joined(
            [self._begin, *(mark_words(number, mark) for number, mark in marks)]
        )

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        marks = enumerate(self.result.marks, 1)
        rows = [mark_words(number, mark) for number, mark in marks]
        markdown = "\n\n".join([f"**{self._begin}**", *map(_escaped, rows)])
        return {"text/plain": repr(self), "text/markdown": markdown}


@magic_arguments()
@argument("answers", nargs="*", metavar="LETTER", help="of each question, in order")
def labquiz(line: str) -> None:
    """Ask where to begin with the labs; with answers: say where, and why."""
    answers = parse_argstring(labquiz, line).answers
    parts = labs.parts()
    if isinstance(parts, Notice):
        display(parts)
        return
    try:
        display(_shown(answers))
    except (BadAnswers, LabError) as problem:
        display(Notice(str(problem)))


def _shown(words: Sequence[str]) -> ShownQuiz | ShownPlacement | Notice:
    labs_here = along(chosen_path(), overview(look_here(), so_far({}))[0])
    questions, left_out = questions_here(read_quiz("placement"), labs_here)
    if not questions:
        return Notice(f"No question can be asked here. {left_out_words(left_out)}")
    if not words:
        return ShownQuiz(questions, left_out)
    answers = read_answers(words, questions)
    grading = importlib.import_module("warpbook_labs.course.quiz_grading")
    marks = tuple(grading.mark_answers(questions, answers))
    return ShownPlacement(placement(marks, labs_here), labs_here)


def _escaped(words: str) -> str:
    """Keep what engines say from being taken for Markdown, but for code."""
    for mark in ("\\", "*", "_", "<", "#"):
        words = words.replace(mark, f"\\{mark}")
    return words

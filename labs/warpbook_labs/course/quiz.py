"""Quizzes: questions with choices, of which the labs' own engines tell the right one.

A quiz is a file in `labs/quiz/`, or a part of a text (`reading.py`). Where a lab has an
engine for it, nothing beside a question says which choice is right: `quiz_grading.py`
asks the engine of the question's lab.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from warpbook_labs.errors import BadQuiz
from warpbook_labs.lab.catalogues import folder_of
from warpbook_labs.lab.entries import LabEntry
from warpbook_labs.lab.files import QUIZZES, UnfitFile, private_folder, read_file
from warpbook_labs.lab.spec import KernelCount, Text
from warpbook_monitors import toml_text


def question_lines(number: int, question: QuizQuestion) -> Iterator[str]:
    """Write a question with its code and its choices, a line each."""
    yield f"{number}. {question.ask}"
    if question.code:
        yield ""
        yield from (f"    {line}" for line in question.code.splitlines())
        yield ""
    for letter, choice in question.lettered.items():
        yield f"  {letter}  {choice.text}"


def left_out_words(why: Mapping[str, str]) -> str:
    """Say which labs' questions can't be asked here; empty if all can.

    Args:
        why: a reason by the id of each lab.
    """
    by_reason: dict[str, list[str]] = {}
    for lab, reason in why.items():
        by_reason.setdefault(reason, []).append(lab)
    return " ".join(
        f"Questions on {', '.join(labs)} are left out. {reason}"
        for reason, labs in by_reason.items()
    )


def mark_words(mark: Marked) -> str:
    """Say how one question was answered, and why the right choice is right."""
    if mark.is_right:
        return f"Right: {mark.right}, {mark.text}. {mark.because}"
    verdict = f"You chose {mark.chosen}; the right choice is"
    if mark.chosen == UNKNOWN:
        verdict = "Not answered: the right choice is"
    verdict = f"{verdict} {mark.right}, {mark.text}."
    parts = (verdict, mark.finding, mark.because, f"Lab: {mark.lab}.")
    return " ".join(filter(None, parts))


def begin_words(result: Placement, labs: Sequence[LabEntry]) -> str:
    titles = {lab.id: f"{lab.number} {lab.title}" for lab in labs}
    return f"Begin with {titles[result.begin]}, {result.why}."


def marks_words(marks: Sequence[Marked]) -> str:
    right = sum(mark.is_right for mark in marks)
    return f"{right} of {len(marks)} answers are right."


#: stands in a question's source for what the person chooses
_CHOICE, _SHOWN, _GAP = "{choice}", "{shown}", "____"
LETTERS = "abcdefgh"
#: the quiz that says with which lab to begin
PLACEMENT = "placement"
#: an answer of who does not know
UNKNOWN = "?"


class BadAnswers(ValueError):
    """The answers are no answers to these questions; the message says why."""


class Choice(Struct, frozen=True, forbid_unknown_fields=True):
    """One possible answer."""

    #: of a source, what goes into the gap
    text: Text
    #: of `answers` what a plan would give; of `counts` the number
    value: Any = None
    #: of `answers`, added to the question's
    arguments: dict[str, Any] = {}
    #: of `stated`
    is_right: bool = False


class QuizQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    """A question about a lab's matter, and how the lab's engine answers it."""

    #: the id of the lab that teaches it
    lab: str
    ask: Text
    #: the right choice is the one with which the lab's check passes, the one with which
    #: it fails, the number that the interpreter counts in the lab's first case, or what
    #: the lab's judge of answers takes; of a text it may be stated
    grade: Literal["passes", "fails", "counts", "answers", "stated"]
    #: why the right choice is right
    because: Text
    choices: Annotated[tuple[Choice, ...], Meta(min_length=2, max_length=len(LETTERS))]
    #: code with `{choice}` for the gap, as the person sees it
    shown: str = ""
    #: the whole source, with `{shown}` for that
    source: str = _SHOWN
    #: of `counts`
    count: KernelCount | None = None
    #: of `answers`: the plan's function, its arguments, and its value if choices differ
    #: by their arguments
    function: str = ""
    arguments: dict[str, Any] = {}
    value: Any = None

    def __post_init__(self) -> None:
        """Refuse a choice that is there twice: nobody could tell the two apart.

        Raises:
            ValueError: two choices have the same text.
        """
        texts = [choice.text.strip() for choice in self.choices]
        for place, text in enumerate(texts):
            if text in texts[:place]:
                raise ValueError(f"`choices` has {text!r} twice")

    @property
    def lettered(self) -> dict[str, Choice]:
        return dict(zip(LETTERS, self.choices, strict=False))

    @property
    def code(self) -> str:
        """Give the code that is shown, with a gap; empty if there is none."""
        return dedent(self.shown.replace(_CHOICE, _GAP)).strip("\n")

    def source_with(self, choice: Choice) -> str:
        """Give the whole source with a choice in the gap."""
        shown = self.shown.replace(_CHOICE, choice.text)
        return self.source.replace(_SHOWN, shown).lstrip("\n")


class Quiz(Struct, frozen=True, forbid_unknown_fields=True):
    """Questions, in the order in which they are asked."""

    id: Annotated[str, Meta(pattern=r"^[a-z][a-z-]{0,40}$")]
    title: Text
    questions: Annotated[tuple[QuizQuestion, ...], Meta(min_length=1, max_length=50)]


class Marked(Struct, frozen=True):
    """How a question was answered."""

    lab: str
    ask: str
    #: letters of the choice that was made, and of the right one; the first is "?" for
    #: who did not know
    chosen: str
    right: str
    #: of the right choice
    text: str
    #: what the engine says of the choice that was made; empty if it is right
    finding: str
    because: str

    @property
    def is_right(self) -> bool:
        return self.chosen == self.right


class Placement(Struct, frozen=True):
    """Where to begin, and why."""

    #: the id of a lab
    begin: str
    why: str


def read_quiz(name: str, folder: Path = QUIZZES) -> Quiz:
    """Read a quiz.

    Raises:
        BadQuiz: it can't be used; the message names file and key.
    """
    file = folder / f"{name}.toml"
    try:
        return toml_text.decode(read_file(file), Quiz)
    except UnfitFile as problem:
        raise BadQuiz(str(problem)) from None
    except msgspec.DecodeError as problem:
        raise BadQuiz(f"{file}: {problem}") from None


def questions_here(
    all_questions: Sequence[QuizQuestion],
    labs: Sequence[LabEntry],
    catalogue: Path | None = None,
) -> tuple[tuple[QuizQuestion, ...], Mapping[str, str]]:
    """Give the questions whose labs can be checked here, and why others can't.

    Returns:
        The questions, and a reason for each id of a lab that is left out.
    """
    by_id = {lab.id: lab for lab in labs}
    why: dict[str, str] = {}
    questions = []
    for question in all_questions:
        lab = by_id.get(question.lab)
        if question.grade == "stated":
            questions.append(question)
        elif lab is None:
            why[question.lab] = "This lab is not here."
        elif not lab.can_check:
            why[question.lab] = lab.why
        elif question.grade == "answers" and _is_apart(question.lab, catalogue):
            why[question.lab] = "What judges its answers is not on this machine."
        else:
            questions.append(question)
    return tuple(questions), why


def _is_apart(lab: str, catalogue: Path | None) -> bool:
    folder = folder_of(lab, catalogue)
    return folder is None or private_folder(folder) is None


def read_answers(
    words: Sequence[str], questions: Sequence[QuizQuestion]
) -> tuple[str, ...]:
    """Take a letter for each question, or "?" for one that the person does not know.

    Raises:
        BadAnswers: there are more or fewer, or a letter is none of a choice.
    """
    answers = tuple(words)
    if len(answers) == 1 and len(answers[0]) == len(questions):
        answers = tuple(answers[0])
    answers = tuple(answer.lower() for answer in answers)
    if len(answers) != len(questions):
        raise BadAnswers(
            f"There are {len(questions)} questions and {len(answers)} answers. Give a "
            f'letter for each, and "{UNKNOWN}" where you do not know.'
        )
    for number, (answer, question) in enumerate(
        zip(answers, questions, strict=True), 1
    ):
        letters = question.lettered
        if answer != UNKNOWN and answer not in letters:
            raise BadAnswers(
                f"Question {number}: give one of {', '.join(letters)}, or {UNKNOWN}."
            )
    return answers


def placement(
    asked: Collection[str], wrong: Collection[str], labs: Sequence[LabEntry]
) -> Placement:
    """Say with which lab to begin.

    It is the first lab with a question that was not answered right; after all right
    answers the first lab that no question was about.

    Args:
        asked: the ids of labs that a question was about.
        wrong: those of them with a question that was not answered right.
        labs: in the order in which the person does them.
    """
    for lab in labs:
        if lab.id in wrong:
            words = "the first lab whose questions were not all answered right"
            return Placement(lab.id, words)
    for lab in labs:
        if lab.id not in asked:
            words = "the first lab that no question was about: all answers are right"
            return Placement(lab.id, words)
    return Placement(labs[-1].id, "the last lab: all answers are right")

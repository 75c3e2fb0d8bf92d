"""`warpbook labs quiz`: where to begin, or what one knows of a text, by questions."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterator, Sequence

from warpbook.cli.output import CommandError, print_json
from warpbook_labs.course.overview import look_here, overview, so_far
from warpbook_labs.course.quiz import (
    LETTERS,
    PLACEMENT,
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
    questions_here,
    read_answers,
    read_quiz,
)
from warpbook_labs.course.quiz_grading import mark_answers
from warpbook_labs.course.reading import find_text
from warpbook_labs.errors import BadQuiz
from warpbook_monitors.plain_text import joined

_WIDTH = 88


def quiz(options: argparse.Namespace) -> int:
    """Ask, or mark the answers that are given; nothing is kept.

    Raises:
        BadQuiz: it can't be used, or no question can be asked here.
        CommandError: the answers are none.
    """
    labs = overview(look_here(), so_far({}))[0]
    of = find_text(options.text) if options.text else read_quiz(PLACEMENT)
    questions, why = questions_here(of.questions, labs)
    if not questions:
        raise BadQuiz(f"No question can be asked here. {left_out_words(why)}")
    if options.only is not None:
        if not 1 <= options.only <= len(questions):
            raise BadQuiz(f"There is no question {options.only}.")
        questions = questions[options.only - 1 : options.only]
    if options.answers:
        try:
            answers = read_answers(options.answers, questions)
        except BadAnswers as problem:
            raise CommandError(str(problem)) from None
    elif options.json:
        print_json({"questions": _plain(questions), "left_out": why})
        return 0
    elif not sys.stdin.isatty():
        print(joined(_sheet(questions, left_out_words(why), options.text)))
        return 0
    else:
        answers = tuple(_answers(questions))
    marks = tuple(mark_answers(questions, answers))
    answer: dict[str, object] = {"marks": marks}
    lines = [*_marks(marks), marks_words(marks)]
    if not options.text and options.only is None:
        result = placement(
            {mark.lab for mark in marks},
            {mark.lab for mark in marks if not mark.is_right},
            labs,
        )
        answer |= {"begin": result.begin, "why": result.why}
        lines += textwrap.wrap(begin_words(result, labs), _WIDTH)
        lines.append(f"Then: warpbook labs open {result.begin}")
    if options.json:
        print_json(answer)
    else:
        print(joined(lines))
    return 0


def _sheet(
    questions: Sequence[QuizQuestion], left_out: str, text: str
) -> Iterator[str]:
    for number, question in enumerate(questions, 1):
        yield from _wrapped(question_lines(number, question))
        yield ""
    if left_out:
        yield left_out
    example = " ".join(LETTERS[at % 3] for at in range(len(questions)))
    of = f"--text {text} " if text else ""
    command = f"warpbook labs quiz {of}{example}"
    yield f'Answer with a letter each, or "{UNKNOWN}": {command}'


def _answers(questions: Sequence[QuizQuestion]) -> Iterator[str]:
    """Ask one question after the other on the terminal."""
    for number, question in enumerate(questions, 1):
        print(joined(["", *_wrapped(question_lines(number, question))]))
        letters = tuple(question.lettered)
        while True:
            try:
                answer = input(f"{letters[0]} to {letters[-1]}, or {UNKNOWN}: ")
            except EOFError:
                raise CommandError("The quiz ended before its last question.") from None
            answer = answer.strip().lower()
            if answer in (*letters, UNKNOWN):
                break
        yield answer


def _marks(marks: Sequence[Marked]) -> Iterator[str]:
    for number, mark in enumerate(marks, 1):
        yield from textwrap.wrap(f"{number}. {mark_words(mark)}", _WIDTH)
    yield ""


def _wrapped(lines: Iterator[str]) -> Iterator[str]:
    """Wrap what is no code."""
    for line in lines:
        yield from (
            [line] if line.startswith(" ") else textwrap.wrap(line, _WIDTH) or [""]
        )


def _plain(questions: Sequence[QuizQuestion]) -> list[dict[str, object]]:
    """Give what a person is asked, without what engines are asked."""
    return [
        {
            "lab": question.lab,
            "ask": question.ask,
            "code": question.code,
            "choices": {
                letter: choice.text for letter, choice in question.lettered.items()
            },
        }
        for question in questions
    ]

"""A quiz in words: its questions, and how they were answered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from warpbook_labs.course.quiz import Marked, Placement, QuizQuestion
from warpbook_labs.lab.entries import LabEntry


def question_lines(number: int, question: QuizQuestion) -> Iterator[str]:
    """Write a question with its code and its choices, a line each."""
    yield f"{number}. {question.ask}"
    if question.code:
        yield ""
        yield from (f"    {line}" for line in question.code.splitlines())
        yield ""
    for letter, choice in question.lettered.items():
        yield f"  {letter}  {choice.text}"


def question_markdown(number: int, question: QuizQuestion) -> str:
    """Write a question as Markdown."""
    parts = [f"**{number}.** {question.ask}"]
    if question.code:
        parts.append(f"```\n{question.code}\n```")
    rows = []
    for letter, choice in question.lettered.items():
        words = f"`{choice.text}`" if question.code else choice.text
        rows.append(f"- **{letter}** {words}")
    return "\n\n".join([*parts, "\n".join(rows)])


def left_out_words(why: Mapping[str, str]) -> str:
    """Say which labs' questions can't be asked here; empty if all can.

    Args:
        why: a reason by the id of each lab.
    """
    by_reason: dict[str, list[str]] = {}
    for lab, reason in why.items():
        by_reason.setdefault(reason, []).append(lab)
    return " ".join(
        f"Not asked here: {', '.join(labs)}. {reason}"
        for reason, labs in by_reason.items()
    )


def mark_words(number: int, mark: Marked) -> str:
    """Say how one question was answered, and why the right choice is right."""
    if mark.is_right:
        return f"{number}. {mark.chosen}: right. {mark.because}"
    return " ".join(
        filter(
            None,
            [
                f"{number}. {mark.chosen}: right is {mark.right}.",
                mark.finding,
                mark.because,
                f"Lab: {mark.lab}.",
            ],
        )
    )


def begin_words(result: Placement, labs: Sequence[LabEntry]) -> str:
    """Name the lab to begin with, and why."""
    titles = {lab.id: f"{lab.number} {lab.title}" for lab in labs}
    return (
        f"{marks_words(result.marks)} Begin with {titles[result.begin]}, {result.why}."
    )


def marks_words(marks: Sequence[Marked]) -> str:
    """Say how many answers are right."""
    right = sum(mark.is_right for mark in marks)
    return f"{right} of {len(marks)} answers are right."

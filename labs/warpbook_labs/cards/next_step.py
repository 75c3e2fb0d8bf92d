"""Of a card: what comes after a result: the reference, its discussion, the next lab."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warpbook_labs.cards.model import CardLog, CardSection, CardText
from warpbook_labs.cards.words import limited, limited_lines
from warpbook_labs.lab.entries import LabEntry

_MOST_LINES = 200
_MOST_PARAGRAPHS = 40
_MOST_WORDS = 2_000
_WIDTH = 160


def reference_sections(
    file: str, reference: str, discussion: str, mistakes: Iterable[tuple[str, str]]
) -> Iterator[CardSection]:
    """Give the author's solution, and what is said about it, each in a fold.

    Args:
        file: the name of the learner's own file.
        reference: the author's source.
        discussion: paragraphs with a blank line between them; may be empty.
        mistakes: names of frequent mistakes, with what is wrong.
    """
    lines = reference.rstrip().splitlines()
    more = max(len(lines) - _MOST_LINES, 0)
    log = CardLog(limited_lines(lines[:_MOST_LINES], _WIDTH), more)
    yield CardSection(f"Reference solution ({limited(file, 60)})", (log,), "closed")
    paragraphs = [" ".join(each.split()) for each in discussion.split("\n\n")]
    parts = tuple(
        CardText(limited(each, _MOST_WORDS))
        for each in paragraphs[:_MOST_PARAGRAPHS]
        if each
    )
    if parts:
        yield CardSection("Discussion", parts, "closed")
    wrong = tuple(
        CardText(limited(f"{name}: {reason}", _MOST_WORDS)) for name, reason in mistakes
    )
    if wrong:
        yield CardSection("What often goes wrong", wrong, "closed")


def next_section(words: Iterable[str]) -> CardSection:
    """Say what can be done now, a sentence each."""
    return CardSection(
        "Next", tuple(CardText(limited(each, _MOST_WORDS)) for each in words)
    )


def next_words(lab: LabEntry | None, command: str) -> str:
    """Name the next lab, and the command that opens it."""
    if lab is None:
        return "Every lab is passed: this was the last one."
    return f"{lab.number} {lab.title}, about {lab.minutes} minutes: `{command}`"

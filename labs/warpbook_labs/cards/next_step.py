"""Of a card: what comes after a result: the reference, its discussion, the next lab."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from warpbook_labs.cards.model import CardLog, CardSection, CardText
from warpbook_labs.cards.words import limited, limited_lines
from warpbook_labs.lab.entries import LabEntry

_MOST_LINES = 200
_MOST_PARAGRAPHS = 40
_MOST_WORDS = 2_000
_WIDTH = 160
#: code in a text; the odd parts of a split are what it holds
_FENCED = re.compile(r"^```\w*\n(.*?)\n```$", re.DOTALL | re.MULTILINE)


def reference_sections(
    file: str, reference: str, discussion: str, mistakes: Iterable[tuple[str, str]]
) -> Iterator[CardSection]:
    """Give the author's solution, and what is said about it, each in a fold.

    Args:
        file: the name of the learner's own file.
        discussion: paragraphs with a blank line between them; may be empty.
        mistakes: names of frequent mistakes, with what is wrong.
    """
    lines = reference.rstrip().splitlines()
    more = max(len(lines) - _MOST_LINES, 0)
    log = CardLog(limited_lines(lines[:_MOST_LINES], _WIDTH), more)
    yield CardSection(f"Reference solution ({limited(file, 60)})", (log,), "closed")
    parts = tuple(_blocks(discussion))[:_MOST_PARAGRAPHS]
    if parts:
        yield CardSection("Discussion", parts, "closed")
    wrong = tuple(
        CardText(limited(f"{name}: {reason}", _MOST_WORDS)) for name, reason in mistakes
    )
    if wrong:
        yield CardSection("What often goes wrong", wrong, "closed")


def _blocks(text: str) -> Iterator[CardText | CardLog]:
    """Give the paragraphs of a text, and its code between fences."""
    for place, block in enumerate(_FENCED.split(text)):
        if place % 2:
            lines = block.splitlines()
            more = max(len(lines) - _MOST_LINES, 0)
            yield CardLog(limited_lines(lines[:_MOST_LINES], _WIDTH), more)
            continue
        for paragraph in block.split("\n\n"):
            words = " ".join(paragraph.split())
            if words:
                yield CardText(limited(words, _MOST_WORDS))


def next_section(words: Iterable[str]) -> CardSection:
    """Say what can be done now, a sentence each."""
    return CardSection(
        "Next", tuple(CardText(limited(word, _MOST_WORDS)) for word in words)
    )


def next_words(lab: LabEntry | None, command: str) -> str:
    if lab is None:
        return "All labs that can be checked here are passed."
    return f"{lab.number} {lab.title}, about {lab.minutes} minutes: `{command}`"

"""Small texts: pictures that a lab's text names, and words about a line."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: from a line to the last one that are told as a span
_LEAST_SPAN = 2
#: assignments that are told of
_MOST_UNREAD = 2
_FIGURE = re.compile(r"!\[[^\]\n]*\]\(([^)\s]+)\)")


def figures(text: str) -> tuple[str, ...]:
    """Name the files of a text's pictures, each once."""
    return tuple(dict.fromkeys(_FIGURE.findall(text)))


def named_lines(lines: Sequence[int]) -> str:
    """Name lines in order: "line 3", "lines 3, 5 and 9", "lines 3 to 7 and 9"."""
    spans: list[tuple[int, int]] = []
    for line in lines:
        if spans and line == spans[-1][1] + 1:
            spans[-1] = (spans[-1][0], line)
        else:
            spans.append((line, line))
    words = []
    for first, last in spans:
        if last - first >= _LEAST_SPAN:
            words.append(f"{first} to {last}")
        else:
            words += map(str, range(first, last + 1))
    noun = "line" if len(lines) == 1 else "lines"
    *before, end = words or [""]
    return f"{noun} {', '.join(before)} and {end}" if before else f"{noun} {end}"


def unread_words(lines: Sequence[int]) -> str:
    """Say that nothing reads what lines assign."""
    verb = "assigns" if len(lines[:_MOST_UNREAD]) == 1 else "assign"
    return f"Nothing reads what {named_lines(lines[:_MOST_UNREAD])} {verb}."


#: of a process that no learner's code has answered for in the ordinary way
INVALID_MESSAGE = "The worker sent an invalid message."


def at_line(words: str, line: int | None) -> str:
    """Begin a sentence with the line of a source that it is about, if there is one."""
    return f"Line {line}: {words}" if line else words

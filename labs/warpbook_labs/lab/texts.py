"""Small texts: pictures that a lab's text names, and words about a line."""

from __future__ import annotations

import re
from collections.abc import Sequence

_FIGURE = re.compile(r"!\[[^\]\n]*\]\(([^)\s]+)\)")


def figures(text: str) -> tuple[str, ...]:
    """Name the files of a text's pictures, each once."""
    return tuple(dict.fromkeys(_FIGURE.findall(text)))


def named_lines(lines: Sequence[int]) -> str:
    """Name lines: "line 3", or "lines 3, 5 and 9"."""
    if len(lines) < 2:
        return "".join(f"line {line}" for line in lines)
    *first, last = lines
    return f"lines {', '.join(map(str, first))} and {last}"


#: of a process that no learner's code has answered for in the ordinary way
INVALID_MESSAGE = "The worker sent an invalid message."


def at_line(words: str, line: int | None) -> str:
    """Begin a sentence with the line of a source that it is about, if there is one."""
    return f"Line {line}: {words}" if line else words

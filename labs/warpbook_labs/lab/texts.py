"""Small texts: pictures that a lab's text names, and words about a line.

Formulas of labs' texts as plain text, for what draws no LaTeX.

A formula stands between dollars, as Jupyter takes it: `$n^2$`, or `$$n^2$$` apart.
Code between backticks is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_CODE_OR_MATH = re.compile(
    r"```.*?```|`[^`\n]*`|\$\$(?P<apart>[^$]{1,2000})\$\$|\$(?P<line>[^$`]{1,500})\$",
    re.DOTALL,
)
_FRACTION = re.compile(r"\\frac\{([^{}]*)\}\{([^{}]*)\}")
_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_GROUP = re.compile(r"\{([^{}]*)\}")
_COMMAND = re.compile(r"\\([A-Za-z]+)\s?")
_SIMPLE = re.compile(r"[\w.]+")
_SYMBOLS = {
    "cdot": "· ",
    "times": "× ",
    "oplus": "xor ",
    "le": "≤ ",
    "ge": "≥ ",
    "sum": "sum",
    "log": "log",
    "left": "",
    "right": "",
}


def plain_math(text: str) -> str:
    """Write the formulas of a text without LaTeX."""

    def instead(match: re.Match[str]) -> str:
        formula = match["apart"] or match["line"]
        return match[0] if formula is None else _plain(formula)

    return _CODE_OR_MATH.sub(instead, text)


def _plain(formula: str) -> str:
    words = " ".join(formula.split())
    words = words.replace(r"\,", " ").replace(r"\|", "|")
    # from the innermost outwards, each pass once over what is left
    for _ in range(5):
        words = _TEXT.sub(r"\1", words)
        words = _FRACTION.sub(_fraction, words)
        words = _GROUP.sub(r"\1", words) if r"\frac" not in words else words
    words = _COMMAND.sub(lambda match: _SYMBOLS.get(match[1], match[1]), words)
    return " ".join(words.split())


def _fraction(match: re.Match[str]) -> str:
    return " / ".join(
        part if _SIMPLE.fullmatch(part) else f"({part})"
        for part in (match[1].strip(), match[2].strip())
    )


#: from a line to the last one that are told as a span
_LEAST_SPAN = 2
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
    """Say that nothing has read what lines assign."""
    verb = "assigns" if len(lines) == 1 else "assign"
    return f"In this run nothing reads what {named_lines(lines)} {verb}."


#: of a process that no learner's code has answered for in the ordinary way
INVALID_MESSAGE = "The worker sent an invalid message."


def at_line(words: str, line: int | None) -> str:
    """Begin a sentence with the line of a source that it is about, if there is one."""
    return f"Line {line}: {words}" if line else words

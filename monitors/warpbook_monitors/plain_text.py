"""Names and lines fit to show: columns align, and nothing steers a terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

_LEAST_WIDTH = 30
#: between a label and its figure, or two columns
_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")


def printable(text: str) -> str:
    """Make a text one line; an escape sequence or a line break becomes "?"."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def bounded(name: str, most: int = 100) -> str:
    """Make a name of somebody else's choice fit to show: one line, not long."""
    shown = printable(name)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def joined(lines: Iterable[str]) -> str:
    """Join lines, each of them printable."""
    return "\n".join(map(printable, lines))


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Set rows in columns, the first to the left and the figures to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [row[0].ljust(widths[0])]
            + [
                cell.rjust(width)
                for cell, width in zip(row[1:], widths[1:], strict=True)
            ]
        ).rstrip()
        for row in rows
    ]


def fitted(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Break prose, and figures behind a label, between words; tables stay as they are.

    Args:
        lines: each of them printable.
        width: of the terminal in characters; None leaves all as it is.
    """
    for line in lines:
        gaps = list(_GAP.finditer(line))
        if width is None or len(line) <= width or len(gaps) > 1:
            yield line
            continue
        indent = gaps[0].end() if gaps else len(line) - len(line.lstrip())
        yield from textwrap.wrap(
            line,
            max(width, indent + _LEAST_WIDTH),
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
            drop_whitespace=True,
        )


def labelled(figures: Sequence[tuple[str, str]]) -> list[str]:
    """Set figures below one another, each behind its label."""
    width = max(len(label) for label, _ in figures)
    return [f"{label.ljust(width)}  {value}" for label, value in figures]


def shortened(name: str, most: int) -> str:
    """Cut a name in its middle: a path, or a kernel, is known by both its ends."""
    if len(name) <= most:
        return name
    tail = most // 2
    return f"{name[: most - tail - 1]}…{name[-tail:]}"

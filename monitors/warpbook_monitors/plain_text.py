"""Lines for a terminal: columns that align, and nothing that steers it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def joined(lines: Iterable[str]) -> str:
    """Join lines; an escape sequence or a line break in a name becomes "?"."""
    return "\n".join(
        "".join(letter if letter.isprintable() else "?" for letter in line)
        for line in lines
    )


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

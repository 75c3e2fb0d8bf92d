"""Lines of a source from which something came, each with how far away it is."""

from __future__ import annotations

#: how near each line is, in statements
Lines = dict[int, float]
_MOST_KEPT = 64


def in_order(lines: Lines) -> tuple[int, ...]:
    """Name lines, the nearest first."""
    return tuple(sorted(lines, key=lambda line: (lines[line], -line)))


def merge(into: Lines, lines: Lines, steps: float) -> None:
    """Add lines that are so many statements further away."""
    for line, distance in lines.items():
        into[line] = min(into.get(line, distance + steps), distance + steps)


def nearest(lines: Lines) -> Lines:
    """Leave the nearest of many lines."""
    if len(lines) <= _MOST_KEPT:
        return dict(lines)
    return {line: lines[line] for line in in_order(lines)[:_MOST_KEPT]}

"""Lines of a source from which something came, each with how far away it is."""

from __future__ import annotations

from collections.abc import Sequence

#: how near each line is, in statements
Lines = dict[int, float]
_MOST_KEPT = 64
#: how much nearer a line may come, since right answers are farther from it
_MOST_STEPS_NEARER = 4.0


def in_order(lines: Lines) -> tuple[int, ...]:
    """Name lines, the nearest first."""
    return tuple(sorted(lines, key=lambda line: (lines[line], -line)))


def merge(into: Lines, lines: Lines, steps: float) -> None:
    """Add lines that are so many statements further away."""
    for line, distance in lines.items():
        into[line] = min(into.get(line, distance + steps), distance + steps)


def suspicious(lines: Lines, right: Sequence[Lines]) -> Lines:
    """Give lines in another order: first those that are farther from what is right.

    Args:
        lines: from which something wrong came.
        right: from which each of what is right came.
    """
    if not right:
        return lines
    steps = {}
    for line, distance in lines.items():
        most = distance + _MOST_STEPS_NEARER
        others = [min(distances.get(line, most), most) for distances in right]
        steps[line] = distance - max(0.0, sum(others) / len(others) - distance)
    order = sorted(lines, key=lambda line: (steps[line], lines[line], -line))
    return {line: place for place, line in enumerate(order)}


def nearest(lines: Lines) -> Lines:
    """Leave the nearest of many lines."""
    if len(lines) <= _MOST_KEPT:
        return dict(lines)
    return {line: lines[line] for line in in_order(lines)[:_MOST_KEPT]}

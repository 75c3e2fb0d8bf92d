"""The few lines of a source that most of a count comes of."""

from __future__ import annotations

from collections.abc import Mapping

#: lines that are named for a count, and the share of it that they must cover
_MOST_LINES = 3
_WANTED_SHARE = 0.8


def top_lines(amounts: Mapping[int, int]) -> tuple[int, ...]:
    """Give the few lines that most of an amount comes of, the most first.

    Args:
        amounts: by line; a line of 0 is not known, and not given.
    """
    total, covered = sum(amounts.values()), 0
    lines: list[int] = []
    for line, amount in sorted(amounts.items(), key=lambda pair: -pair[1]):
        is_enough = covered >= _WANTED_SHARE * total
        if is_enough or len(lines) == _MOST_LINES or amount <= 0:
            break
        covered += amount
        if line > 0:
            lines.append(line)
    return tuple(lines)

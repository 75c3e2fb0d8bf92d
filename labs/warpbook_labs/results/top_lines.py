"""The few lines of a source that most of a count comes of."""

from __future__ import annotations

from collections.abc import Mapping

#: lines that are named for a count, and the share of it that they must cover
_MOST_LINES = 3
_WANTED_SHARE = 0.8
#: as many are named if the last ones have equal counts
_MOST_TIED = 6


def top_lines(amounts: Mapping[int, int]) -> tuple[int, ...]:
    """Give the few lines that most of an amount comes of, the most first.

    Args:
        amounts: by line; a line of 0 is not known, and not given.
    """
    total, covered = sum(amounts.values()), 0
    lines: list[int] = []
    least = 0
    for line, amount in sorted(amounts.items(), key=lambda pair: -pair[1]):
        is_enough = covered >= _WANTED_SHARE * total or len(lines) >= _MOST_LINES
        # to name some of those that are equal would point away from the others
        is_tied = amount == least and len(lines) < _MOST_TIED
        if amount <= 0 or (is_enough and not is_tied):
            break
        covered, least = covered + amount, amount
        if line > 0:
            lines.append(line)
    return tuple(lines)

"""Ranks of measured speeds: who can't be told from the leader of a group shares it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from msgspec import Struct

from warpbook.hub_protocol import Ratio


class RankedSpeed(Struct, frozen=True):
    """Whose speed it is, with their rank."""

    #: 1 is best; as many are better as come before the whole group
    rank: int
    name: str
    ratio: Ratio


def better_of(first: Ratio, second: Ratio) -> bool:
    """Whether the first is surely reached where the second is not: by its low end."""
    return (first.low, first.middle) > (second.low, second.middle)


def ranked(ratios: Mapping[str, Ratio]) -> list[RankedSpeed]:
    """Rank speeds by their intervals, the best first.

    Groups are made from the best on. The leader of a group is who has the highest low
    end among those who are left (of equals the higher middle, then the name that sorts
    first). Whoever of them has a high end that reaches the leader's low end is in the
    group and shares its rank; the rest go on to the next. Membership is decided by the
    leader alone, so a row of overlapping intervals is no chain. Whoever is in a later
    group is slower than the leader of every earlier one by the whole of both intervals.
    Within a group the higher middle comes first.

    Args:
        ratios: time of the baseline over time taken, by name; names decide nothing but
            the order of equals.
    """
    left = sorted(
        ratios, key=lambda name: (-ratios[name].low, *_by_middle(ratios, name))
    )
    placed: list[RankedSpeed] = []
    while left:
        least = ratios[left[0]].low
        group = [name for name in left if ratios[name].high >= least]
        left = [name for name in left if ratios[name].high < least]
        group.sort(key=lambda name: _by_middle(ratios, name))
        rank = len(placed) + 1
        placed += [RankedSpeed(rank, name, ratios[name]) for name in group]
    return placed


def of_rounds(rounds: Sequence[Ratio]) -> Ratio:
    """Make one speed of several measurements of it, at different times.

    The middle is the median of the rounds' middles. The interval goes from the smallest
    to the largest of them: it holds the median of all such rounds with a probability of
    1 - 2^(1 - n) for n rounds (94 % for five), whatever their distribution.

    Args:
        rounds: at least one.
    """
    middles = [ratio.middle for ratio in rounds]
    return Ratio(min(middles), median(middles), max(middles))


def _by_middle(ratios: Mapping[str, Ratio], name: str) -> tuple[float, str]:
    return -ratios[name].middle, name

"""Which submissions of a lab have most in common, for a person to look at.

A ranking, and no verdict: solutions of one short kernel are alike by nature, so no
number is a threshold. What most of the class has in common counts little.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Work(Struct, frozen=True):
    """A source, and whose it is."""

    submission: str
    party: str
    source: str


class Pair(Struct, frozen=True):
    """Two submissions of different parties."""

    first: str
    second: str
    #: in the order of `structure`, 1 is the most alike
    rank: int
    #: what they share, where names and spaces do not count: 0 to 1
    structure: float
    #: in the order of `wording`
    wording_rank: int
    #: the same, where names and comments count
    wording: float
    #: lines of the first, and of the second, that are alike
    first_lines: tuple[int, ...]
    second_lines: tuple[int, ...]


def rank(
    works: Sequence[Work], boilerplate: Sequence[str] = (), most: int = 200
) -> list[Pair]:
    """Rank pairs by what they have in common, the most alike first.

    Args:
        works: of one lab.
        boilerplate: what everybody was given: starter, given files.
        most: so many pairs are told.
    """
    raise NotImplementedError

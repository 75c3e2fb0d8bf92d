"""Rankings of similarity that were made, kept in memory: each can be made anew."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from warpbook_hub.similarity.ranking import Pair

_MOST = 50


class Ranking(Struct, frozen=True):
    """The pairs of a lab."""

    made_ms: int
    works: int
    #: sources that they were compared with, of other courses or the reference
    elsewhere: int
    pairs: Sequence[Pair]


class Rankings:
    """The last ranking of each lab."""

    def __init__(self) -> None:
        self._of_labs: dict[str, Ranking] = {}

    def keep(self, lab: str, ranking: Ranking) -> None:
        """Keep the ranking of a lab in place of any before."""
        self._of_labs.pop(lab, None)
        self._of_labs[lab] = ranking
        while len(self._of_labs) > _MOST:
            del self._of_labs[next(iter(self._of_labs))]

    def of(self, lab: str) -> Ranking | None:
        """Give the last ranking of a lab; None where none was made."""
        return self._of_labs.get(lab)

    def forget(self) -> None:
        """Let go of all, since somebody was erased."""
        self._of_labs.clear()

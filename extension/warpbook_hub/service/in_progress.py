"""How much of the service one person has at a time."""

from __future__ import annotations

from collections import Counter

from warpbook_hub.errors import TooManyRequests


class InProgress:
    """Counts what is open for each person, and bounds it."""

    def __init__(self, most: int, words: str) -> None:
        """Take the bound, and what is told beyond it."""
        self._most, self._words = most, words
        self._open: Counter[str] = Counter()

    def check(self, username: str) -> None:
        """Refuse somebody who has as much as one may have.

        Raises:
            TooManyRequests: they have.
        """
        if self._open[username] >= self._most:
            raise TooManyRequests(self._words)

    def begin(self, username: str) -> None:
        """Count one more.

        Raises:
            TooManyRequests: they have as much as one may have.
        """
        self.check(username)
        self._open[username] += 1

    def end(self, username: str) -> None:
        """Count one less."""
        self._open[username] -= 1
        if self._open[username] <= 0:
            del self._open[username]

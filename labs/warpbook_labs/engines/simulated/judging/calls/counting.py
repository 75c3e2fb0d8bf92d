"""What a call asked of the machine, and the lines that asked for most of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from warpbook_labs.results.host_counts import HostCounts
from warpbook_labs.results.top_lines import top_lines

#: counts that are of times: the lines of another count explain them
_EXPLAINED_BY = {
    "percent_of_bound": "synchronizations",
    "total_ns": "synchronizations",
}


class Counting:
    """The counts of one call."""

    def __init__(self) -> None:
        """Begin with nothing asked."""
        self.counts = HostCounts()
        self._amounts: defaultdict[str, Counter[int]] = defaultdict(Counter)

    def add(self, count: str, amount: int, line: int) -> None:
        """Add to a count what a line asked for; a line of 0 is not known."""
        setattr(self.counts, count, getattr(self.counts, count) + amount)
        self._amounts[count][line] += amount

    def hold(self, size_bytes: int, by_line: Mapping[int, int]) -> None:
        """Set how much memory was held at one time, and which lines made it."""
        self.counts.held_bytes = size_bytes
        self._amounts["held_bytes"] = Counter(by_line)

    def lines(self) -> dict[str, tuple[int, ...]]:
        """Give by count the lines that most of it comes of, the most first."""
        lines = {count: top_lines(amounts) for count, amounts in self._amounts.items()}
        for count, other in _EXPLAINED_BY.items():
            lines[count] = lines.get(other, ())
        return lines

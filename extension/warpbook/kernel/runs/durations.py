"""Durations counted so that their median can be told, however many there are."""

from __future__ import annotations

import math

#: buckets for each factor of e: neighbours are 2 % apart, so a middle is 1 % off
_RESOLUTION = 50


class Durations:
    """A histogram with buckets of equal ratio; some hundred numbers at most."""

    def __init__(self) -> None:
        """Start with none."""
        self.count = 0
        self.longest_ns = 0
        self._counts: dict[int, int] = {}

    def add(self, duration_ns: int) -> None:
        """Count one."""
        bucket = int(math.log(max(duration_ns, 1)) * _RESOLUTION)
        self._counts[bucket] = self._counts.get(bucket, 0) + 1
        self.count += 1
        self.longest_ns = max(self.longest_ns, duration_ns)

    def quantile(self, share: float) -> float:
        """Give the duration in ns that this share of all does not exceed; 0 of none.

        Any thread may ask while another counts.
        """
        counts = sorted(self._counts.copy().items())
        wanted = share * sum(count for _, count in counts)
        for bucket, count in counts:
            wanted -= count
            if wanted <= 0:
                middle = math.exp((bucket + 0.5) / _RESOLUTION)
                return min(middle, float(self.longest_ns))
        return 0.0

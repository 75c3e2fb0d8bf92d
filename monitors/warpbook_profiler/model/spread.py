"""How far two sets of repeated times are apart, as an interval.

The estimate is that of Hodges and Lehmann: the median of all differences between the
one set and the other. It fits a test by ranks, and one odd time does not move it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

#: of a normal distribution, for an interval at 95 %
_DEVIATIONS = 1.96


class Shift(NamedTuple):
    """How much more the later ones are: the middle, and the interval at 95 %."""

    low: float
    middle: float
    high: float


def shift(before: Sequence[float], after: Sequence[float]) -> Shift:
    """Give how much more the times of `after` are; neither may be empty."""
    # the magics import who imports this, and must not wait for NumPy
    import numpy as np

    differences = np.sort(np.subtract.outer(after, before).ravel())
    spread = _DEVIATIONS * math.sqrt(
        len(differences) * (len(before) + len(after) + 1) / 12
    )
    cut = max(int(len(differences) / 2 - spread), 1)
    return Shift(
        float(differences[cut - 1]),
        float(np.median(differences)),
        float(differences[-cut]),
    )


def ratio(before: Sequence[float], after: Sequence[float]) -> Shift:
    """Give how many times as long `after` takes; all times are above 0."""
    logarithms = shift([*map(math.log, before)], [*map(math.log, after)])
    return Shift(*map(math.exp, logarithms))

"""What a row of the archive may stand for, and which rows answer a span."""

from __future__ import annotations

FRAMES, SECOND, MINUTE, HOUR = 0, 1000, 60_000, 3_600_000

#: of one answer: numbers in memory, 8 bytes each
_MOST_NUMBERS = 8_000_000
#: and rows: what is read together has to fit in one table
_MOST_ROWS = 90_000
#: least, mean and most
_NUMBERS_A_METRIC = 3


def fitting_step_ms(length_ms: float, wanted_ms: float, metrics: int) -> int:
    """How long the rows are that answer a span; frames are not chosen here.

    Args:
        length_ms: of the span.
        wanted_ms: shorter rows are of no use.
        metrics: how many are read, of all devices together.
    """
    least_ms = max((s for s in (MINUTE, HOUR) if s <= wanted_ms), default=SECOND)
    for step_ms in (SECOND, MINUTE, HOUR):
        rows = length_ms / step_ms
        numbers = rows * metrics * _NUMBERS_A_METRIC
        fits = rows <= _MOST_ROWS and numbers <= _MOST_NUMBERS
        if step_ms >= least_ms and fits:
            return step_ms
    return HOUR

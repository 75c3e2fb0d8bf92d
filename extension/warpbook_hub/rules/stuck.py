"""Whether a learner is stuck with a lab, so that somebody should ask how it goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

EQUAL_FAILURES = 3
NO_PROGRESS_MS = 15 * 60_000
#: who has done nothing for so long has left, and is not stuck
GONE_MS = 60 * 60_000

StuckReason = Literal["equal failures", "no progress"]


class Try(Struct, frozen=True):
    """A result of a learner, the earliest first in a sequence."""

    received_ms: int
    passed: bool
    #: share of cases that are right
    right: float
    #: empty if it passed
    error_kind: str


def stuck(tries: Sequence[Try], now_ms: int) -> StuckReason | None:
    """Tell why a learner is stuck: three equal failures, or no progress in 15 min."""
    if not tries or any(attempt.passed for attempt in tries):
        return None
    if now_ms - tries[-1].received_ms > GONE_MS:
        return None
    last = tries[-EQUAL_FAILURES:]
    kinds = {(attempt.error_kind, attempt.right) for attempt in last}
    if len(last) == EQUAL_FAILURES and len(kinds) == 1:
        return "equal failures"
    best, since_ms = -1.0, tries[0].received_ms
    for attempt in tries:
        if attempt.right > best:
            best, since_ms = attempt.right, attempt.received_ms
    return "no progress" if now_ms - since_ms >= NO_PROGRESS_MS else None

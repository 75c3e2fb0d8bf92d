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
    """Tell why a learner is stuck: three equal failures, or 15 minutes in vain."""
    raise NotImplementedError

"""How much one person hands in is bounded."""

from __future__ import annotations

import pytest

from tests.hub.core.course import Classroom
from warpbook_hub.errors import TooManyRequests
from warpbook_hub.rules.lateness import DAY_H, HOUR_MS
from warpbook_hub.work.submissions import MOST_BYTES_PER_DAY, MOST_PER_HOUR


def test_nobody_floods_the_queue(room: Classroom) -> None:
    for number in range(MOST_PER_HOUR):
        room.submit("ada", f"// {number}", replace=True)
    with pytest.raises(TooManyRequests):
        room.submit("ada", replace=True)
    room.submit("bob")
    room.now_ms += HOUR_MS
    room.submit("ada", replace=True)


def test_nobody_fills_the_disk(room: Classroom) -> None:
    """Each hour's submissions are few enough, and all of a day too large."""
    large = "x" * 190_000
    for number in range(MOST_BYTES_PER_DAY // len(large) + 1):
        room.now_ms += HOUR_MS // 50
        room.submit("cyd", f"// {number} {large}", replace=True)
    with pytest.raises(TooManyRequests):
        room.submit("cyd", replace=True)
    room.submit("bob")
    room.now_ms += DAY_H * HOUR_MS
    room.submit("cyd", replace=True)

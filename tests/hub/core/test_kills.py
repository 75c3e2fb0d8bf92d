"""`kill -9` of service and graders: nothing is lost, and nothing accepted twice."""

from __future__ import annotations

from pathlib import Path

from tests.hub.core.kills import Tally, run_class


def test_what_was_acknowledged_is_graded_once_whatever_is_killed(
    tmp_path: Path,
) -> None:
    def is_enough(tally: Tally) -> bool:
        return len(tally.acknowledged) >= 5 and tally.kills >= 6

    tally = run_class(tmp_path, seconds=5, seed=3, is_enough=is_enough)
    assert is_enough(tally)
    assert tally.timed
    assert (tally.lost, tally.wrong) == ([], [])

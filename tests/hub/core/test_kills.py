"""`kill -9` of service and graders: nothing is lost, and nothing accepted twice."""

from __future__ import annotations

from pathlib import Path

from tests.hub.core.kills import run_class


def test_what_was_acknowledged_is_graded_once_whatever_is_killed(
    tmp_path: Path,
) -> None:
    tally = run_class(tmp_path, seconds=5, seed=3, least_kills=6)
    assert len(tally.acknowledged) >= 5 and tally.kills >= 6
    assert tally.timed
    assert (tally.lost, tally.wrong) == ([], [])

"""Stands between the grader and its jailed processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from warpbook_labs.sandbox import parent, warm
from warpbook_labs.sandbox.parent import Outcome
from warpbook_labs.sandbox.work import Job


def listen(
    monkeypatch: pytest.MonkeyPatch, hear: Callable[[Job[Any], Outcome[Any]], None]
) -> None:
    """Have `hear` told of each job, and of how it ended, before the grader is."""
    for way in (parent, warm):
        _listen_to(way, monkeypatch, hear)


def _listen_to(
    way: Any,
    monkeypatch: pytest.MonkeyPatch,
    hear: Callable[[Job[Any], Outcome[Any]], None],
) -> None:
    real = way.run

    def run(job: Job[Any], *more: Any) -> Outcome[Any]:
        outcome: Outcome[Any] = real(job, *more)
        hear(job, outcome)
        return outcome

    monkeypatch.setattr(way, "run", run)

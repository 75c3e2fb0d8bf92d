"""Stands between the grader and its jailed processes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from warpbook_labs.sandbox import parent
from warpbook_labs.sandbox.limits import Limits
from warpbook_labs.sandbox.parent import Outcome
from warpbook_labs.sandbox.work import Job


def listen(
    monkeypatch: pytest.MonkeyPatch, hear: Callable[[Job[Any], Outcome[Any]], None]
) -> None:
    """Have `hear` told of each job, and of how it ended, before the grader is."""
    real = parent.started

    @contextlib.contextmanager
    def started(
        kind: type[Job[Any]], limits: Limits
    ) -> Iterator[Callable[[Job[Any]], Outcome[Any]]]:
        with real(kind, limits) as do:

            def done(job: Job[Any]) -> Outcome[Any]:
                outcome = do(job)
                hear(job, outcome)
                return outcome

            yield done

    monkeypatch.setattr(parent, "started", started)

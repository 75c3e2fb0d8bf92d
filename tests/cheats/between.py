"""Stands between the grader and its jailed processes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from warpbook_labs.sandbox import jobs, parent
from warpbook_labs.sandbox.limits import Limits
from warpbook_labs.sandbox.parent import Outcome


def listen(
    monkeypatch: pytest.MonkeyPatch, hear: Callable[[jobs.Job, Outcome], None]
) -> None:
    """Have `hear` told of each job, and of how it ended, before the grader is."""
    real = parent.started

    @contextlib.contextmanager
    def started(
        kind: type[jobs.Job], limits: Limits
    ) -> Iterator[Callable[[jobs.Job], Outcome]]:
        with real(kind, limits) as do:

            def done(job: jobs.Job) -> Outcome:
                outcome = do(job)
                hear(job, outcome)
                return outcome

            yield done

    monkeypatch.setattr(parent, "started", started)

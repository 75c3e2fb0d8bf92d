"""How far a check is: noted by jailed processes, shown by whoever asked for the check.

A jailed process writes a NUL byte to stderr for each step that it has done. A learner's
code could write them, too, so they are only shown.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar

#: what a step looks like on stderr
MARK = b"\0"
#: is given how many steps are done, and of how many
Report = Callable[[int, int], None]

_report: ContextVar[Report | None] = ContextVar("report", default=None)


@contextlib.contextmanager
def reported_to(report: Report) -> Iterator[None]:
    """Have checks in this context tell how far they are, from threads of their own."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


def note_step() -> None:
    """Note that a step is done, in a jailed process."""
    with contextlib.suppress(OSError):
        os.write(2, MARK)


class Steps:
    """The steps of one check, which several processes do."""

    def __init__(self, of: int) -> None:
        """Begin with none done, and report it."""
        self._of, self._done = of, 0
        self._report = _report.get()
        self._lock = threading.Lock()
        self.add(0)

    def add(self, count: int) -> None:
        if self._report is None:
            return
        with self._lock:
            self._done = min(self._done + count, self._of)
            self._report(self._done, self._of)

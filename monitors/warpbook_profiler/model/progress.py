"""How far the analysis of a trace is: the stage, and what of it is done.

Whoever waits listens while one analysis runs; elsewhere nobody is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec import Struct

from warpbook_monitors import units


class TraceProgress(Struct, frozen=True):
    """A stage of an analysis, and the part of it that is done where that is known."""

    stage: str
    #: as "312 of 540 MB"
    detail: str = ""
    share: float | None = None

    @property
    def words(self) -> str:
        if self.share is None:
            return self.stage
        return f"{self.stage}: {self.detail}, {units.share(self.share)}"


Listener = Callable[[TraceProgress], None]
_listener: ContextVar[Listener | None] = ContextVar("_listener", default=None)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Tell a listener of each step of the analyses within."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(stage: str, done: int = 0, total: int = 0, unit: str = "") -> None:
    """Tell whoever listens; without a total the stage has no parts."""
    listener = _listener.get()
    if listener is not None:
        detail = f"{done:,} of {total:,}{unit}" if total else ""
        listener(TraceProgress(stage, detail, done / total if total else None))

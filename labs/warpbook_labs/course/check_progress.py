"""How far a check is, in words, for whoever waits for it; nothing of a quick one."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import copy_context

from warpbook_labs.sandbox.progress import reported_to

_QUICK_S = 1.0
#: a check that stands still shows that its time goes on
_TICK_S = 1.0


@contextlib.contextmanager
def told_progress(tell: Callable[[str], None]) -> Iterator[None]:
    """Give words to `tell` at each step, and each second between steps.

    Args:
        tell: called from several threads, one at a time, and never after the end.
    """
    state, ended = _State(tell), threading.Event()

    def tick() -> None:
        while not ended.wait(_TICK_S):
            state.tell()

    # what is shown belongs to the cell that is running
    ticker = threading.Thread(
        target=copy_context().run, args=(tick,), name="warpbook-progress", daemon=True
    )
    ticker.start()
    try:
        with reported_to(state.note):
            yield
    finally:
        ended.set()
        ticker.join()
        state.end()


class _State:
    """The last step, and since when the check goes on."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell: Callable[[str], None] | None = tell
        self._begin_s = time.monotonic()
        self._done, self._of = 0, 0
        self._lock = threading.Lock()

    def note(self, done: int, of: int) -> None:
        with self._lock:
            self._done, self._of = done, of
        self.tell()

    def tell(self) -> None:
        """Say how far it is, if it has taken long enough for that."""
        with self._lock:
            if self._tell is None or time.monotonic() - self._begin_s < _QUICK_S:
                return
            self._tell(self._words())

    def end(self) -> None:
        """Say nothing any more: a process may still note a step."""
        with self._lock:
            self._tell = None

    def _words(self) -> str:
        elapsed_s = time.monotonic() - self._begin_s
        if not self._of:
            return f"Checking, {elapsed_s:.0f} s."
        return f"Checked {self._done:,} of {self._of:,} cases, {elapsed_s:.0f} s."

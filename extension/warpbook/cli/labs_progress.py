"""How far a check is, on one line of a terminal; nothing of a quick one."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from warpbook_labs.sandbox.progress import reported_to

_QUICK_S = 1.0
#: back to the line's start, and nothing on it
_CLEAR = "\r\x1b[K"


@contextlib.contextmanager
def shown_progress() -> Iterator[None]:
    """Show how many cases are done while a check runs, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    begin_s = time.monotonic()

    def show(done: int, of: int) -> None:
        if time.monotonic() - begin_s >= _QUICK_S:
            sys.stderr.write(f"{_CLEAR}Checked {done:,} of {of:,} cases.")
            sys.stderr.flush()

    try:
        with reported_to(show):
            yield
    finally:
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()

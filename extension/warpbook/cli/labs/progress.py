"""How far a check is, on one line of a terminal; nothing of a quick one."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from warpbook_labs.course.check_progress import told_progress

#: back to the line's start, and nothing on it
_CLEAR = "\r\x1b[K"


@contextlib.contextmanager
def shown_progress() -> Iterator[None]:
    """Show how many cases are done, and the time taken, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield
        return

    def show(words: str) -> None:
        sys.stderr.write(f"{_CLEAR}{words}")
        sys.stderr.flush()

    try:
        with told_progress(show):
            yield
    finally:
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()

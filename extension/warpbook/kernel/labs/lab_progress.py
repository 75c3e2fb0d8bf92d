"""How far a check is, below its cell; nothing of a quick one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from IPython.display import display

from warpbook_labs.course.check_progress import told_progress


@contextlib.contextmanager
def shown_progress() -> Iterator[None]:
    """Show how many cases are done, and the time taken, while a check runs."""
    line: Any = None

    def show(words: str) -> None:
        nonlocal line
        data = {"text/plain": words}
        if line is None:
            line = display(data, raw=True, display_id=True)
        else:
            line.update(data, raw=True)

    try:
        with told_progress(show):
            yield
    finally:
        if line is not None:
            line.update({"text/plain": ""}, raw=True)

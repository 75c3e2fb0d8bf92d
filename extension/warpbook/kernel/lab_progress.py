"""How far a check is, below its cell; nothing of a quick one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from IPython.display import display

from warpbook_labs.sandbox.progress import reported_to

_QUICK_S = 1.0


@contextlib.contextmanager
def shown_progress() -> Iterator[None]:
    """Show how many cases are done while a check runs."""
    begin_s = time.monotonic()
    line: Any = None

    def show(done: int, of: int) -> None:
        nonlocal line
        if time.monotonic() - begin_s < _QUICK_S:
            return
        data = {"text/plain": f"Checked {done:,} of {of:,} cases."}
        if line is None:
            line = display(data, raw=True, display_id=True)
        else:
            line.update(data, raw=True)

    try:
        with reported_to(show):
            yield
    finally:
        if line is not None:
            line.update({"text/plain": ""}, raw=True)

"""Whether the server can take work: what a hub or Kubernetes asks, and drains."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable

_log = logging.getLogger(__name__)

#: for each part; Jupyter's kernels come after them
STEP_S = 2.0
#: what was handed in is written meanwhile
ARCHIVE_S = 3.0
#: since the server was asked to stop
_LATEST_S = 9.0


class Readiness:
    """What the server's parts say of themselves."""

    def __init__(self) -> None:
        self._parts: dict[str, Callable[[], str]] = {}
        #: set once, when the server is asked to stop
        self.is_draining = False

    def add(self, name: str, problem: Callable[[], str]) -> None:
        """Have a part asked, without which the server still takes work.

        Args:
            name: of the part.
            problem: what is wrong with it, in words; empty while nothing is.
        """
        self._parts[name] = problem

    @property
    def reason(self) -> str:
        """Why the server takes no work, in words; empty while it does."""
        return "The server is stopping." if self.is_draining else ""

    def problems(self) -> dict[str, str]:
        """What is wrong though the server takes work, by part."""
        problems = {name: problem() for name, problem in self._parts.items()}
        return {name: words for name, words in problems.items() if words}


async def bounded_stop(
    part: str, stopping: Awaitable[object], most_s: float = STEP_S
) -> None:
    """Stop a part; one that hangs or fails holds no other up."""
    try:
        await asyncio.wait_for(stopping, most_s)
    except asyncio.TimeoutError:
        _log.error("Stopping the %s takes too long; it is given up.", part)
    except Exception:  # noqa: BLE001 - the others are to stop all the same
        _log.exception("Stopping the %s failed.", part)


def end_at_the_latest() -> None:
    """End the process by force if a hanging driver or disk keeps it from ending."""

    def end() -> None:
        time.sleep(_LATEST_S)
        _log.error("Something hangs; the server ends without it.")
        # the exit of the interpreter waits for every thread
        os._exit(0)

    threading.Thread(target=end, name="warpbook-end", daemon=True).start()

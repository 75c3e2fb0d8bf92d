"""Ends waiting for a process by what it does with its time, not by the clock alone.

The kernel bounds the CPU time that a process takes. While it sleeps it takes none, so
it is charged for that here. While it is ready and gets no core, the machine is busy:
nothing is held against it, and a job that is never done is not judged.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from warpbook_labs.errors import TooBusy

_LOOK_S = 0.1
#: what takes a few seconds of a core alone gets them within this on any machine
_MOST_S = 600.0


def ran_and_delayed_s(pid: int) -> tuple[float, float]:
    """Tell how long a process had a core, and waited for one; 0 where nobody tells."""
    try:
        ran_ns, delayed_ns, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
    except OSError:
        return 0.0, 0.0
    return int(ran_ns) / 1e9, int(delayed_ns) / 1e9


class Watchdog:
    """What one process may sleep, in all waits for it together."""

    def __init__(self, pid: int, asleep_s: float) -> None:
        """Charge nothing yet.

        Args:
            asleep_s: what it may sleep, in seconds.
        """
        self._pid, self._left_s, self._ready_s = pid, asleep_s, 0.0

    def wait(self, has_ended: Callable[[float], object]) -> bool:
        """Wait for something that a process does; tell whether it slept too long.

        Args:
            has_ended: waits for some seconds, and tells whether it is done.

        Raises:
            TooBusy: it is not done after long, and has not slept.
        """
        end_s = time.monotonic() + _MOST_S
        while not has_ended(_LOOK_S):
            self._charge()
            if self._left_s <= 0:
                return True
            if time.monotonic() > end_s:
                raise TooBusy(
                    "This machine is too busy: the source was not given the CPU time "
                    f"that it needs within {_MOST_S:g} s, so it is not graded."
                )
        return False

    def _charge(self) -> None:
        # one that has just ended is not there
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{self._pid}/stat").read_text()
            ready_s = sum(ran_and_delayed_s(self._pid))
            # where the first thread has ended, the others are not heard of
            if stat.rpartition(")")[2].split()[0] in ("S", "T", "Z"):
                # a look that comes late, since we had no core, charges no more
                self._left_s -= max(0.0, _LOOK_S - (ready_s - self._ready_s))
            self._ready_s = ready_s

"""Processes of our own: waited for, ended whatever they do, and folders they left.

The kernel bounds the CPU time that a process takes. While it sleeps it takes none, so
it is charged for that here. While it is ready and gets no core, the machine is busy:
nothing is held against it, and a job that is never done is not judged.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from warpbook_labs.errors import TooBusy


def waited_for(
    child: subprocess.Popen[bytes],
    given: bytes,
    is_late: Callable[[Callable[[float], bool]], bool],
    *readers: Callable[[], None],
) -> int | None:
    """Give it what it reads on stdin, and wait for its end; after that it has ended.

    It raises what `is_late` does.

    Args:
        child: with pipes, and the first of a session of its own.
        is_late: waits by what waits for some seconds, and tells whether to kill it.
        readers: each reads one of its pipes to the end, or it might wait for us.

    Returns:
        its exit code; None if it was killed.
    """
    # waiting with an end looks every 50 ms only, so it is a thread that waits
    end = threading.Thread(target=child.wait)
    pumps = [threading.Thread(target=_feed, args=(child.stdin, given))]
    pumps += [threading.Thread(target=read) for read in readers]
    for thread in (end, *pumps):
        thread.start()

    def has_ended(seconds: float) -> bool:
        end.join(seconds)
        return not end.is_alive()

    try:
        return None if is_late(has_ended) else child.returncode
    finally:
        kill(child)
        for thread in (end, *pumps):
            thread.join()


def kill(child: subprocess.Popen[bytes]) -> None:
    """End it, and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _feed(pipe: IO[bytes] | None, given: bytes) -> None:
    # a child that ends before it has read all says why in another way
    with contextlib.suppress(BrokenPipeError), pipe or contextlib.nullcontext():
        if pipe is not None:
            pipe.write(given)


_LOOK_S = 0.1
#: what takes a few seconds of a core alone gets them within this on any machine
_MOST_S = 600.0


def ran_and_delayed_s(pid: int) -> tuple[float, float]:
    """Read how long a process ran, and waited for a core; 0 without `schedstat`."""
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


#: in which jails and players of host code begin
JAIL_PREFIX, PLAYER_PREFIX = "warpbook-jail-", "warpbook-host-"
#: between its making and its lock a folder is young, whatever the clock says
_YOUNG_S = 60.0


class OwnFolder(tempfile.TemporaryDirectory[str]):
    """A folder that is a leftover from the moment its process ends."""

    def __init__(self, prefix: str) -> None:
        super().__init__(prefix=prefix, ignore_cleanup_errors=True)
        self._lock = os.open(self.name, os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_SH)

    def cleanup(self) -> None:
        os.close(self._lock)
        super().cleanup()


def remove_leftovers() -> int:
    """Remove our own folders whose processes have ended; give how many."""
    count = 0
    for prefix in (JAIL_PREFIX, PLAYER_PREFIX):
        for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
            # it may be another's, or go meanwhile
            with contextlib.suppress(OSError):
                state = folder.lstat()
                if folder.is_symlink() or state.st_uid != os.getuid():
                    continue
                if abs(time.time() - state.st_mtime) > _YOUNG_S and not _in_use(folder):
                    shutil.rmtree(folder)
                    count += 1
    return count


def _in_use(folder: Path) -> bool:
    """Whether a process has it locked.

    Raises:
        OSError: it can't be opened.
    """
    lock = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False

"""Processes of our own: given one thing, waited for, ended whatever they do."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import IO


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

"""Limits to the time and memory that a run of an edited cell takes."""

from __future__ import annotations

import contextlib
import resource
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

import psutil
import torch

from warpbook.kernel.trying.refusals import Refused
from warpbook.kernel.trying.saved_tensors import free_host_bytes
from warpbook_monitors import units

#: of the host's memory that is free, the most that a run takes; but so much it may
_MOST_SHARE, _LEAST_BYTES = 0.9, 1 << 30
#: what swallows the end of the time meets it again
_AGAIN_S = 1.0
_SOON_S = 1e-6


class _OverError(BaseException):
    """The time is over; no `except Exception` of the cell's own ends it."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End what runs within by an exception, as an interrupt does.

    A call that does not come back to Python is not ended, and what runs in another
    thread than the main one has no limit of time.

    Args:
        seconds: the most that it takes.

    Raises:
        Refused: it takes longer, or more memory than is free.
    """
    try:
        with _memory(), _time(seconds):
            yield
    except _OverError:
        longest = units.duration(seconds * 1e3)
        raise Refused(f"with the edit a run takes more than {longest}.") from None
    except (MemoryError, RuntimeError) as problem:
        if _is_of_memory(problem):
            words = "with the edit the cell needs more memory than is free."
            raise Refused(words) from None
        raise


def _is_of_memory(problem: Exception) -> bool:
    kinds = (MemoryError, torch.OutOfMemoryError)
    return isinstance(problem, kinds) or "can't allocate memory" in str(problem)


@contextlib.contextmanager
def _time(seconds: float) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    running = [True]

    def ring(number: int, frame: FrameType | None) -> None:
        if running:
            raise _OverError

    left_s, every_s = signal.getitimer(signal.ITIMER_REAL)
    before, began_s = signal.signal(signal.SIGALRM, ring), time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN_S)
        yield
    finally:
        running.clear()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before or signal.SIG_DFL)
        if left_s:
            # a timer of the person's own goes on, or is late
            late_s = left_s - (time.monotonic() - began_s)
            signal.setitimer(signal.ITIMER_REAL, max(late_s, _SOON_S), every_s)


@contextlib.contextmanager
def _memory() -> Iterator[None]:
    """Have allocations fail before the system ends the kernel."""
    used_bytes = getattr(psutil.Process().memory_info(), "data", None)
    if used_bytes is None:
        # known on Linux only
        yield
        return
    before, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = used_bytes + max(int(_MOST_SHARE * free_host_bytes()), _LEAST_BYTES)
    limits = [one for one in (before, most) if one != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([wanted, *limits]), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, most))

"""Lets CUPTI go when a recording ends, so that the kernel launches as fast as before.

With CUPTI attached launches stay 25-30 % slower. Kineto lets it go if the environment
says so when a recording ends: a thread of its own then waits for the process's next
CUDA call, and ends CUPTI in it. Said for longer than that, Kineto does the same at the
start of a recording that finds CUPTI attached, which then sees nothing of the GPU: one
of the user's own right after another was such.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch

_ASKED = "TEARDOWN_CUPTI"
#: before it, letting go can crash replays of CUDA graphs
_FIRST_SAFE_CUDA = (12, 6)
#: Kineto's thread took 2 to 3 ms on an H200
_LONGEST_S = 0.1
_PAUSE_S = 0.0003


@contextmanager
def let_go() -> Iterator[None]:
    """Have CUPTI let go by a recording that ends within; it is gone afterwards.

    An environment that says the one or the other itself is left alone.
    """
    if not torch.cuda.is_initialized() or not _is_safe() or _ASKED in os.environ:
        yield
        return
    before = _threads()
    os.environ[_ASKED] = "1"
    try:
        yield
        kinetos = _threads() - before
        end_s = time.monotonic() + _LONGEST_S
        while kinetos & _threads() and time.monotonic() < end_s:
            with suppress(RuntimeError):
                torch.cuda.synchronize()
            time.sleep(_PAUSE_S)
    finally:
        os.environ.pop(_ASKED, None)


def _is_safe() -> bool:
    version = torch.version.cuda
    if version is None:
        return False
    major, minor = version.split(".")[:2]
    return (int(major), int(minor)) >= _FIRST_SAFE_CUDA


def _threads() -> set[str]:
    """Give the process's threads by number; none where the system does not tell."""
    try:
        return set(os.listdir("/proc/self/task"))
    except OSError:
        return set()

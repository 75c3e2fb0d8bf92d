"""Runs something on the main thread in the middle of what it does.

Python does so itself for signal handlers; nobody's handler is replaced for it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

_waiting: list[Callable[[], None]] = []


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
def _run(_: int | None) -> int:
    while _waiting:
        _waiting.pop(0)()
    return 0


def call_on_main_thread(callback: Callable[[], None]) -> None:
    """Have the main thread call this between two of its bytecodes; returns at once."""
    _waiting.append(callback)
    ctypes.pythonapi.Py_AddPendingCall(_run, None)

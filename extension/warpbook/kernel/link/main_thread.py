"""Runs something on the main thread in the middle of what it does.

Python does so itself for signal handlers; nobody's handler is replaced for it.
"""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable

#: so long after an interrupt that came at a bad time it is sent again
_AGAIN_S = 0.05

_waiting: list[Callable[[], None]] = []


def _run(_: int | None) -> int:
    try:
        while _waiting:
            _waiting.pop(0)()
    except KeyboardInterrupt:
        # it can't leave a call by C, and is for the code that runs
        threading.Timer(_AGAIN_S, _interrupt).start()
    return 0


def _interrupt() -> None:
    """Interrupt the main thread, also while it sleeps."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


_run_by_c = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_run)


def call_on_main_thread(callback: Callable[[], None]) -> None:
    """Have the main thread call this between two of its bytecodes; returns at once.

    What waits already is not called twice.
    """
    if callback not in _waiting:
        _waiting.append(callback)
    ctypes.pythonapi.Py_AddPendingCall(_run_by_c, None)

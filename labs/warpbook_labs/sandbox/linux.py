"""What Linux lets a process give up, for good, without being root."""

from __future__ import annotations

import ctypes
import signal
import struct

NEW_MOUNTS, NEW_IPC, NEW_USER = 0x20000, 0x8000000, 0x10000000
NEW_NETWORK, NEW_HOST_NAME = 0x40000000, 0x4000000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_CAPABILITY_VERSION = 0x20080522

libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Be killed when the thread that started this process ends.

    It holds until the process becomes another user.
    """
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def gain_no_rights() -> None:
    """Gain no right by any program that is started."""
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def hide_memory() -> None:
    """Let no process of the same user read this one's memory."""
    libc.prctl(_PR_SET_DUMPABLE, 0)


def leave(namespaces: int) -> bool:
    """Have namespaces of its own; tell whether the system allows that."""
    return bool(libc.unshare(namespaces) == 0)


def drop_capabilities() -> None:
    """Have no right beyond those of an ordinary user."""
    libc.capset(struct.pack("<Ii", _CAPABILITY_VERSION, 0), bytes(24))

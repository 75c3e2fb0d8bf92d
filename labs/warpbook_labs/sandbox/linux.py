"""What Linux lets a process give up, for good, without being root."""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import struct
from collections.abc import Iterable
from pathlib import Path

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


#: numbers of the calls, the same on every architecture that has them
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_ASK_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_REMOVE_FILE, _MAKE_FILE = 1 << 5, 1 << 8
_FIRST_RIGHTS, _REFER, _TRUNCATE = (1 << 13) - 1, 1 << 13, 1 << 14
#: ABI 6: no signal to whoever is outside. Its other bit would refuse the abstract
#: socket by which CUDA opens another process's memory; no socket is left after that
_SCOPED = 0b10

#: of folders and files
READING = _READ_FILE | _READ_DIR | _EXECUTE
USING = _READ_FILE | _WRITE_FILE
#: files that are there may be written, and cut
WRITING = _READ_FILE | _READ_DIR | _WRITE_FILE | _TRUNCATE
#: files may be made and taken away, too, and nothing else: no link, no device
MAKING = WRITING | _REMOVE_FILE | _MAKE_FILE


def allow_files(allowed: Iterable[tuple[Path, int]]) -> bool:
    """Have the kernel refuse this thread, and all it starts, other files for good.

    No new privileges must have been said before.

    Args:
        allowed: files, and folders with all that is in them, with rights as above.

    Returns:
        Whether this system can do that.
    """
    version = libc.syscall(_CREATE, None, 0, _ASK_VERSION)
    if version < 1:
        return False
    known = _FIRST_RIGHTS | (_REFER if version >= 2 else 0)
    known |= _TRUNCATE if version >= 3 else 0
    rules = struct.pack("<QQQ", known, 0, _SCOPED)
    ruleset = libc.syscall(_CREATE, rules, 24 if version >= 6 else 8, 0)
    if ruleset < 0:
        return False
    try:
        for path, rights in allowed:
            _add(ruleset, path, rights & known)
        return bool(libc.syscall(_RESTRICT, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _add(ruleset: int, path: Path, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not on this machine
    try:
        if not stat.S_ISDIR(os.fstat(opened).st_mode):
            rights &= _READ_FILE | _WRITE_FILE | _EXECUTE | _TRUNCATE
        rule = struct.pack("<Qi", rights, opened)
        libc.syscall(_ADD, ruleset, _PATH_BENEATH, rule, 0)
    finally:
        os.close(opened)

"""Filters of system calls, in the kernel's small language (BPF).

What a filter refuses fails with EPERM, as libraries that probe for something expect; a
call of another architecture ends the process.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from collections.abc import Callable
from typing import NamedTuple

#: by machine: how the kernel names it, and the number of seccomp()
_MACHINES = {"x86_64": (0xC000003E, 317), "aarch64": (0xC00000B7, 277)}
#: the number of a call that a machine does not have
NO_CALL = -1
LOAD_WORD, JUMP_EQUAL, JUMP_LEAST, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, REFUSE, _KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000
#: as if the system were older
UNKNOWN = 0x00050000 | errno.ENOSYS
#: where the kernel puts what the filter is asked about
_NUMBER_AT, _MACHINE_AT = 0, 4
_SET_MODE_FILTER, _ALL_THREADS = 1, 1


class Test(NamedTuple):
    """What one half of an argument must be like."""

    argument: int
    jump: int
    value: int
    wanted: bool = True
    is_upper_half: bool = False

    @property
    def at(self) -> int:
        """Tell where the kernel puts it."""
        return 16 + 8 * self.argument + 4 * self.is_upper_half


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def filter_calls(rules: Callable[[int], bytes]) -> bool:
    """Have the kernel ask a filter about each system call of this process, for good.

    Args:
        rules: gives the instructions for a machine, by the number of its column, which
            begin when the number of the call is loaded and always return.

    Returns:
        Whether this system can do that.
    """
    machine = platform.machine()
    if machine not in _MACHINES or struct.calcsize("P") != 8:
        return False
    name, number = _MACHINES[machine]
    head = [
        instruction(LOAD_WORD, _MACHINE_AT),
        instruction(JUMP_EQUAL, name, 1, 0),
        instruction(RETURN, _KILL),
        instruction(LOAD_WORD, _NUMBER_AT),
    ]
    code = b"".join(head) + rules(list(_MACHINES).index(machine))
    program = _Program(len(code) // 8, code)
    libc = ctypes.CDLL(None, use_errno=True)
    # the threads that a library has started are held to it, too
    answer = libc.syscall(number, _SET_MODE_FILTER, _ALL_THREADS, ctypes.byref(program))
    return bool(answer == 0)


def instruction(code: int, k: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Write one instruction of a filter; its jumps go over so many others."""
    return struct.pack("=HBBI", code, if_true, if_false, k)

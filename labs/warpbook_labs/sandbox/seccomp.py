"""Which system calls a jailed process may make: few, and none that opens anything.

All that is not allowed fails with EPERM, as libraries that probe for something expect;
a call of another architecture ends the process.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from collections.abc import Callable
from typing import NamedTuple

_PROT_EXEC, _AT_EMPTY_PATH = 4, 0x1000
#: by machine: how the kernel names it, and the number of seccomp()
_MACHINES = {"x86_64": (0xC000003E, 317), "aarch64": (0xC00000B7, 277)}
#: with any arguments: numbers on x86-64 and on aarch64
_ALLOWED = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "nanosleep": (35, 101),
    "getpid": (39, 172),
    "exit": (60, 93),
    "gettimeofday": (96, 169),
    "getrusage": (98, 165),
    "sysinfo": (99, 179),
    "sigaltstack": (131, 132),
    "gettid": (186, 178),
    "futex": (202, 98),
    "sched_getaffinity": (204, 123),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "getrandom": (318, 278),
}
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


_NEVER_EXECUTABLE = Test(2, JUMP_ANY_BIT, _PROT_EXEC, wanted=False)
#: with some arguments only
_ALLOWED_IF: dict[str, tuple[tuple[int, int], tuple[Test, ...]]] = {
    "mmap": ((9, 222), (_NEVER_EXECUTABLE,)),
    "mprotect": ((10, 226), (_NEVER_EXECUTABLE,)),
    # of what is open, not of a path
    "newfstatat": ((262, 79), (Test(3, JUMP_ANY_BIT, _AT_EMPTY_PATH),)),
    # to read a limit, as the compiler does, not to set one
    "prlimit64": (
        (302, 261),
        (Test(2, JUMP_EQUAL, 0), Test(2, JUMP_EQUAL, 0, is_upper_half=True)),
    ),
}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def refuse_calls() -> bool:
    """Have the kernel refuse this process all other calls, for good.

    No new privileges must have been said before.

    Returns:
        Whether this system can do that.
    """
    return filter_calls(_rules)


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


def _rules(column: int) -> bytes:
    """Write the jail's in the kernel's small language (BPF)."""
    allow, refuse = instruction(RETURN, ALLOW), instruction(RETURN, REFUSE)
    code = []
    for numbers in _ALLOWED.values():
        code += [instruction(JUMP_EQUAL, numbers[column], 0, 1), allow]
    for numbers, tests in _ALLOWED_IF.values():
        code.append(instruction(JUMP_EQUAL, numbers[column], 0, 2 * len(tests) + 2))
        for number, test in enumerate(tests, 1):
            other = 2 * (len(tests) - number) + 1
            code += [
                instruction(LOAD_WORD, test.at),
                instruction(
                    test.jump,
                    test.value,
                    0 if test.wanted else other,
                    other if test.wanted else 0,
                ),
            ]
        code += [allow, refuse]
    return b"".join([*code, refuse])


def instruction(code: int, k: int, if_true: int = 0, if_false: int = 0) -> bytes:
    """Write one instruction of a filter; its jumps go over so many others."""
    return struct.pack("=HBBI", code, if_true, if_false, k)

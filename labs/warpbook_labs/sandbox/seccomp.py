"""Filters of system calls, in the kernel's small language (BPF).

What a filter refuses fails with EPERM, as libraries that probe for something expect; a
call of another architecture ends the process.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Callable
from typing import NamedTuple

from warpbook_labs.sandbox.policies import (
    ALLOWED,
    ALLOWED_IF,
    BY_NUMBER,
    BY_NUMBER_OR_0,
    REFUSED,
)

_CLONE_THREAD, _PR_SET_PDEATHSIG = 0x10000, 1
#: numbers from here on are those of another way to call (x32)
_OTHER_NUMBERS = 0x40000000
_CLONE, _CLONE3, _PRCTL = (56, 220), (435, 435), (157, 167)


def allow_few() -> bool:
    """Have the kernel refuse this process all calls but those of the jail, for good.

    No new privileges must have been said before.

    Returns:
        Whether this system can do that.
    """
    return filter_calls(_allowed)


def refuse_harm() -> bool:
    """Have the kernel refuse this process what is listed here, in all its threads.

    Returns:
        Whether this system can do that.
    """
    return filter_calls(_not_refused)


def _allowed(column: int) -> bytes:
    allow, refuse = instruction(RETURN, ALLOW), instruction(RETURN, REFUSE)
    code = []
    for numbers in ALLOWED.values():
        code += [instruction(JUMP_EQUAL, numbers[column], 0, 1), allow]
    for numbers, tests in ALLOWED_IF.values():
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


def _not_refused(column: int) -> bytes:
    """Write the filter of a process that needs the GPU."""
    refuse, allow = instruction(RETURN, REFUSE), instruction(RETURN, ALLOW)
    number = instruction(LOAD_WORD, 0)
    code = [instruction(JUMP_LEAST, _OTHER_NUMBERS, 0, 1), refuse]
    for numbers in REFUSED.values():
        if numbers[column] != NO_CALL:
            code += [instruction(JUMP_EQUAL, numbers[column], 0, 1), refuse]
    # glibc then starts threads by clone(), whose flags can be looked at
    unknown = instruction(RETURN, UNKNOWN)
    code += [instruction(JUMP_EQUAL, _CLONE3[column], 0, 1), unknown]
    code += [
        instruction(JUMP_EQUAL, _CLONE[column], 0, 4),
        instruction(LOAD_WORD, Test(0, JUMP_ANY_BIT, 0).at),
        instruction(JUMP_ANY_BIT, _CLONE_THREAD, 1, 0),
        refuse,
        number,
        # or it would outlive the process that watches it
        instruction(JUMP_EQUAL, _PRCTL[column], 0, 4),
        instruction(LOAD_WORD, Test(0, JUMP_EQUAL, 0).at),
        instruction(JUMP_EQUAL, _PR_SET_PDEATHSIG, 0, 1),
        refuse,
        number,
    ]
    for numbers in [*BY_NUMBER.values(), *BY_NUMBER_OR_0.values()]:
        is_0 = numbers in BY_NUMBER_OR_0.values()
        code += [
            instruction(JUMP_EQUAL, numbers[column], 0, 5),
            instruction(LOAD_WORD, Test(0, JUMP_EQUAL, 0).at),
            instruction(JUMP_EQUAL, os.getpid(), 2, 0),
            instruction(JUMP_EQUAL, 0 if is_0 else os.getpid(), 1, 0),
            refuse,
            allow,
        ]
    return b"".join([*code, allow])


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

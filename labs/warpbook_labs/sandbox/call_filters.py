"""The filters of both policies: few calls are allowed, or many are refused."""

from __future__ import annotations

import os

from warpbook_labs.sandbox.policies import (
    ALLOWED,
    ALLOWED_IF,
    BY_NUMBER,
    BY_NUMBER_OR_0,
    REFUSED,
)
from warpbook_labs.sandbox.seccomp import (
    ALLOW,
    JUMP_ANY_BIT,
    JUMP_EQUAL,
    JUMP_LEAST,
    LOAD_WORD,
    NO_CALL,
    REFUSE,
    RETURN,
    UNKNOWN,
    Test,
    filter_calls,
    instruction,
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
    """Write the filter of the jail."""
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

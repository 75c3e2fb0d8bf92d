"""Which system calls a learner's process on the GPU may not make.

CUDA's driver needs too many to list those that are allowed, as the jail does; so all
that reaches another process, starts one, or opens a connection is refused with EPERM.
"""

from __future__ import annotations

import os

from warpbook_labs.sandbox.seccomp import (
    ALLOW,
    JUMP_ANY_BIT,
    JUMP_EQUAL,
    JUMP_LEAST,
    LOAD_WORD,
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
#: there is none on this machine
_NONE = -1
#: numbers on x86-64 and on aarch64
_REFUSED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "kcmp": (312, 272),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pidfd_getfd": (438, 438),
    "fork": (57, _NONE),
    "vfork": (58, _NONE),
    "execve": (59, 221),
    "execveat": (322, 281),
    "setsid": (112, 157),
    "setpgid": (109, 154),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "bind": (49, 200),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "setns": (308, 268),
    "unshare": (272, 97),
    "open_by_handle_at": (304, 265),
    "personality": (135, 92),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "acct": (163, 89),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "iopl": (172, _NONE),
    "ioperm": (173, _NONE),
}
#: which process is the first argument; only its own, by its number
_BY_NUMBER = {"kill": (62, 129), "tgkill": (234, 131)}
#: or by 0, which of those above would mean its whole group
_BY_NUMBER_OR_0 = {
    "prlimit64": (302, 261),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
}
_CLONE, _CLONE3, _PRCTL = (56, 220), (435, 435), (157, 167)


def refuse_harm() -> bool:
    """Have the kernel refuse this process what is listed here, in all its threads.

    Returns:
        Whether this system can do that.
    """
    return filter_calls(_rules)


def _rules(column: int) -> bytes:
    refuse, allow = instruction(RETURN, REFUSE), instruction(RETURN, ALLOW)
    number = instruction(LOAD_WORD, 0)
    code = [instruction(JUMP_LEAST, _OTHER_NUMBERS, 0, 1), refuse]
    for numbers in _REFUSED.values():
        if numbers[column] != _NONE:
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
    for numbers in [*_BY_NUMBER.values(), *_BY_NUMBER_OR_0.values()]:
        is_0 = numbers in _BY_NUMBER_OR_0.values()
        code += [
            instruction(JUMP_EQUAL, numbers[column], 0, 5),
            instruction(LOAD_WORD, Test(0, JUMP_EQUAL, 0).at),
            instruction(JUMP_EQUAL, os.getpid(), 2, 0),
            instruction(JUMP_EQUAL, 0 if is_0 else os.getpid(), 1, 0),
            refuse,
            allow,
        ]
    return b"".join([*code, allow])

"""What the two kinds of processes with a learner's code may do, as data.

A *jailed* process computes: it sees an empty root, and may make few system calls. A
process that *needs the GPU* has CUDA's driver in it, which needs too many calls to list
those that are allowed; so all that reaches another process, starts one, or opens a
connection is listed and refused.
"""

from __future__ import annotations

import resource

from warpbook_labs.sandbox.seccomp import JUMP_ANY_BIT, JUMP_EQUAL, NO_CALL, Test

_PROT_EXEC, _AT_EMPTY_PATH = 4, 0x1000

#: what a jailed process may call with any arguments: numbers on x86-64 and on aarch64
ALLOWED = {
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
_NEVER_EXECUTABLE = Test(2, JUMP_ANY_BIT, _PROT_EXEC, wanted=False)
#: what it may call with some arguments only
ALLOWED_IF: dict[str, tuple[tuple[int, int], tuple[Test, ...]]] = {
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
#: what a process that needs the GPU may not call: numbers on x86-64 and on aarch64
REFUSED = {
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
    "fork": (57, NO_CALL),
    "vfork": (58, NO_CALL),
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
    "iopl": (172, NO_CALL),
    "ioperm": (173, NO_CALL),
}
#: which process is the first argument; only its own, by its number
BY_NUMBER = {"kill": (62, 129), "tgkill": (234, 131)}
#: or by 0, which of those above would mean its whole group
BY_NUMBER_OR_0 = {
    "prlimit64": (302, 261),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
}
#: what it may read besides Python: libraries of the system and of CUDA, and what
#: they ask; never a folder in which people put other things
READABLE = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/local/lib64",
    "/usr/local/cuda*",
    "/usr/local/nvidia",
    "/usr/share/nvidia",
    "/usr/share/zoneinfo",
    "/opt/cuda*",
    "/opt/nvidia",
    "/run/opengl-driver",
    "/nix/store",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/alternatives",
    "/sys",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/devices",
    "/proc/modules",
    "/proc/filesystems",
    "/proc/driver",
    "/proc/sys",
    "/dev/urandom",
    "/dev/random",
)
#: below where Python is installed
PYTHON_READABLE = ("lib", "lib64", "pyvenv.cfg")
#: and where `sysconfig` says that modules are
PYTHON_PATHS = ("stdlib", "platstdlib", "purelib", "platlib")
DEVICES = ("/dev/null", "/dev/zero", "/dev/nvidia*", "/dev/nvidia-caps/*", "/dev/dxg")
#: of a jailed process, beside its limits of time and memory
JAIL_BOUNDS = {
    resource.RLIMIT_FSIZE: 0,
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_NOFILE: 16,
    resource.RLIMIT_NPROC: 0,
}
#: of a process that needs the GPU; what is shared is mapped, and not written as a file
GPU_BOUNDS = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_NOFILE: 4096,
    resource.RLIMIT_FSIZE: 4 << 20,
}
#: of one that writes a trace
TRACE_BYTES = 256 << 20

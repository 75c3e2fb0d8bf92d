"""The filter of system calls, asked with real ones."""

from __future__ import annotations

import errno
import json
import os
import platform
import signal
import subprocess
import sys

import pytest

from tests.programs import ROOT

#: numbers on x86-64 and aarch64 (None: it has no such call), and arguments with which
#: the call would do something, or fail in another way, if it were let through
REFUSED = {
    "open": ((2, None), "b'/dev/null', 0"),
    "openat": ((257, 56), "-100, b'/dev/null', 0"),
    "openat2": ((437, 437), "-100, b'/dev/null', bytes(24), 24"),
    "creat": ((85, None), "b'/tmp/warpbook-made', 0o600"),
    "unlinkat": ((263, 35), "-100, b'/nothing', 0"),
    "newfstatat of a path": ((262, 79), "-100, b'/dev/null', room, 0"),
    "statx": ((332, 291), "-100, b'/dev/null', 0, 0x7ff, room"),
    "readlinkat": ((267, 78), "-100, b'/proc/self/exe', room, 99"),
    "getdents64": ((217, 61), "0, room, 99"),
    "memfd_create": ((319, 279), "b'x', 0"),
    "pipe2": ((293, 59), "room, 0"),
    "dup": ((32, 23), "1"),
    "fcntl": ((72, 25), "1, 3"),
    "ioctl": ((16, 29), "0, 0x5401, room"),
    "socket of the network": ((41, 198), "2, 1, 0"),
    "socket of this machine": ((41, 198), "1, 1, 0"),
    "socketpair": ((53, 199), "1, 1, 0, room"),
    "fork": ((57, None), ""),
    "vfork": ((58, None), ""),
    "clone": ((56, 220), "17, 0, 0, 0, 0"),
    "clone3": ((435, 435), "room, 64"),
    "execve": ((59, 221), "b'/nothing', 0, 0"),
    "execveat": ((322, 281), "-100, b'/nothing', 0, 0, 0"),
    "kill": ((62, 129), "PARENT, 0"),
    "tgkill": ((234, 131), "PARENT, PARENT, 0"),
    "pidfd_open": ((434, 434), "PARENT, 0"),
    "ptrace": ((101, 117), "16, PARENT, 0, 0"),
    "process_vm_readv": ((310, 270), "PARENT, 0, 0, 0, 0, 0"),
    "process_vm_writev": ((311, 271), "PARENT, 0, 0, 0, 0, 0"),
    "bpf": ((321, 280), "99, 0, 0"),
    "perf_event_open": ((298, 241), "0, 0, -1, -1, 0"),
    "userfaultfd": ((323, 282), "1"),
    "io_uring_setup": ((425, 425), "1, room"),
    "keyctl": ((250, 219), "0, -3, 0"),
    "unshare": ((272, 97), "0"),
    "setns": ((308, 268), "0, 0"),
    "mount": ((165, 40), "0, 0, 0, 0, 0"),
    "chroot": ((161, 51), "b'/'"),
    "setuid": ((105, 146), "os.getuid()"),
    "prctl": ((157, 167), "3, 0, 0, 0, 0"),
    "seccomp": ((317, 277), "2, 0, room"),
    "personality": ((135, 92), "0xffffffff"),
    "a new limit": ((302, 261), "0, 7, bytes(16), 0"),
    "mmap of code": ((9, 222), "0, 4096, 5, 34, -1, 0"),
    "mprotect of code": ((10, 226), "PAGE, 4096, 5"),
    "pkey_mprotect of code": ((329, 288), "PAGE, 4096, 5, -1"),
    "shmget": ((29, 194), "0, 4096, 0o1600"),
    "mq_open": ((240, 180), "b'/x', 0o100, 0o600, 0"),
    "kexec_load": ((246, 104), "0, 0, 0, 0"),
    "init_module": ((175, 105), "room, 9, b''"),
    "reboot": ((169, 142), "0, 0, 0, 0"),
    "no call at all": ((6000, 6000), ""),
    "x32's write": ((0x40000001, None), "1, b'', 0"),
}
ALLOWED = {
    "getpid": ((39, 172), ""),
    "getrandom": ((318, 278), "room, 8, 0"),
    "mmap of data": ((9, 222), "0, 4096, 3, 34, -1, 0"),
    "mprotect of data": ((10, 226), "PAGE, 4096, 3"),
    "fstat": ((5, 80), "0, room"),
    "newfstatat of what is open": ((262, 79), "0, b'', room, 0x1000"),
    "a limit that is": ((302, 261), "0, 7, 0, room"),
    "write nothing": ((1, 64), "1, b'', 0"),
}
SCRIPT = """
import ctypes, json, os, sys
from warpbook_labs.sandbox.call_filters import allow_few
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.mmap.restype = ctypes.c_void_p
room, PARENT = ctypes.create_string_buffer(4096), os.getppid()
PAGE = ctypes.c_void_p(libc.mmap(None, 4096, 3, 34, -1, 0))
def as_c(each):
    return ctypes.c_long(each) if isinstance(each, int) else each
libc.prctl(38, 1, 0, 0, 0)
assert allow_few()
told = {}
for name, number, arguments in json.loads(sys.argv[1]):
    given = [as_c(each) for each in eval(f"[{arguments}]")]
    ctypes.set_errno(0)
    done = libc.syscall(ctypes.c_long(number), *given)
    told[name] = ctypes.get_errno() if done == -1 else 0
sys.stdout.write(json.dumps(told))
sys.stdout.flush()
os._exit(0)
"""


def errors_of(calls: dict[str, tuple[tuple[int | None, int | None], str]]):
    """Make system calls where they are filtered; give the error of each."""
    column = ("x86_64", "aarch64").index(platform.machine())
    numbers = [
        (name, both[column], arguments)
        for name, (both, arguments) in calls.items()
        if both[column] is not None
    ]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(numbers)],
        env={"PYTHONPATH": str(ROOT / "labs"), "PATH": os.environ["PATH"]},
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()
    errors: dict[str, int] = json.loads(done.stdout)
    assert len(errors) == len(numbers)
    return errors


def test_what_a_kernels_interpreter_never_needs_is_refused() -> None:
    errors = errors_of(REFUSED)
    assert {name for name, error in errors.items() if error != errno.EPERM} == set()


def test_what_it_needs_is_let_through() -> None:
    assert set(errors_of(ALLOWED).values()) == {0}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs int 0x80")
def test_calls_of_a_32_bit_program_end_the_process() -> None:
    # mov eax, 20 (getpid there); int 0x80; ret
    code = bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3])
    script = f"""
import ctypes, mmap
from warpbook_labs.sandbox.call_filters import allow_few
page = mmap.mmap(-1, 4096, prot=7)
page.write({code!r})
call = ctypes.CFUNCTYPE(ctypes.c_int)(
    ctypes.addressof(ctypes.c_char.from_buffer(page)))
call()
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
assert allow_few()
call()
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(ROOT / "labs"), "PATH": os.environ["PATH"]},
    )
    # SIGSYS, which no process of its own accord ends with
    assert done.returncode == -signal.SIGSYS

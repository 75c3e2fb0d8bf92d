"""Shuts a learner's process in that needs the GPU, so as well as that can be.

It keeps the files that Python, PyTorch and CUDA read, and the GPU's devices. Files are
closed before CUDA starts threads, since each thread is held by itself; the rest comes
when all is loaded and before the learner's source is.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import stat
import struct
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

from warpbook_labs.sandbox.gpu_calls import refuse_harm

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_CLONE_NEWIPC, _CLONE_NEWNET = 0x8000000, 0x40000000
_CAPABILITY_VERSION = 0x20080522
#: numbers of the calls, the same on every architecture that has them
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_ASK_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_FIRST_RIGHTS, _REFER, _TRUNCATE = (1 << 13) - 1, 1 << 13, 1 << 14
#: files may be made and taken away, and nothing else: no link, no device
_WRITING = _WRITE_FILE | _READ_FILE | _READ_DIR | 1 << 5 | 1 << 8
#: ABI 6: no signal to whoever is outside. Its other bit would refuse the abstract
#: socket by which CUDA opens another process's memory; no socket is left after that
_SCOPED = 0b10
#: besides Python: where libraries of the system and of CUDA are, and what they ask
_READABLE = (
    "/usr",
    "/lib",
    "/lib64",
    "/opt",
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
_DEVICES = ("/dev/null", "/dev/zero", "/dev/nvidia*", "/dev/nvidia-caps/*", "/dev/dxg")
_OPEN_FILES = 4096
#: of one file in its own folder
_FILE_BYTES, _TRACE_BYTES = 4 << 20, 256 << 20

_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Be killed when the process that watches ends, and never gain a right."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def hide() -> None:
    """Let no process of the same user read this one's memory."""
    _libc.prctl(_PR_SET_DUMPABLE, 0)


def close_files(hidden: Sequence[str], writable: str = "") -> bool:
    """Have the kernel refuse this thread, and all it starts, other files for good.

    Args:
        hidden: folders that stay closed, though they lie in one that is open.
        writable: a folder in which files may be made; "" for none.

    Returns:
        Whether this system can do that.
    """
    version = _libc.syscall(_LANDLOCK_CREATE, None, 0, _ASK_VERSION)
    if version < 1:
        return False
    files = _FIRST_RIGHTS | (_REFER if version >= 2 else 0)
    files |= _TRUNCATE if version >= 3 else 0
    rules = struct.pack("<QQQ", files, 0, _SCOPED)
    size = 24 if version >= 6 else 8
    ruleset = _libc.syscall(_LANDLOCK_CREATE, rules, size, 0)
    if ruleset < 0:
        return False
    try:
        for path in _readable([Path(each).resolve() for each in hidden]):
            _allow(ruleset, path, _READ_FILE | _READ_DIR | _EXECUTE)
        for path in _devices():
            _allow(ruleset, path, _READ_FILE | _WRITE_FILE)
        # CUDA names its threads there, and does not begin (error 304) where it can't
        own = Path("/proc/self").resolve()
        _allow(ruleset, own, _READ_FILE | _READ_DIR | _WRITE_FILE | files & _TRUNCATE)
        # a rule is of an inode: while it is open, the system makes no other for it
        os.open(own, os.O_PATH | os.O_CLOEXEC)
        if writable:
            _allow(ruleset, Path(writable), _WRITING | files & _TRUNCATE)
        return bool(_libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        held = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not on this machine
    try:
        if not stat.S_ISDIR(os.fstat(held).st_mode):
            rights &= _READ_FILE | _WRITE_FILE | _EXECUTE
        rule = struct.pack("<Qi", rights, held)
        _libc.syscall(_LANDLOCK_ADD, ruleset, _PATH_BENEATH, rule, 0)
    finally:
        os.close(held)


def _readable(hidden: list[Path]) -> Iterator[Path]:
    python = [sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), *sys.path]
    for name in dict.fromkeys([*_READABLE, *python]):
        path = Path(name)
        if name and path.exists() and path.resolve() != Path("/"):
            # /proc/self is another one for each process that follows the link
            yield from _but(path.resolve(), hidden)


def _but(path: Path, hidden: list[Path]) -> Iterator[Path]:
    """Give a folder, or where something hidden is in it, all else that it has."""
    if path in hidden:
        return
    inside = [each for each in hidden if each.is_relative_to(path)]
    if not inside:
        yield path
        return
    for each in path.iterdir():
        if not each.is_symlink():
            yield from _but(each, inside)


def _devices() -> Iterator[Path]:
    for pattern in _DEVICES:
        yield from Path("/").glob(pattern[1:])


def shut_in(is_traced: bool = False) -> tuple[bool, bool]:
    """Take from this process all that a learner's source does not need.

    Args:
        is_traced: it will write a trace, which may be long.

    Returns:
        Whether it has a network of its own, without any other end; and whether its
        system calls are filtered.
    """
    for which, bound in {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        # what is shared is mapped, and not written as a file is
        resource.RLIMIT_FSIZE: _TRACE_BYTES if is_traced else _FILE_BYTES,
    }.items():
        _, most = resource.getrlimit(which)
        allowed = bound if most == resource.RLIM_INFINITY else min(bound, most)
        resource.setrlimit(which, (allowed, allowed))
    # a thread that CUDA started keeps the old network; a learner's never does
    is_apart = _libc.unshare(_CLONE_NEWNET | _CLONE_NEWIPC) == 0
    header = struct.pack("<Ii", _CAPABILITY_VERSION, 0)
    _libc.capset(header, bytes(24))
    hide()
    return is_apart, refuse_harm()


def isolation_words(files: bool, network: bool, calls: bool) -> str:
    """Tell in words how well a learner's process on the GPU is shut in."""
    held = [
        *(["opens no file but Python's, PyTorch's and CUDA's"] if files else ()),
        *(["has no network"] if network or calls else ()),
        *(["starts and reaches no other process"] if calls else ()),
    ]
    lost = [
        *([] if files else ["can't close files to it (Landlock)"]),
        *([] if calls else ["can't filter its system calls (seccomp)"]),
    ]
    words = "in a process with bounded memory and time"
    if held:
        words += " that " + ", ".join(held)
    return words + ("; this system " + " and ".join(lost) if lost else "")

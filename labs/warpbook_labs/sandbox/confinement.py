"""Shuts the calling process in, for good; all that it needs is loaded before.

Linux only. Each step that the system refuses leads to a weaker tier, which the caller
is told, never to a failure: a laptop in a container is still allowed to learn.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
from pathlib import Path

from warpbook_labs.sandbox.limits import Limits, Tier
from warpbook_labs.sandbox.seccomp import refuse_calls

_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWUSER = 0x20000, 0x8000000, 0x10000000
_CLONE_NEWNET, _CLONE_NEWUTS = 0x40000000, 0x4000000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
#: numbers of the calls, the same on every architecture that has them
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT = 444, 446
#: every right on files that the first version of Landlock knows
_LANDLOCK_ALL_FILES = (1 << 13) - 1
_NOBODY = 65534
_OPEN_FILES = 16

_libc = ctypes.CDLL(None, use_errno=True)


def confine(limits: Limits, empty: Path) -> tuple[Tier, bool]:
    """Shut this process in.

    Args:
        limits: what it may use.
        empty: a folder with nothing in it, which becomes all that there is.

    Returns:
        How well that went, and whether its system calls are filtered.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # the first of statm is the size of all mappings, in pages
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    mapped_bytes = pages * resource.getpagesize()
    _libc.prctl(_PR_SET_DUMPABLE, 0)
    tier: Tier = "limits"
    if _enter_empty_root(empty):
        tier = "namespaces"
    # whoever becomes another user is no longer ended with its parent
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if _refuse_files() and tier == "limits":
        tier = "landlock"
    _bound(limits, mapped_bytes)
    # last, since the steps before need calls that it refuses
    return tier, refuse_calls()


def _enter_empty_root(empty: Path) -> bool:
    """Leave all files, the network and what other processes share."""
    apart = _CLONE_NEWNS | _CLONE_NEWNET | _CLONE_NEWIPC | _CLONE_NEWUTS
    root = os.geteuid() == 0
    if _libc.unshare(apart if root else apart | _CLONE_NEWUSER):
        return False
    try:
        os.chroot(empty)
    except OSError:
        return False
    os.chdir("/")
    if root:
        _become_nobody()
    return True


def _become_nobody() -> None:
    os.setgroups([])
    os.setresgid(_NOBODY, _NOBODY, _NOBODY)
    os.setresuid(_NOBODY, _NOBODY, _NOBODY)


def _refuse_files() -> bool:
    """Have the kernel refuse every file that is not open yet."""
    handled = struct.pack("<Q", _LANDLOCK_ALL_FILES)
    ruleset = _libc.syscall(_LANDLOCK_CREATE, handled, len(handled), 0)
    if ruleset < 0:
        return False
    try:
        return bool(_libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _bound(limits: Limits, mapped_bytes: int) -> None:
    bounds = {
        # what libraries map and reserve grows with the machine, and is no memory
        resource.RLIMIT_AS: mapped_bytes + 2 * limits.memory_bytes,
        # what can be written, and shared with nobody
        resource.RLIMIT_DATA: limits.memory_bytes,
        resource.RLIMIT_CPU: limits.processor_s,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_NPROC: 0,
    }
    for which, bound in bounds.items():
        _, most = resource.getrlimit(which)
        allowed = bound if most == resource.RLIM_INFINITY else min(bound, most)
        # a second later the kernel kills without a word, so the first signal must tell
        grace = int(which == resource.RLIMIT_CPU)
        resource.setrlimit(which, (allowed, allowed + grace))

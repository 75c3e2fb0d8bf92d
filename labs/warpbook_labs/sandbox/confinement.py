"""Shuts the calling process into the jail, for good; what it needs is loaded before.

Linux only. Each step that the system refuses leads to a weaker tier, which the caller
is told, never to a failure: a laptop in a container is still allowed to learn.
"""

from __future__ import annotations

import os
import resource
from pathlib import Path

from warpbook_labs.sandbox import linux
from warpbook_labs.sandbox.call_filters import allow_few
from warpbook_labs.sandbox.linux import allow_files
from warpbook_labs.sandbox.policies import JAIL_BOUNDS
from warpbook_labs.sandbox.work import Limits, Tier
from warpbook_monitors.budget import bound

_NOBODY = 65534


def confine(limits: Limits, empty: Path) -> tuple[Tier, bool]:
    """Shut this process in.

    Args:
        empty: a folder with nothing in it, which becomes all that there is.

    Returns:
        How well that went, and whether its system calls are filtered.
    """
    linux.die_with_parent()
    # the first of statm is the size of all mappings, in pages
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    mapped_bytes = pages * resource.getpagesize()
    linux.hide_memory()
    tier: Tier = "limits"
    if _enter_empty_root(empty):
        tier = "namespaces"
    # whoever becomes another user is no longer ended with its parent
    linux.die_with_parent()
    linux.gain_no_rights()
    if allow_files(()) and tier == "limits":
        tier = "landlock"
    bound(
        {
            # what libraries map and reserve grows with the machine, and is no memory
            resource.RLIMIT_AS: mapped_bytes + 2 * limits.memory_bytes,
            # what can be written, and shared with nobody
            resource.RLIMIT_DATA: limits.memory_bytes,
            resource.RLIMIT_CPU: limits.processor_s,
            **JAIL_BOUNDS,
        }
    )
    # last, since the steps before need calls that it refuses
    return tier, allow_few()


def _enter_empty_root(empty: Path) -> bool:
    """Leave all files, the network and what other processes share."""
    namespaces = linux.NEW_MOUNTS | linux.NEW_NETWORK
    namespaces |= linux.NEW_IPC | linux.NEW_HOST_NAME
    root = os.geteuid() == 0
    if not linux.leave(namespaces if root else namespaces | linux.NEW_USER):
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

"""Processes that have a device open, and their end."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple


class Holder(NamedTuple):
    """A process that has a device open."""

    pid: int
    uid: int


def holders(paths: Sequence[str]) -> dict[str, list[Holder]]:
    """Find by path who has a device open, by its number and not by a name.

    Other nodes of the same device count, too. A path that is not there has no holders.
    """
    numbers: dict[int, list[str]] = {}
    for path in paths:
        with contextlib.suppress(OSError):
            numbers.setdefault(os.stat(path).st_rdev, []).append(path)
    by_path: dict[str, list[Holder]] = {path: [] for path in paths}
    for holder in _processes():
        for number in _open_devices(holder.pid) & numbers.keys():
            for path in numbers[number]:
                by_path[path].append(holder)
    return by_path


def mapped(path: str) -> list[Holder]:
    """Find who has a device's memory mapped, also after closing it."""
    return [holder for holder in _processes() if _has_mapped(holder.pid, path)]


def signal_holders(
    path: str, is_spared: Callable[[int], bool], number: signal.Signals
) -> None:
    """Send a signal to all that have a device open or its memory mapped.

    Args:
        path: of the device's node.
        is_spared: tells of an account's id that it may go on.
        number: of the signal.

    Raises:
        OSError: there is no such node.
    """
    device = os.stat(path).st_rdev
    for holder in {*holders([path])[path], *mapped(path)}:
        if is_spared(holder.uid):
            continue
        with contextlib.suppress(OSError):
            descriptor = os.pidfd_open(holder.pid)
            try:
                # another process may have got the number since
                if device in _open_devices(holder.pid) or _has_mapped(holder.pid, path):
                    signal.pidfd_send_signal(descriptor, number)
            finally:
                os.close(descriptor)


def real_uid(pid: int) -> int:
    """Give the account that a process is of, also where it runs a setuid program.

    The owner of its folder in `/proc` is root then.

    Raises:
        OSError: it has gone.
    """
    with open(f"/proc/{pid}/status", "rb") as status:
        for line in status:
            if line.startswith(b"Uid:"):
                return int(line.split()[1])
    raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))


def _processes() -> Iterator[Holder]:
    own = os.getpid()
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != own:
            with contextlib.suppress(OSError):
                yield Holder(int(name), real_uid(int(name)))


def _open_devices(pid: int) -> set[int]:
    """Give the numbers of the character devices that a process has open."""
    numbers = set()
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as descriptors:
        for descriptor in descriptors:
            with contextlib.suppress(OSError):
                status = descriptor.stat()
                if stat.S_ISCHR(status.st_mode):
                    numbers.add(status.st_rdev)
    return numbers


def _has_mapped(pid: int, path: str) -> bool:
    ending = f" {path}\n".encode()
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", "rb") as maps:
        return any(line.endswith(ending) for line in maps)
    return False

"""Which machine this process is on, as far as GPUs are concerned."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from warpbook_monitors.plain_text import bounded

#: says what people call this machine, where its host name is a pod's or a container's
NAME = "WARPBOOK_MACHINE_NAME"
_MOST_NAME = 63
_ID_DIGITS = 32
_BOOT = Path("/proc/sys/kernel/random/boot_id")
#: a container has its own, and may see other GPUs than its neighbour
_NAMESPACE = "/proc/self/ns/pid"


class Machine(Struct, frozen=True):
    """A machine, or a container of one."""

    #: the same for processes that are beside one another, and of nobody else
    id: str
    #: what people call it; hostile to whoever is elsewhere
    name: str


def this_machine(environ: Mapping[str, str] = os.environ) -> Machine:
    """Give the machine of this process; nothing in it is secret."""
    name = bounded(environ.get(NAME) or socket.gethostname(), _MOST_NAME)
    parts = (_boot(), _namespace(), socket.gethostname(), name)
    digest = hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()
    return Machine(digest[:_ID_DIGITS], name)


def _boot() -> str:
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return os.readlink(_NAMESPACE)
    except OSError:
        return ""

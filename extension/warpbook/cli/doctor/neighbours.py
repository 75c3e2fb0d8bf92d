"""Programs of this machine that anyone with an account on it can reach.

On a shared machine the account is no wall around loopback: what listens there without
a password is open to everybody. Nothing is asked of such a program.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

from warpbook.cli.doctor.check import Check
from warpbook_monitors.plain_text import bounded

_LISTENS = "0A"
#: in words of four bytes, the least significant first
_LOOPBACK_6 = "00000000000000000000000001000000"
_MAPPED_6 = "0000000000000000FFFF0000"
#: below it the machine's administrator decides who listens
_FIRST_FREE_PORT = 1024
#: of the hub itself, which asks for passwords or tokens
_HUB_ACCOUNTS = {"warpbook-hub", "warpbook-grader"}
#: what asks for no password unless it is set up to, by its usual port
_OPEN = {
    2375: "Docker",
    5000: "MLflow",
    5900: "VNC",
    6006: "TensorBoard",
    6274: "MCP inspector",
    6277: "MCP inspector",
    6379: "Redis",
    7860: "Gradio",
    8188: "ComfyUI",
    8265: "Ray",
    9200: "Elasticsearch",
    9222: "a browser's debugger",
    9229: "Node's debugger",
    11211: "memcached",
    11434: "Ollama",
    27017: "MongoDB",
}
_MOST_NAMED = 10


class Neighbour(NamedTuple):
    """A program that listens."""

    port: int
    uid: int
    account: str
    #: empty where this account may not see it
    program: str

    def __str__(self) -> str:
        program = self.program or _OPEN.get(self.port, "a program")
        return f"{self.port} ({self.account}, {program})"


def neighbours(folder: Path = Path("/proc/net")) -> list[Neighbour]:
    """Give what others listen on, and what usually asks for no password."""
    own = os.getuid()
    seen = {}
    programs = _programs()
    for port, uid in (
        listener for name in ("tcp", "tcp6") for listener in _listeners(folder / name)
    ):
        account = _account(uid)
        is_others = uid != own and account not in _HUB_ACCOUNTS
        if port >= _FIRST_FREE_PORT and (is_others or port in _OPEN):
            seen[port] = Neighbour(port, uid, account, programs.get(port, ""))
    return sorted(seen.values())


def neighbour_check() -> Iterator[Check]:
    """Name them, where there are any."""
    named = neighbours()
    if named:
        shown = ", ".join(str(one) for one in named[:_MOST_NAMED])
        more = len(named) - _MOST_NAMED
        yield Check(
            "Neighbours",
            "absent",
            f"Anyone with an account here can reach these ports: {shown}"
            + (f" and {more} more." if more > 0 else "."),
            "What asks for no password there opens its account to everybody: end it, "
            "or have it listen on a Unix socket, or ask for a password.",
        )


def _listeners(file: Path) -> Iterator[tuple[int, int]]:
    """Give port and account of what listens on loopback or on every address."""
    lines: list[str] = []
    with contextlib.suppress(OSError):
        lines = file.read_text().splitlines()[1:]
    for line in lines:
        _, local, _, state, _, _, _, uid, *_ = line.split()
        address, _, port = local.partition(":")
        version_4 = address.removeprefix(_MAPPED_6)
        is_near = (
            set(address) == {"0"}
            or address == _LOOPBACK_6
            or (len(version_4) == 8 and version_4.endswith("7F"))
        )
        if state == _LISTENS and is_near:
            yield int(port, 16), int(uid)


def _programs() -> dict[int, str]:
    """Give the names of programs by port, of those that may be seen."""
    programs = {}
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            near, pid = connection.laddr, connection.pid
            if connection.status == psutil.CONN_LISTEN and near and pid is not None:
                with contextlib.suppress(psutil.Error):
                    programs[near[1]] = bounded(psutil.Process(pid).name())
    return programs


def _account(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"account {uid}"

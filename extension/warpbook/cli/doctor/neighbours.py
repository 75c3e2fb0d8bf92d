"""Programs of this machine that anyone with an account on it can reach.

On a shared machine the account is no wall around loopback: what listens there without
a password is open to everybody, and an MCP server of a notebook runs code as who
started it. Nothing is asked of such a program.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterator, Sequence
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
    3001: "jupyter-server-mcp",
    4040: "jupyter-mcp-server",
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


#: what they run is named by a word of their command
_INTERPRETERS = ("python", "node")
#: of Python, with a word that belongs to it
_WITH_VALUE = ("-X", "-W")
_PACKAGES = "node_modules/"


class Program(NamedTuple):
    """A process that may be seen."""

    pid: int
    #: with the package that an interpreter runs
    name: str


class Neighbour(NamedTuple):
    """A program that listens."""

    port: int
    uid: int
    account: str
    #: None where this account may not see it
    program: Program | None

    @property
    def is_usually_open(self) -> bool:
        """Whether such a program asks for no password unless it is set up to."""
        name = "" if self.program is None else self.program.name
        return self.port in _OPEN or "mcp" in name.lower()

    def __str__(self) -> str:
        seen = "a process that root sees"
        if self.program is not None:
            seen = f"process {self.program.pid}: {self.program.name}"
        if self.port in _OPEN:
            seen += f", usually {_OPEN[self.port]}"
        return f"{self.port} ({self.account}, {seen})"


def neighbours(folder: Path = Path("/proc/net")) -> list[Neighbour]:
    """Give what others listen on, and what usually asks for no password."""
    own = os.getuid()
    seen = {}
    programs = _programs()
    for port, uid in (
        listener for name in ("tcp", "tcp6") for listener in _listeners(folder / name)
    ):
        one = Neighbour(port, uid, _account(uid), programs.get(port))
        is_others = uid != own and one.account not in _HUB_ACCOUNTS
        if port >= _FIRST_FREE_PORT and (is_others or one.is_usually_open):
            seen[port] = one
    return sorted(seen.values(), key=lambda one: (not one.is_usually_open, one.port))


def neighbour_check() -> Iterator[Check]:
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


def _programs() -> dict[int, Program]:
    """Give programs by port, of those that may be seen."""
    programs = {}
    with contextlib.suppress(psutil.Error, OSError):
        for connection in psutil.net_connections("tcp"):
            near, pid = connection.laddr, connection.pid
            if connection.status == psutil.CONN_LISTEN and near and pid is not None:
                with contextlib.suppress(psutil.Error):
                    process = psutil.Process(pid)
                    name = program_name(process.name(), process.cmdline())
                    programs[near[1]] = Program(pid, bounded(name))
    return programs


def program_name(name: str, command: Sequence[str]) -> str:
    """Name a program, and what an interpreter runs: other words may be secret."""
    if not name.startswith(_INTERPRETERS):
        return name
    words = iter(command[1:])
    for word in words:
        if word in _WITH_VALUE:
            next(words, None)
        elif word == "-m":
            return f"{next(words, '')} ({name})"
        elif word == "-c":
            break
        elif not word.startswith("-"):
            _, is_package, path = word.rpartition(_PACKAGES)
            parts = path.split("/")
            if not is_package:
                parts = parts[-1:]
            elif not path.startswith("@"):
                parts = parts[:1]
            return f"{'/'.join(parts[:2])} ({name})"
    return name


def _account(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"account {uid}"

"""A real PostgreSQL of the tests' own: Debian's programs, on a socket in a folder."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
from pathlib import Path
from typing import Any

import psycopg

from warpbook_hub.database.address import FILE, write_address

#: of tests that don't say on which they run
DEFAULT_DATABASE = os.environ.get("WARPBOOK_TEST_DATABASE", "sqlite")
_ROOT = Path("/usr/lib/postgresql")
#: initdb refuses root
_ACCOUNTS = ("postgres", "nobody")
#: of a start or a stop, on a machine whose disk is busy
_TIMEOUT_S = 180
_PG_CTL = ("pg_ctl", "-w", "-t", str(_TIMEOUT_S))


def programs() -> Path:
    """Give the folder of the newest server that is installed."""
    folders = [path.parent for path in _ROOT.glob("*/bin/initdb")]
    assert folders, "The hub's tests need PostgreSQL; `make setup-test` installs it."
    return max(folders, key=lambda folder: int(folder.parent.name))


class PostgresServer:
    """One server; its databases are made one by one."""

    def __init__(self, folder: Path, flushes: bool = False) -> None:
        """Make its files, and start it.

        Args:
            folder: for its files and its socket.
            flushes: it waits for the disk; without, only a crash of the whole machine
                could lose what it has not flushed.
        """
        self._flushes = flushes
        self._data, self._log = folder / "data", folder / "server.log"
        self._socket = folder
        self._account: dict[str, Any] = {}
        self._names = (f"hub{number}" for number in itertools.count())
        # accounts of a class reach the socket
        folder.chmod(0o711)
        if os.geteuid() == 0:
            account = next(filter(None, map(_account, _ACCOUNTS)))
            os.chown(folder, account.pw_uid, account.pw_gid)
            self._account = {
                "user": account.pw_uid,
                "group": account.pw_gid,
                "extra_groups": [],
            }
        self._run(
            "initdb", "-U", "wb", "-A", "trust", "--no-sync", "-E", "UTF8",
            "--locale=C.UTF-8",
        )  # fmt: skip
        self.start()

    @property
    def address(self) -> str:
        """Give the address of the server's own database."""
        return f"postgresql://wb@/postgres?host={self._socket}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = f"-k {self._socket} -c listen_addresses='' -c max_connections=60"
        options += f" -c fsync={'on' if self._flushes else 'off'}"
        self._run(*_PG_CTL, "-l", self._log, "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop it; `immediate` is as if it had crashed."""
        self._run(*_PG_CTL, "-m", mode, "stop")

    def new_database(self) -> str:
        """Make an empty database; give its address."""
        name = next(self._names)
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return f"postgresql://wb@/{name}?host={self._socket}"

    def use_for(self, path: Path) -> None:
        """Have a hub's database be a new one of this server."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_address(path.parent, self.new_database())
        # the hub gives the folder to the account of the service, which reads it
        (path.parent / FILE).chmod(0o644)

    def _run(self, program: str, *arguments: object) -> None:
        command = [programs() / program, "-D", self._data, *arguments]
        done = subprocess.run(
            list(map(str, command)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            timeout=_TIMEOUT_S + 10,
            **self._account,
        )
        assert done.returncode == 0, done.stdout.decode(errors="replace")


def remove(server: PostgresServer, folder: Path) -> None:
    """Stop it, and remove its files."""
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


def _account(name: str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None

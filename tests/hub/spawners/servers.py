"""A server of a real JupyterHub user, as the hub makes it of its configuration."""

from __future__ import annotations

import asyncio
import getpass
from pathlib import Path
from typing import Any

from jupyterhub import orm
from jupyterhub.objects import Hub
from jupyterhub.spawner import Spawner
from jupyterhub.user import User
from traitlets.config import Config
from traitlets.utils.importstring import import_item

_HUB = Hub(ip="127.0.0.1", port=8081, base_url="/j/hub/")
#: programs of the system that a test plays, in a folder of PATH
_PROGRAM = """#!/bin/sh
{{ echo ---; for word in "$0" "$@"; do echo "$word"; done; }} >> {log}
{then}
"""


class People:
    """The users of a hub's database."""

    def __init__(self, config: Config) -> None:
        self._db = orm.new_session_factory("sqlite:///:memory:")()
        self._config = config

    def server(self, options: dict[str, Any], name: str | None = None) -> Spawner:
        """Give the server of somebody who asked for it with some options.

        Args:
            options: as the hub keeps them, whoever sent them.
            name: of the person; the account that runs the tests if left out.
        """
        kind = self._config.JupyterHub.spawner_class
        settings = {
            "base_url": "/j/",
            "config": self._config,
            "hub": _HUB,
            "spawner_class": import_item(kind) if isinstance(kind, str) else kind,
        }
        name = name or getpass.getuser()
        known = orm.User.find(self._db, name) or orm.User(name=name)
        self._db.add(known)
        self._db.commit()
        spawner: Spawner = User(known, settings, db=self._db).spawner
        spawner.orm_spawner.user_options = spawner.user_options = options
        spawner.orm_spawner.server = orm.Server(base_url="/j/user/somebody/")
        spawner.api_token = "of-the-server"
        self._db.commit()
        return spawner

    def close(self) -> None:
        self._db.close()
        self._db.get_bind().dispose()


def play(folder: Path, name: str, then: str) -> Path:
    """Put a program of the system into a folder; give the file with its calls."""
    log = folder / f"{name}.calls"
    program = folder / name
    program.write_text(_PROGRAM.format(log=log, then=then))
    program.chmod(0o755)
    return log


def calls(log: Path) -> list[list[str]]:
    """Give the words of each call."""
    if not log.exists():
        return []
    return [call.split("\n")[1:-1] for call in log.read_text().split("---")[1:]]


def run(awaitable: Any) -> Any:
    async def wait() -> Any:
        return await awaitable

    return asyncio.run(wait())

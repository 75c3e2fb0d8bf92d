"""Log-in for a demo: one password for the class, and another for its staff."""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
from pathlib import Path
from typing import Any

import msgspec
from jupyterhub.auth import Authenticator
from msgspec import Struct
from traitlets import Unicode

from warpbook_hub.course.courses import staff_names
from warpbook_hub.database.hub_database import DATABASE, HubDatabase

_WRONG_S = 1.0


class Passwords(Struct, frozen=True):
    """Of a demo."""

    learners: str
    staff: str


def passwords_of(folder: Path) -> Passwords:
    """Give the passwords of a hub, which are drawn when it is first started."""
    file = folder / "passwords.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=Passwords)
    except FileNotFoundError:
        drawn = Passwords(secrets.token_urlsafe(6), secrets.token_urlsafe(12))
        descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with open(descriptor, "wb") as opened:
            opened.write(msgspec.json.encode(drawn))
        return drawn


class ClassPassword(Authenticator):  # type: ignore[misc]
    """Takes anybody who knows the password; whoever is staff needs the staff's."""

    learners_password = Unicode(help="of all learners", config=True)
    staff_password = Unicode(help="of all staff", config=True)
    course_folder = Unicode(help="whose staff need the staff's password", config=True)

    async def authenticate(self, handler: Any, data: dict[str, str]) -> str | None:
        name = self.normalize_username(data["username"])
        wanted = self.learners_password
        if name in await asyncio.to_thread(self._staff):
            wanted = self.staff_password
        given = data["password"].encode(errors="replace")
        if wanted and hmac.compare_digest(given, str(wanted).encode()):
            return str(name)
        # nobody guesses quickly
        await asyncio.sleep(_WRONG_S)
        return None

    def _staff(self) -> frozenset[str]:
        """Give the user names of the staff of all courses, as they are now."""
        database = HubDatabase(Path(self.course_folder) / DATABASE)
        try:
            with database.read() as connection:
                return staff_names(connection)
        finally:
            database.close()

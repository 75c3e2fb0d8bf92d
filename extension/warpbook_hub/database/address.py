"""Where a hub's database is, if it is no file: an address in the course's folder.

A password is never an argument of a program, which everybody of a machine sees: it
comes in the environment, or from the file that PGPASSFILE names.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from warpbook_hub.errors import DatabaseUnfit

#: in the folder of the course, for nobody else to read
FILE = "database.url"
#: names the address, with a password in it if need be
VARIABLE = "WARPBOOK_HUB_DATABASE"
_SCHEMES = ("postgresql", "postgresql+psycopg")
_MOST_BYTES = 4096


def checked_address(text: str) -> str:
    """Give an address as SQLAlchemy takes it.

    Raises:
        DatabaseUnfit: it is none of a PostgreSQL database.
    """
    address = text.strip()
    parts = urlsplit(address)
    if (
        parts.scheme not in _SCHEMES
        or not parts.path.strip("/")
        or len(address) > _MOST_BYTES
        or re.search(r"\s", address)
    ):
        raise DatabaseUnfit(
            "A database's address is such as "
            "postgresql://warpbook@db.example.org/warpbook, or `sqlite` for a file in "
            "the hub's folder."
        )
    return f"postgresql+psycopg:{address.split(':', 1)[1]}"


def has_password(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.password) or "password=" in parts.query


def without_password(address: str) -> str:
    """Give an address to show."""
    parts = urlsplit(address)
    user = f"{parts.username}@" if parts.username else ""
    port = f":{parts.port}" if parts.port else ""
    return f"postgresql://{user}{parts.hostname or ''}{port}{parts.path}"


def read_address(folder: Path) -> str | None:
    """Give the address that a course's folder names; None where its file is used.

    Raises:
        DatabaseUnfit: there is one that can't be used.
    """
    try:
        text = (folder / FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as problem:
        raise DatabaseUnfit(f"{folder / FILE}: {problem}.") from None
    return checked_address(text)


def write_address(folder: Path, address: str | None) -> None:
    """Have a course's folder name a server's database; None: its own file again."""
    file = folder / FILE
    if address is None:
        file.unlink(missing_ok=True)
        return
    unfinished = file.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as written:
        written.write(f"{address}\n")
        written.flush()
        os.fsync(written.fileno())
    unfinished.replace(file)

"""What a backup holds: its first member, and which names it may give."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Literal

from msgspec import Meta, Struct

from warpbook_monitors.alerts.rules import FILE_NAME
from warpbook_monitors.archive.database import FILE_NAME as ARCHIVE_FILE
from warpbook_monitors.archive.place import FOLDER_NAME

#: raised when an older warpbook would misunderstand it
FORMAT = 1
MANIFEST_NAME = "manifest.json"
MAX_MANIFEST_BYTES = 4 * 2**20
MAX_FILES = 10_000
#: of files that are no databases: measured limits, rules
MAX_FILE_BYTES = 64 * 2**20
#: tar has room for so much without further headers
MAX_NAME = 100

LABS = "data/labs.db"
RULES = f"config/{FILE_NAME}"
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+@=,-]{0,79}", re.ASCII)
_ARCHIVE = re.compile(
    rf"data/{FOLDER_NAME}/{_PART.pattern}/{re.escape(ARCHIVE_FILE)}", re.ASCII
)
_MOST_PARTS = 6
#: what the system, SQLite and warpbook itself make of them
_NOT_OURS = re.compile(r"(-wal|-shm|-journal|\.lock)$|\.damaged-|^before-restore-")


class BackupError(Exception):
    """It can't be made or restored; the message says why and what to do."""


class Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """One file."""

    #: with "data/" for the data folder, and "config/" for Jupyter's settings
    name: str
    kind: Literal["database", "file"]
    size_bytes: Annotated[int, Meta(ge=0, le=2**44)]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    #: of a database
    format: int | None = None


class Manifest(Struct, frozen=True):
    """The first member of a backup."""

    format: int
    #: the warpbook that made it
    version: Annotated[str, Meta(max_length=40)]
    made_ms: Annotated[float, Meta(ge=0, le=4e12)]
    files: Annotated[tuple[Entry, ...], Meta(max_length=MAX_FILES)]


def is_database(name: str) -> bool:
    """Whether a name is one of ours that SQLite writes."""
    return name == LABS or _ARCHIVE.fullmatch(name) is not None


def is_allowed(name: str) -> bool:
    """Whether a backup may hold a file of that name."""
    if name == RULES or is_database(name):
        return True
    parts = PurePosixPath(name).parts
    return (
        len(name) <= MAX_NAME
        and "/".join(parts) == name
        and 2 <= len(parts) <= _MOST_PARTS
        and parts[0] == "data"
        and not name.endswith(".db")
        and all(_PART.fullmatch(part) for part in parts)
        and not any(_NOT_OURS.search(part) for part in parts)
    )


def is_left_out(file_name: str) -> bool:
    """Whether a file is made anew, or was put aside: it is in no backup."""
    return file_name.startswith(".") or _NOT_OURS.search(file_name) is not None

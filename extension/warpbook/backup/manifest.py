"""What a backup says of itself: its first member."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

#: raised when an older warpbook would misunderstand it
FORMAT = 1
MANIFEST_NAME = "manifest.json"
MAX_MANIFEST_BYTES = 4 * 2**20
MAX_FILES = 10_000
#: tar has room for so much without further headers
MAX_NAME = 100


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

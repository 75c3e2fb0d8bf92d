"""Makes a backup: copies of one moment, told in a manifest, in one file."""

from __future__ import annotations

import io
import os
import secrets
import shutil
import stat
import tarfile
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from warpbook.backup.contents import KNOWN, MADE_ANEW, Content, Places, known_of
from warpbook.backup.databases import copy_database, is_damaged
from warpbook.backup.manifest import FORMAT, MANIFEST_NAME, BackupError, Entry, Manifest
from warpbook.backup.tar_stream import sha256_of
from warpbook_monitors._version import __version__
from warpbook_monitors.archive.database import FILE_NAME
from warpbook_monitors.archive.errors import ArchiveError
from warpbook_monitors.archive.place import FOLDER_NAME
from warpbook_monitors.archive.repair import finish_swap

#: most of it is compressed already
_COMPRESSION = 3


class BackupResult(NamedTuple):
    """A backup that was made."""

    manifest: Manifest
    size_bytes: int
    #: in words, what is not in it
    left_out: tuple[str, ...]


def make_backup(places: Places, target: Path, replace: bool = False) -> BackupResult:
    """Write all of known kinds into `target`, which is there whole or not at all.

    Args:
        places: where the files are; servers may go on writing.
        target: a new file, for nobody but its owner.
        replace: take the place of a file that is there.

    Raises:
        BackupError: it can't be made.
    """
    _refuse_target(target, replace)
    try:
        with tempfile.TemporaryDirectory(
            prefix=".warpbook-backup-", dir=target.absolute().parent
        ) as staging:
            entries, left_out = _stage(places, Path(staging))
            manifest = Manifest(FORMAT, __version__, time.time() * 1000, entries)
            _write(manifest, Path(staging), target, replace)
    except ArchiveError as error:
        raise BackupError(str(error)) from None
    except OSError as error:
        raise BackupError(f"{error.filename}: {error.strerror}.") from None
    return BackupResult(manifest, target.stat().st_size, left_out)


def _refuse_target(target: Path, replace: bool) -> None:
    """Refuse to take the place of what is no file, such as a device or a link."""
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise BackupError(f"{target}: {error.strerror}.") from None
    if not stat.S_ISREG(mode):
        raise BackupError(f"{target} is not a regular file: name another.")
    if not replace:
        raise BackupError(f"{target} is there already: name another, or add --force.")


def _stage(places: Places, staging: Path) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """Copy everything as it is now."""
    for folder in places.data.glob(f"{FOLDER_NAME}/*/"):
        # one that was mended until a kill has its name only then
        finish_swap(folder / FILE_NAME)
    entries: list[Entry] = []
    left_out = [
        f"{path}: {words}"
        for name, words in MADE_ANEW.items()
        if (path := places.data / name).exists()
    ]
    for known in KNOWN:
        for name in places.names(known):
            path, copy = places.path(name), staging / f"{len(entries)}"
            why = _why_not(known, name, path)
            if why:
                left_out.append(f"{path}: {why}")
                continue
            form = copy_database(path, copy) if known.is_database else None
            if form is None:
                shutil.copyfile(path, copy)
            entry = Entry(
                name=name,
                kind="file" if form is None else "database",
                size_bytes=copy.stat().st_size,
                sha256=sha256_of(copy),
                format=form,
            )
            entries.append(entry)
    return tuple(entries), tuple(left_out)


def _why_not(known: Content, name: str, path: Path) -> str:
    """Say why a file is not packed; empty if it is."""
    if known_of(name) is not known:
        return "warpbook has no file of such a name"
    if known.is_database and is_damaged(path):
        return "it is damaged; see `warpbook doctor`"
    if path.stat().st_size > known.max_bytes:
        return f"it has more than {known.max_bytes} bytes"
    return ""


def _write(manifest: Manifest, staging: Path, target: Path, replace: bool) -> None:
    part = staging / f"{secrets.token_hex(4)}.part"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        with tarfile.open(
            fileobj=stream,
            mode="w:gz",
            compresslevel=_COMPRESSION,
            format=tarfile.GNU_FORMAT,
        ) as tar:
            text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
            tar.addfile(_header(MANIFEST_NAME, len(text), manifest), io.BytesIO(text))
            for number, entry in enumerate(manifest.files):
                with (staging / f"{number}").open("rb") as copy:
                    tar.addfile(_header(entry.name, entry.size_bytes, manifest), copy)
        stream.flush()
        os.fsync(stream.fileno())
    if replace:
        # what came meanwhile is none of ours either
        _refuse_target(target, replace)
        os.replace(part, target)
    else:
        try:
            # unlike a rename, it fails where a file came meanwhile
            os.link(part, target)
        except FileExistsError:
            raise BackupError(f"{target} is there already.") from None
        except OSError:
            # some file systems have no links
            os.replace(part, target)


def _header(name: str, size_bytes: int, manifest: Manifest) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size = size_bytes
    header.mode = 0o600
    header.mtime = int(manifest.made_ms / 1000)
    return header

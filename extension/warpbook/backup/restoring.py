"""Restores a backup, which may be anybody's: it is checked before it is used."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from warpbook.backup.databases import (
    check_database,
    copy_database,
    is_damaged,
    put_database,
)
from warpbook.backup.making import Places, make_backup
from warpbook.backup.manifest import (
    FORMAT,
    MANIFEST_NAME,
    MAX_FILE_BYTES,
    MAX_MANIFEST_BYTES,
    RULES,
    BackupError,
    Entry,
    Manifest,
    is_allowed,
    is_database,
)
from warpbook.backup.tar_stream import Member, members
from warpbook_monitors.alerts.rules import read_rules
from warpbook_monitors.archive.errors import ArchiveError
from warpbook_monitors.archive.mending import finish_swap, put_in_place
from warpbook_monitors.errors import RulesError

#: what is unpacked may be so many times as large as the backup, or this size
_MOST_TIMES = 100
_SMALL_BYTES = 2**30
_PREFIX = ".warpbook-restore-"
#: of a restore that was killed: by then, none is still at work
_LEFTOVER_S = 24 * 3600.0
#: left free on the disk
_FREE_BYTES = 256 * 2**20


class Restored(NamedTuple):
    """What was done."""

    manifest: Manifest
    #: a backup of what was there before; None where nothing was
    before: Path | None
    #: damaged files that were moved
    aside: tuple[Path, ...]


def restore_backup(source: Path, places: Places) -> Restored:
    """Put everything of a backup in its place, also while servers run.

    What is there and not in the backup stays. All that was there before is in a backup
    of its own, so that a kill at any moment loses nothing.

    Raises:
        BackupError: it is refused, or can't be written; then nothing was changed, or
            what was is in the backup of before.
    """
    if not source.is_file():
        raise BackupError(f"{source}: there is no such file.")
    try:
        places.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_leftovers(places.data)
        with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=places.data) as folder:
            staging = Path(folder)
            manifest = _unpack(source, staging)
            _check(manifest, staging)
            before = _keep_what_is_there(places)
            aside = tuple(_put_all(manifest, staging, places))
    except OSError as error:
        raise BackupError(f"{error.filename}: {error.strerror}.") from None
    return Restored(manifest, before, aside)


def _remove_leftovers(folder: Path) -> None:
    for left in folder.glob(f"{_PREFIX}*"):
        if time.time() - left.stat().st_mtime > _LEFTOVER_S:
            shutil.rmtree(left, ignore_errors=True)


def _unpack(source: Path, staging: Path) -> Manifest:
    """Write the members to numbered files, each checked against the manifest."""
    parts = members(source)
    manifest = _manifest(source, next(parts, None))
    room_bytes = _room_bytes(source, staging, manifest)
    for number, entry in enumerate(manifest.files):
        member = next(parts, None)
        if (
            member is None
            or member.name != entry.name
            or member.size_bytes != entry.size_bytes
        ):
            raise BackupError(f"{source}: {entry.name} is not where it should be.")
        room_bytes -= entry.size_bytes
        _unpack_one(source, member, entry, staging / f"{number}")
    if next(parts, None) is not None:
        raise BackupError(f"{source}: it holds more than it tells.")
    return manifest


def _manifest(source: Path, member: Member | None) -> Manifest:
    if (
        member is None
        or member.name != MANIFEST_NAME
        or member.size_bytes > MAX_MANIFEST_BYTES
    ):
        raise BackupError(f"{source}: it is no backup of warpbook.")
    text = b"".join(member.chunks())
    try:
        form = msgspec.json.decode(text, type=_Formed).format
        if form > FORMAT:
            raise BackupError(
                f"{source}: a newer warpbook made it (format {form}; this one knows "
                f"{FORMAT}). Update warpbook."
            )
        manifest = msgspec.json.decode(text, type=Manifest)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        raise BackupError(f"{source}: its manifest can't be read.") from None
    names = [entry.name for entry in manifest.files]
    if len(set(names)) < len(names):
        raise BackupError(f"{source}: it holds a file twice.")
    for entry in manifest.files:
        if not is_allowed(entry.name):
            raise BackupError(f"{source}: it holds {entry.name!r}, which is not ours.")
        if (entry.kind == "database") != is_database(entry.name):
            raise BackupError(f"{source}: {entry.name} is not what it is called.")
        if entry.kind == "file" and entry.size_bytes > MAX_FILE_BYTES:
            raise BackupError(f"{source}: {entry.name} is too large.")
    return manifest


def _room_bytes(source: Path, staging: Path, manifest: Manifest) -> int:
    """Refuse a small file that becomes a large one, and what the disk can't hold."""
    total_bytes = sum(entry.size_bytes for entry in manifest.files)
    most_bytes = max(_SMALL_BYTES, _MOST_TIMES * source.stat().st_size)
    if total_bytes > most_bytes:
        raise BackupError(
            f"{source}: {total_bytes >> 20} MiB would come out of it, which no backup "
            "of its size holds."
        )
    # unpacked, in the write-ahead log, and in its place
    needed_bytes = 3 * total_bytes + _FREE_BYTES
    free_bytes = shutil.disk_usage(staging).free
    if free_bytes < needed_bytes:
        raise BackupError(
            f"{staging.parent}: {free_bytes >> 20} MiB are free, and "
            f"{needed_bytes >> 20} MiB are needed."
        )
    return most_bytes


def _unpack_one(source: Path, member: Member, entry: Entry, path: Path) -> None:
    digest = hashlib.sha256()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        for chunk in member.chunks():
            digest.update(chunk)
            stream.write(chunk)
        stream.flush()
        os.fsync(stream.fileno())
    if digest.hexdigest() != entry.sha256:
        raise BackupError(f"{source}: {entry.name} is damaged.")


def _check(manifest: Manifest, staging: Path) -> None:
    """Look through all that somebody else may have made."""
    for number, entry in enumerate(manifest.files):
        path = staging / f"{number}"
        if entry.kind == "database":
            check_database(entry.name, path)
        elif entry.name == RULES:
            try:
                read_rules(path)
            except RulesError as error:
                raise BackupError(
                    f"{entry.name} in it is refused: {error.reason}"
                ) from None


def _keep_what_is_there(places: Places) -> Path | None:
    """Make a backup of it, beside it."""
    now = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    target = places.data / f"before-restore-{now}-{secrets.token_hex(2)}.tar.gz"
    made = make_backup(places, target)
    if not made.manifest.files:
        target.unlink()
        return None
    return target


def _put_all(manifest: Manifest, staging: Path, places: Places) -> Iterator[Path]:
    """Put each file in its place; give what was damaged and is moved out of the way."""
    for number, entry in enumerate(manifest.files):
        staged, target = staging / f"{number}", places.path(entry.name)
        if entry.kind == "file":
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _put_file(staged, target)
            continue
        try:
            if target.parent.is_dir():
                finish_swap(target)
            if target.exists() and is_damaged(target):
                yield _put_in_place(staged, target)
                continue
        except ArchiveError as error:
            raise BackupError(str(error)) from None
        put_database(staged, target)


def _put_in_place(staged: Path, target: Path) -> Path:
    """Replace a damaged database, of which nothing can be one transaction."""
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        copy_database(staged, part)
        part.chmod(0o600)
        return put_in_place(target, part)
    finally:
        part.unlink(missing_ok=True)


def _put_file(staged: Path, target: Path) -> None:
    # beside it, because a folder below may be a link to another disk
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    shutil.copyfile(staged, part)
    part.chmod(0o600)
    os.replace(part, target)


class _Formed(msgspec.Struct):
    """What every manifest has, of whatever version."""

    format: int

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

from warpbook.backup.contents import Content, Places, known_of, left_out
from warpbook.backup.creation import make_backup
from warpbook.backup.databases import copy_database, is_damaged, put_database
from warpbook.backup.manifest import (
    FORMAT,
    MANIFEST_NAME,
    MAX_MANIFEST_BYTES,
    BackupError,
    Entry,
    Manifest,
)
from warpbook.backup.tar_stream import Member
from warpbook.backup.tar_stream import members as members_of
from warpbook_monitors.archive.errors import ArchiveError
from warpbook_monitors.archive.repair import finish_swap, put_in_place

#: what is unpacked may be so many times as large as the backup, or this size
_MOST_TIMES = 100
_SMALL_BYTES = 2**30
_PREFIX = ".warpbook-restore-"
#: of a restore that was killed: by then, none is still at work
_LEFTOVER_S = 24 * 3600.0
#: left free on the disk
_FREE_BYTES = 256 * 2**20


class _Member(NamedTuple):
    """What may be restored."""

    name: str
    known: Content
    staged: Path


class RestoreResult(NamedTuple):
    """What was done."""

    manifest: Manifest
    #: names of what came
    came: tuple[str, ...]
    #: in words, what did not come, and why
    left_out: tuple[str, ...]
    #: a backup of what was there before; None where nothing was
    before: Path | None
    #: damaged files that were moved
    aside: tuple[Path, ...]


def restore_backup(source: Path, places: Places) -> RestoreResult:
    """Put what a backup holds of known kinds in its place, also while servers run.

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
            # each line once: a folder's files have one reason
            reasons: dict[str, None] = {}
            manifest, members = _unpack(source, Path(folder), reasons)
            members = _checked(members, reasons)
            if reasons and not members:
                words = "; ".join(reasons)
                raise BackupError(f"{source}: nothing of it is restored: {words}.")
            before = _keep_what_is_there(places)
            aside = tuple(_put_all(members, places))
    except OSError as error:
        raise BackupError(f"{error.filename}: {error.strerror}.") from None
    came = tuple(member.name for member in members)
    return RestoreResult(manifest, came, tuple(reasons), before, aside)


def _remove_leftovers(folder: Path) -> None:
    for left in folder.glob(f"{_PREFIX}*"):
        if time.time() - left.stat().st_mtime > _LEFTOVER_S:
            shutil.rmtree(left, ignore_errors=True)


def _unpack(
    source: Path, staging: Path, reasons: dict[str, None]
) -> tuple[Manifest, list[_Member]]:
    """Write members of known kinds to numbered files; note the others."""
    parts = members_of(source)
    manifest = _manifest(source, next(parts, None))
    _refuse_bomb(source, staging, manifest)
    members: list[_Member] = []
    for number, entry in enumerate(manifest.files):
        part = next(parts, None)
        if (
            part is None
            or part.name != entry.name
            or part.size_bytes != entry.size_bytes
        ):
            raise BackupError(f"{source}: {entry.name} is not where it should be.")
        known = known_of(entry.name)
        if known is None or entry.size_bytes > known.max_bytes:
            is_large = f"{entry.name}: it is too large"
            reasons[left_out(entry.name) if known is None else is_large] = None
            for _ in part.chunks():
                pass
            continue
        members.append(_Member(entry.name, known, staging / f"{number}"))
        _unpack_one(source, part, entry, members[-1].staged)
    if next(parts, None) is not None:
        raise BackupError(f"{source}: it holds more than it tells.")
    return manifest, members


def _manifest(source: Path, member: Member | None) -> Manifest:
    if (
        member is None
        or member.name != MANIFEST_NAME
        or member.size_bytes > MAX_MANIFEST_BYTES
    ):
        raise BackupError(f"{source}: it is no backup of warpbook.")
    text = b"".join(member.chunks())
    try:
        form = msgspec.json.decode(text, type=_AnyManifest).format
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
    if names and not any(map(known_of, names)):
        words = f"it holds only what is not restored, such as {left_out(names[0])}"
        raise BackupError(f"{source}: {words}.")
    return manifest


def _refuse_bomb(source: Path, staging: Path, manifest: Manifest) -> None:
    """Refuse a small file that becomes a large one, and what the disk can't hold."""
    total_bytes = sum(entry.size_bytes for entry in manifest.files)
    most_bytes = max(_SMALL_BYTES, _MOST_TIMES * source.stat().st_size)
    if total_bytes > most_bytes:
        raise BackupError(
            f"{source}: {total_bytes >> 20} MiB would come out of it, which no backup "
            "of its size holds."
        )
    # unpacked, made anew, in the write-ahead log, and in its place
    needed_bytes = 4 * total_bytes + _FREE_BYTES
    free_bytes = shutil.disk_usage(staging).free
    if free_bytes < needed_bytes:
        raise BackupError(
            f"{staging.parent}: {free_bytes >> 20} MiB are free, and "
            f"{needed_bytes >> 20} MiB are needed."
        )


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


def _checked(members: list[_Member], reasons: dict[str, None]) -> list[_Member]:
    """Give those that are what they are called; note why the others are not taken."""
    fit = []
    for member in members:
        try:
            member.known.check(member.staged)
            fit.append(member)
        except BackupError as error:
            # the message names the copy, and a person knows the member's name
            why = str(error).replace(f"{member.staged}: ", "").rstrip(".")
            reasons[f"{member.name}: {why}"] = None
    return fit


def _keep_what_is_there(places: Places) -> Path | None:
    """Make a backup of it, beside it."""
    now = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    target = places.data / f"before-restore-{now}-{secrets.token_hex(2)}.tar.gz"
    made = make_backup(places, target)
    if not made.manifest.files:
        target.unlink()
        return None
    return target


def _put_all(members: list[_Member], places: Places) -> Iterator[Path]:
    """Put each file in its place; give what was damaged and is moved out of the way."""
    for name, known, staged in members:
        target = places.path(name)
        if not known.is_database:
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


class _AnyManifest(msgspec.Struct):
    """What every manifest has, of whatever version."""

    format: int

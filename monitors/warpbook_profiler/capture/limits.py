"""Limits that were measured on this machine, kept in the user's data folder.

One small file for each GPU, host, driver and torch. Reading needs neither torch nor a
GPU.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from warpbook_monitors.data_folder import data_folder
from warpbook_monitors.errors import MonitorError
from warpbook_profiler.model.limits import Limits

#: more is no file of `save`
_MOST_BYTES, _MOST_FILES = 1 << 20, 1_000


class LimitsUnreadable(MonitorError):
    """A file of limits that holds none; the message says what to do."""


class Answer(Struct, frozen=True):
    """What the process that measures tells: limits, or in words why there are none."""

    limits: tuple[Limits, ...] = ()
    problem: str | None = None


def limits_here(gpu: str, torch: str) -> Limits | None:
    """Return what a GPU of this name last reached on this host, with this torch.

    Raises:
        LimitsUnreadable: there are none, and a file is damaged.
    """
    mine, damaged = [], []
    for path in sorted(_folder().glob("*.json"))[:_MOST_FILES]:
        try:
            limits = _read(path)
        except LimitsUnreadable as problem:
            damaged.append(problem)
            continue
        if (limits.gpu, limits.host, limits.torch) == (gpu, platform.node(), torch):
            mine.append(limits)
    if damaged and not mine:
        raise damaged[0]
    return max(mine, key=lambda limits: limits.measured_ms, default=None)


def load(uuid: str, driver: str | None, torch: str) -> Limits | None:
    """Return what was measured of this GPU here; None where nothing usable is."""
    try:
        return _read(_path(uuid, driver, platform.node(), torch))
    except LimitsUnreadable:
        return None  # it is measured again


def save(limits: Limits) -> None:
    """Keep it; a reader sees all of it or nothing."""
    path = _path(limits.uuid, limits.driver, limits.host, limits.torch)
    descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(limits))
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


@contextmanager
def alone() -> Iterator[None]:
    """Wait until no other process measures here: one would slow the other down.

    Raises:
        OSError: the folder can't be written to.
    """
    _folder().mkdir(parents=True, exist_ok=True)
    with (_folder() / "measuring.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _read(path: Path) -> Limits:
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_MOST_BYTES), type=Limits)
    except (
        OSError,
        msgspec.MsgspecError,
        UnicodeDecodeError,
        RecursionError,
    ) as problem:
        raise LimitsUnreadable(
            f"The measured limits of a GPU can't be read from {path} ({problem}). "
            "Delete the file, or let `warpbook limits` measure again."
        ) from None


def _path(uuid: str, driver: str | None, host: str, torch: str) -> Path:
    key = "-".join((uuid, driver or "unknown", host, torch))
    return _folder() / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', key)[:200]}.json"


def _folder() -> Path:
    return data_folder() / "limits"

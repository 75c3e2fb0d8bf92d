"""What GPUs of this machine were measured to reach, kept in the user's data folder.

One small file for each GPU and driver. Reading needs neither torch nor a GPU.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from warpbook_monitors.data_folder import data_folder
from warpbook_profiler.model.ceilings import Ceilings

_Positive = Annotated[float, Meta(gt=0, lt=1e20)]


class Limits(Struct, frozen=True):
    """The fastest that one GPU was seen to do, per second; times are in ns."""

    uuid: str
    gpu: str
    #: None where NVML does not tell
    driver: str | None
    torch: str
    #: Unix time
    measured_ms: float
    #: copies within its memory: what is read and what is written
    memory_bytes_per_s: _Positive
    #: copies from and to pinned memory
    host_to_device_bytes_per_s: _Positive
    device_to_host_bytes_per_s: _Positive
    #: matrix products, by torch's dtype name or "tf32"; what the chip lacks is not here
    flops_per_s: dict[str, _Positive]
    #: one operator with a tiny kernel after another, on the host
    launch_ns: _Positive
    #: one such operator, waited for
    round_trip_ns: _Positive

    @property
    def ceilings(self) -> Ceilings:
        """The same as a datasheet would say it."""
        return Ceilings(self.memory_bytes_per_s, dict(self.flops_per_s))


class Answer(Struct, frozen=True):
    """What the process that measures tells: limits, or in words why there are none."""

    limits: tuple[Limits, ...] = ()
    problem: str | None = None


def load(uuid: str, driver: str | None) -> Limits | None:
    """Give what was measured of this GPU under this driver."""
    return _read(_path(uuid, driver))


def save(limits: Limits) -> None:
    """Keep it; a reader sees all of it or nothing."""
    path = _path(limits.uuid, limits.driver)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(limits)))
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def measured_ceilings(gpu_name: str) -> Ceilings | None:
    """Find what a GPU of this name reached here, as of the last measurement."""
    newest = max(
        (limits for limits in _all() if limits.gpu == gpu_name),
        key=lambda limits: limits.measured_ms,
        default=None,
    )
    return None if newest is None else newest.ceilings


def _all() -> Iterator[Limits]:
    try:
        paths = list(_folder().glob("*.json"))
    except OSError:
        return
    for path in paths:
        limits = _read(path)
        if limits is not None:
            yield limits


def _read(path: Path) -> Limits | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Limits)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None  # it can be measured again


def _path(uuid: str, driver: str | None) -> Path:
    name = re.sub(r"[^\w.-]", "_", f"{uuid}-{driver or 'unknown'}", flags=re.A)
    return _folder() / f"{name}.json"


def _folder() -> Path:
    return data_folder() / "limits"

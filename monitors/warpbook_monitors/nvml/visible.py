"""The GPUs that CUDA would show to a program started here, asked of NVML."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from warpbook_monitors.errors import MonitorError
from warpbook_monitors.nvml.gate import call


class VisibleGpu(NamedTuple):
    """A whole GPU."""

    handle: object
    uuid: str


def visible_gpus() -> list[VisibleGpu]:
    """Give them in CUDA's order, which is taken for that of the bus.

    Raises:
        MonitorError: the driver tells of none.
    """
    gpus: list[VisibleGpu] = []
    for index in range(call("nvmlDeviceGetCount")):
        try:
            handle = call("nvmlDeviceGetHandleByIndex", index)
            gpus.append(VisibleGpu(handle, _text(call("nvmlDeviceGetUUID", handle))))
        except MonitorError:
            # those before one that is lost can be used
            break
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if allowed is None:
        return gpus
    return [gpus[index] for index in _indices(allowed, [gpu.uuid for gpu in gpus])]


def _indices(allowed: str, uuids: Sequence[str]) -> list[int]:
    """Read the variable as CUDA does: up to what is no GPU; what is twice is none.

    Parts of a GPU ("MIG-...") are no whole one.
    """
    indices: list[int] = []
    by_uuid = allowed.startswith("GPU-")
    for name in allowed.split(","):
        index = _of_uuid(name, uuids) if by_uuid else _number(name)
        if index in indices:
            return []
        if not 0 <= index < len(uuids):
            break
        indices.append(index)
    return indices


def _of_uuid(name: str, uuids: Sequence[str]) -> int:
    """Find the only UUID that begins so; -1 where there is none, or more."""
    begun = [index for index, uuid in enumerate(uuids) if uuid.startswith(name)]
    return begun[0] if name.startswith("GPU-") and len(begun) == 1 else -1


def _number(name: str) -> int:
    """Read what a name begins with, as C does: " 1x" is 1; -1 where that is none."""
    number = re.match(r"\s*\+?([0-9]{1,6})", name)
    return int(number[1]) if number else -1


def _text(answer: object) -> str:
    return answer.decode(errors="replace") if isinstance(answer, bytes) else str(answer)

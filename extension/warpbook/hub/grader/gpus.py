"""GPUs as the driver tells of them: which are here, and what they have used."""

from __future__ import annotations

import os

from warpbook.hub.grader_protocol import Device
from warpbook_monitors.errors import MonitorError
from warpbook_monitors.nvml.gate import call


def energy_mj(uuid: str) -> int | None:
    """Give what a GPU has used since its driver was loaded; None if unknown."""
    if not uuid:
        return None
    try:
        handle = call("nvmlDeviceGetHandleByUUID", uuid.encode())
        return int(call("nvmlDeviceGetTotalEnergyConsumption", handle))
    except MonitorError:
        return None


def devices() -> tuple[Device, ...]:
    """Give the whole GPUs that programs started here may use."""
    allowed = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = None if allowed is None else {n.strip() for n in allowed.split(",")}
    gpus: list[Device] = []
    try:
        for index in range(call("nvmlDeviceGetCount")):
            handle = call("nvmlDeviceGetHandleByIndex", index)
            uuid = _text(call("nvmlDeviceGetUUID", handle))
            if names is not None and not names & {uuid, str(index)}:
                continue
            if not _has_mig(handle):
                name = _text(call("nvmlDeviceGetName", handle))
                gpus.append(Device(uuid, name))
    except MonitorError:
        # what was found until then can grade
        return tuple(gpus)
    return tuple(gpus)


def _has_mig(handle: object) -> bool:
    """Whether a GPU is split into parts, on which labs are not graded."""
    try:
        current, _ = call("nvmlDeviceGetMigMode", handle)
    except MonitorError:
        return False
    return bool(current)


def _text(answer: object) -> str:
    return answer.decode(errors="replace") if isinstance(answer, bytes) else str(answer)

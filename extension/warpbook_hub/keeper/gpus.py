"""The GPUs behind device nodes: names, work and energy, as the driver tells them."""

from __future__ import annotations

import os
import stat
import time

from msgspec import Struct

from warpbook_hub.keeper.holders import real_uid
from warpbook_monitors.errors import MonitorError
from warpbook_monitors.nvml.gate import call

_LOOK_BACK_S = 3.0


class Gpu(Struct, frozen=True):
    """A device node, and the GPU that it opens."""

    path: str
    #: its UUID; the path, where the driver does not know it
    id: str
    name: str


def gpu_of(path: str) -> Gpu:
    """Name the GPU that a device node opens."""
    name = os.path.basename(path)
    if name.removeprefix("nvidia").isdecimal():
        number = int(name.removeprefix("nvidia"))
        try:
            for index in range(call("nvmlDeviceGetCount")):
                handle = call("nvmlDeviceGetHandleByIndex", index)
                if call("nvmlDeviceGetMinorNumber", handle) == number:
                    uuid = _text(call("nvmlDeviceGetUUID", handle))
                    return Gpu(path, uuid, _text(call("nvmlDeviceGetName", handle)))
        except MonitorError:
            # without the driver it is a device like any other
            pass
    return Gpu(path, path, name)


def problem_of(path: str) -> str:
    """Say why a device can't be leased; empty if it can."""
    try:
        status = os.stat(path)
    except OSError as problem:
        return f"{path}: {problem.strerror}."
    if not stat.S_ISCHR(status.st_mode):
        return f"{path} is no device."
    if status.st_mode & stat.S_IRWXO:
        return (
            f"{path} is open to everybody. Load the driver with "
            "NVreg_DeviceFileMode=0660, or take the rights of others away."
        )
    return ""


def is_busy(gpu: Gpu, uid: int) -> bool | None:
    """Whether an account's processes work on a GPU; None if the driver can't tell."""
    if gpu.id == gpu.path:
        return None
    since_us = int((time.time() - _LOOK_BACK_S) * 1e6)
    try:
        handle = call("nvmlDeviceGetHandleByUUID", gpu.id.encode())
        samples = call("nvmlDeviceGetProcessUtilization", handle, since_us)
    except MonitorError as problem:
        # no process has worked since
        return False if "Not Found" in str(problem) else None
    return any(sample.smUtil and _uid(sample.pid) == uid for sample in samples)


def energy_mj(gpu: Gpu) -> int | None:
    """Give what a GPU has used since its driver was loaded; None if unknown."""
    if gpu.id == gpu.path:
        return None
    try:
        handle = call("nvmlDeviceGetHandleByUUID", gpu.id.encode())
        return int(call("nvmlDeviceGetTotalEnergyConsumption", handle))
    except MonitorError:
        return None


def _uid(pid: int) -> int | None:
    try:
        return real_uid(pid)
    except OSError:
        return None


def _text(answer: object) -> str:
    return answer.decode(errors="replace") if isinstance(answer, bytes) else str(answer)

"""Which GPU grades here, asked of NVML, so that this process uses none itself."""

from __future__ import annotations

import os
from typing import NamedTuple

from warpbook_labs.errors import NoGpu
from warpbook_monitors.errors import MonitorError
from warpbook_monitors.nvml.gate import call
from warpbook_monitors.nvml.visible import visible_gpus


class Gpu(NamedTuple):
    """A GPU that can grade."""

    uuid: str
    name: str
    #: such as "sm_90"
    architecture: str
    driver: str | None


def find_gpu() -> Gpu:
    """Give the first GPU that programs may use here.

    Raises:
        NoGpu: there is none, or it is shared in a way that can't be graded.
    """
    try:
        gpus = visible_gpus()
        if not gpus:
            visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")[:80]
            raise NoGpu(
                f"Programs may use no whole GPU: CUDA_VISIBLE_DEVICES is `{visible}`."
            )
        handle, uuid = gpus[0]
        major, minor = call("nvmlDeviceGetCudaComputeCapability", handle)
        name = _text(call("nvmlDeviceGetName", handle))
    except MonitorError as problem:
        raise NoGpu(str(problem)) from None
    if _has_mig(handle):
        raise NoGpu(f"{name} is split into parts (MIG), on which labs are not graded.")
    return Gpu(uuid, name, f"sm_{major}{minor}", _driver())


def _has_mig(handle: object) -> bool:
    try:
        current, _ = call("nvmlDeviceGetMigMode", handle)
    except MonitorError:
        return False
    return bool(current)


def _driver() -> str | None:
    try:
        return _text(call("nvmlSystemGetDriverVersion"))
    except MonitorError:
        return None


def _text(said: object) -> str:
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)

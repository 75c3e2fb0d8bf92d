"""The GPU that torch works on, as the driver knows it.

`CUDA_VISIBLE_DEVICES` says which one CUDA calls 0; NVML, nvidia-smi and warpbook's
server see all of the machine and count them for themselves.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

from warpbook_monitors.frames import Device
from warpbook_monitors.nvml import gate as nvml

# in a process of its own: not every module here sets CUDA up
_ASKED = "import torch; print(torch.cuda.get_device_properties(0).uuid)"


@cache
def used_uuid() -> str:
    """Give its UUID as NVML writes it."""
    command = [sys.executable, "-c", _ASKED]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return f"GPU-{output.strip()}"


def used_handle() -> Any:
    """Give NVML's handle of it."""
    return nvml.call("nvmlDeviceGetHandleByUUID", used_uuid().encode())


@cache
def used_index() -> int:
    """Give its number among all GPUs of the machine."""
    return int(nvml.call("nvmlDeviceGetIndex", used_handle()))


def used_position(devices: Sequence[Device]) -> int:
    """Find it among what a sampler reads."""
    ids = [device.id for device in devices]
    return ids.index(f"gpu:{used_uuid()}")

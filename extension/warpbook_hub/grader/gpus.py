"""GPUs as the driver tells of them: which are here, and what they have used."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook.hub_protocol import Device
from warpbook_monitors.errors import MonitorError
from warpbook_monitors.nvml.gate import call
from warpbook_monitors.nvml.visible import visible_gpus


def energy_mj(device: str) -> int | None:
    """Give what GPUs have used since their driver was loaded; None if unknown.

    Args:
        device: their UUIDs, with commas.
    """
    if not device:
        return None
    total_mj = 0
    try:
        for uuid in device.split(","):
            handle = call("nvmlDeviceGetHandleByUUID", uuid.encode())
            total_mj += int(call("nvmlDeviceGetTotalEnergyConsumption", handle))
    except MonitorError:
        return None
    return total_mj


def gangs(gpus: Sequence[Device], together: int) -> tuple[Device, ...]:
    """Make devices of several GPUs of one machine, which a job has at once.

    Args:
        gpus: of one machine.
        together: of each device; GPUs that are left over are left out.

    Returns:
        Devices whose UUID is those of their GPUs, with commas.
    """
    if together == 1:
        return tuple(gpus)
    whole = len(gpus) - len(gpus) % together
    return tuple(
        Device(
            ",".join(gpu.uuid for gpu in gpus[first : first + together]),
            f"{together} x {gpus[first].name}",
        )
        for first in range(0, whole, together)
    )


def devices() -> tuple[Device, ...]:
    """Give the whole GPUs that programs started here may use."""
    gpus: list[Device] = []
    try:
        for handle, uuid in visible_gpus():
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

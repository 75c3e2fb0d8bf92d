"""Short names of devices, the same in alerts, in the terminal and in the dashboard."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook_monitors.frames import Device


def device_label(device: Device, devices: Sequence[Device]) -> str:
    """Name a device as people do: "GPU 0", "Host", "MIG 3:7" for instance 7 of GPU 3.

    Args:
        device: one of `devices`.
        devices: all of the machine, to know the GPU of an instance.
    """
    if device.kind == "host":
        return "Host"
    if device.kind == "gpu" and device.index is not None:
        return f"GPU {device.index}"
    instance = device.facts.get("gpu_instance_id")
    if device.kind != "mig" or instance is None:
        return device.name[:60]
    parent = device.facts.get("parent")
    index = next((gpu.index for gpu in devices if gpu.id == parent), "?")
    label = f"MIG {index}:{instance}"
    if not any(_is_beside(other, device) for other in devices):
        return label
    # compute instances may share a GPU instance
    return f"{label}/{device.facts.get('compute_instance_id', '?')}"


def full_name(gpu: Device) -> str:
    """Name a GPU with its chip: "GPU 0 NVIDIA H200"; without an index by its name."""
    return gpu.name if gpu.index is None else f"GPU {gpu.index} {gpu.name}"


def _is_beside(one: Device, other: Device) -> bool:
    """Whether two compute instances are parts of one GPU instance."""
    return one.id != other.id and all(
        one.facts.get(name) == other.facts.get(name)
        for name in ("parent", "gpu_instance_id")
    )

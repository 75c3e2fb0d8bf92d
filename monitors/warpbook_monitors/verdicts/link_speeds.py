"""What the links of a GPU could carry in one direction, from its facts."""

from __future__ import annotations

from warpbook_monitors.frames import Device

#: bytes per second of one lane by generation, after line coding (PCI-SIG base spec)
_LANE_BYTES_PER_S = {1: 250e6, 2: 500e6, 3: 985e6, 4: 1969e6, 5: 3938e6, 6: 7563e6}
#: bytes per second of one NVLink by compute capability (NVIDIA's architecture papers);
#: of cards with fewer or slower links than these it is not known
_NVLINK_BYTES_PER_S = {"7.0": 25e9, "8.0": 25e9, "9.0": 25e9, "10.0": 50e9}


def pcie_bytes_per_s(device: Device) -> float | None:
    """The most over PCIe; None where the driver does not tell the link."""
    lane = _LANE_BYTES_PER_S.get(_whole(device, "pcie_generation"))
    width = _whole(device, "pcie_width")
    return lane * width if lane is not None and width else None


def nvlink_bytes_per_s(device: Device) -> float | None:
    """The most over all NVLinks that are up; None where that is not known."""
    link = _NVLINK_BYTES_PER_S.get(str(device.facts.get("compute_capability")))
    count = _whole(device, "nvlink_count")
    return link * count if link is not None and count else None


def _whole(device: Device, fact: str) -> int:
    value = device.facts.get(fact)
    return value if isinstance(value, int) else 0

"""AMD's GPUs for warpbook, as the Linux driver amdgpu tells of them in files."""

from __future__ import annotations

import os
from pathlib import Path

from warpbook_monitors.errors import DeviceLost, Unavailable
from warpbook_monitors.frames import Device
from warpbook_monitors.metrics import GPU
from warpbook_monitors.source import Discovery

#: by metric, the driver's file and what its number is multiplied by
FILES = {
    "gpu_utilization_ratio": ("gpu_busy_percent", 0.01),
    "memory_used_bytes": ("mem_info_vram_used", 1),
    "power_watts": ("hwmon/hwmon*/power1_average", 1e-6),
    "temperature_celsius": ("hwmon/hwmon*/temp1_input", 1e-3),
}


class DrmSource:
    """Finds the GPUs of the driver."""

    what = "amdgpu"

    def open(self) -> Discovery:
        """Open each GPU that tells how busy it is.

        Raises:
            Unavailable: there is none.
        """
        root = Path(os.environ.get("DRM_ROOT", "/sys/class/drm"))
        files = sorted(root.glob("card*/device/gpu_busy_percent"))
        if not files:
            raise Unavailable(self.what, "no_device", f"{root} has no GPU of amdgpu.")
        return Discovery(
            [DrmProbe(number, it.parent) for number, it in enumerate(files)]
        )

    def close(self) -> None:
        """Files need no closing."""


class DrmProbe:
    """Reads one GPU; a file that its driver lacks is a metric that is not supported."""

    def __init__(self, number: int, folder: Path) -> None:
        """Describe it: each metric with its state."""
        self._files = {
            name: (next(folder.glob(file), folder / file), scale)
            for name, (file, scale) in FILES.items()
        }
        self.device = Device(
            id=f"gpu:drm:{folder.parent.name}",
            kind="gpu",
            name=f"AMD GPU {number}",
            index=None,
            origin="live",
            metrics=tuple(
                GPU[name].on_device()
                if file.exists()
                else GPU[name].on_device("not_supported", f"No file {file.name}.")
                for name, (file, _) in self._files.items()
            ),
            facts={"memory_total_bytes": int(_number(folder / "mem_info_vram_total"))},
        )

    def read(self, now_ns: int) -> tuple[float | None, ...]:
        """Return one value for each metric of `device`, None for what it lacks.

        Raises:
            DeviceLost: the GPU is gone.
        """
        del now_ns
        return tuple(
            _number(file) * scale if metric.state == "ok" else None
            for metric, (file, scale) in zip(
                self.device.metrics, self._files.values(), strict=True
            )
        )

    def rest(self) -> None:
        """Nothing spans two reads."""


def _number(file: Path) -> float:
    try:
        return float(file.read_text())
    except FileNotFoundError:
        raise DeviceLost(f"{file} is gone.") from None

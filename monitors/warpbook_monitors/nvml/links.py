"""Traffic over PCIe and NVLink on GPUs whose links GPM does not measure."""

from __future__ import annotations

from typing import Any

from warpbook_monitors.nvml import gate as nvml
from warpbook_monitors.nvml.gate import Field, NotSupported, call
from warpbook_monitors.nvml.questions import Values

#: what NVML calls KB: of NVLink's counters 1024 bytes; of PCIe 1000, which is within
#: 0.5 % of GPM on an H200 where 1024 is 3 % above it
_NVLINK_KB, _PCIE_KB = 1024, 1000
_PCIE_TX, _PCIE_RX = 0, 1  # NVML's enum
#: a recording of one frame in ten seconds has spans of ten
LONGEST_SPAN_US = 15_000_000

Handle = Any


class Links:
    """Reads one GPU's links; NVLink as the growth of counters over their own time."""

    def __init__(self, nvlink_count: int | None) -> None:
        """Take how many NVLinks are up, as far as it is known."""
        self._nvlink_count = nvlink_count
        self._before: list[Field] | None = None

    def rest(self) -> None:
        """Forget the counters, so that no mean spans the rest."""
        self._before = None

    def pcie(self, gpu: Handle) -> Values:
        """Bytes per second in and out; NVML watches each for 20 ms meanwhile.

        Raises:
            NvmlError: NVML does not measure it on this GPU.
            DeviceLost: the GPU is gone.
        """
        rx_kb = call("nvmlDeviceGetPcieThroughput", gpu, _PCIE_RX)
        tx_kb = call("nvmlDeviceGetPcieThroughput", gpu, _PCIE_TX)
        return rx_kb * _PCIE_KB, tx_kb * _PCIE_KB

    def nvlink(self, gpu: Handle) -> Values:
        """Bytes per second in and out since the last call; None at first.

        Raises:
            NvmlError: NVML does not count it on this GPU.
            DeviceLost: the GPU is gone.
        """
        if self._nvlink_count == 0:
            raise NotSupported("No NVLink of this GPU is up.")
        before, now = (
            self._before,
            nvml.fields(
                gpu,
                "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX",
                "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX",
                scope=nvml.ALL_LINKS,
            ),
        )
        self._before = now
        if before is None:
            return None, None
        rx, tx = (_rate(old, new) for old, new in zip(before, now, strict=True))
        return rx, tx


def _rate(old: Field, new: Field) -> float | None:
    span_us = new.taken_us - old.taken_us
    grown_kb = new.value - old.value
    # a counter that went back was reset; a clock that did was set
    if not 0 < span_us <= LONGEST_SPAN_US or grown_kb < 0:
        return None
    return round(grown_kb * _NVLINK_KB * 1e6 / span_us)

"""Traffic over PCIe and NVLink on GPUs whose links GPM does not measure."""

from __future__ import annotations

from typing import Any

from warpbook_monitors import nvml
from warpbook_monitors.nvml import Field, NotSupported, call
from warpbook_monitors.nvml_questions import Values

_KIB = 1024
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
        rx_kib = call("nvmlDeviceGetPcieThroughput", gpu, _PCIE_RX)
        tx_kib = call("nvmlDeviceGetPcieThroughput", gpu, _PCIE_TX)
        return rx_kib * _KIB, tx_kib * _KIB

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
    grown_kib = new.value - old.value
    # a counter that went back was reset; a clock that did was set
    if not 0 < span_us <= LONGEST_SPAN_US or grown_kib < 0:
        return None
    return round(grown_kib * _KIB * 1e6 / span_us)

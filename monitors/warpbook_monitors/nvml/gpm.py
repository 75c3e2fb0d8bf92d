"""Windows of NVML's GPU performance monitoring (GPM), one GPU at a time.

GPM gives counters; a reading is the difference of two samples. Two samples less
than 100 ms apart give zeros and NaN with a success code (measured on an H200), so
each sample is differenced with the youngest one that is at least 100 ms older.

NVML crashes a process in which several threads take samples before one of them has
read a window (driver 580.159, four H200s: 142 of 144 processes; none of 72 where one
thread had read a window first, however short). So the first to come does that alone.
"""

from __future__ import annotations

import ctypes
import math
import struct
import threading
import time
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from warpbook_monitors.metrics import GPM
from warpbook_monitors.nvml import gate as nvml

SHORTEST_WINDOW_NS = 100_000_000
#: after a hung call a window would average over what nobody saw; a recording of one
#: frame in ten seconds has windows of ten
LONGEST_WINDOW_NS = 15_000_000_000

_MIB = 1024 * 1024

#: by metric: the binding's name of the id. Only known ids are asked for: an H200
#: answers unknown ones with 0.0 and success.
_ID_NAMES = {
    "sm_active_ratio": "SM_UTIL",
    "sm_occupancy_ratio": "SM_OCCUPANCY",
    "tensor_active_ratio": "ANY_TENSOR_UTIL",
    "hmma_active_ratio": "HMMA_TENSOR_UTIL",
    "imma_active_ratio": "IMMA_TENSOR_UTIL",
    "dfma_active_ratio": "DFMA_TENSOR_UTIL",
    "fp32_active_ratio": "FP32_UTIL",
    "fp64_active_ratio": "FP64_UTIL",
    "fp16_active_ratio": "FP16_UTIL",
    "integer_active_ratio": "INTEGER_UTIL",
    "dram_active_ratio": "DRAM_BW_UTIL",
    "pcie_rx_bytes_per_s": "PCIE_RX_PER_SEC",
    "pcie_tx_bytes_per_s": "PCIE_TX_PER_SEC",
    "nvlink_rx_bytes_per_s": "NVLINK_TOTAL_RX_PER_SEC",
    "nvlink_tx_bytes_per_s": "NVLINK_TOTAL_TX_PER_SEC",
}

NAMES = tuple(GPM)
#: what is of the chip and not of its links
CHIP_NAMES = tuple(name for name in NAMES if name.endswith("_ratio"))
#: a share above it is no measurement; a window's edges may give a little over 100
MOST_PERCENT = 105.0
Values = tuple[float | None, ...]
_NVML_SUCCESS = 0
_NVML_NOT_SUPPORTED = 3

_first_use = threading.Lock()
#: the start of NVML in which a window was read
_used_in = 0


class _Sample(NamedTuple):
    memory: Any
    taken_ns: int


class GpmWindow:
    """Takes a sample a read, and reads the window that ends with it."""

    def __init__(
        self,
        names: Sequence[str] = NAMES,
        without: Iterable[str] = (),
        gpu_instance: int | None = None,
    ) -> None:
        """Give `names` in this order, and None for those in `without`.

        Args:
            names: of `metrics.GPM`.
            without: those that need not be asked for.
            gpu_instance: NVML's id of the MIG instance that is read, if it is one.
        """
        self.names = tuple(names)
        #: metrics that GPM does not give on this GPU
        self.missing: Collection[str] = frozenset(without)
        self._changed = False
        self._instance = gpu_instance
        self._supported = False
        self._kept: deque[_Sample] = deque()
        self._free: list[Any] = []
        self._request: Any = None
        self._results: Any = None
        self._unpack = struct.Struct("@IId")
        self._asked: list[tuple[int, bool]] = []

    def read(self, handle: object) -> Values:
        """Give one value per name; None until a window is long enough.

        Args:
            handle: of the GPU, also where a MIG instance is read.

        Raises:
            NvmlError: GPM can't be read on this GPU.
            DeviceLost: the GPU is gone.
        """
        if not self._supported:
            self._check_support(handle)
        if not self._is_used_already(handle):
            return (None,) * len(self.names)
        begun_ns = time.monotonic_ns()
        memory = self._sample(handle)
        oldest = self._youngest_before(begun_ns - SHORTEST_WINDOW_NS)
        self._kept.append(_Sample(memory, time.monotonic_ns()))
        if oldest is None or begun_ns - oldest.taken_ns > LONGEST_WINDOW_NS:
            return (None,) * len(self.names)
        return self._difference(oldest.memory, memory)

    def take_change(self) -> bool:
        """Whether `missing` has changed since this was asked last."""
        changed, self._changed = self._changed, False
        return changed

    def rest(self) -> None:
        """Forget the samples, so that no window spans the rest."""
        self._free.extend(sample.memory for sample in self._kept)
        self._kept.clear()

    def close(self) -> None:
        """Give the samples' memory back to NVML."""
        self.rest()
        while self._free:
            nvml.call("nvmlGpmSampleFree", self._free.pop())

    def _is_used_already(self, handle: object) -> bool:
        """Be the first to read a window; False while another thread is."""
        global _used_in
        if _used_in == nvml.starts():
            return True
        if not _first_use.acquire(blocking=False):
            return False
        try:
            if _used_in != nvml.starts():
                pair: list[Any] = []
                try:
                    pair += [self._sample(handle)]
                    pair += [self._sample(handle)]
                    self._ask(*pair)
                finally:
                    self._free += pair
                _used_in = nvml.starts()
        finally:
            _first_use.release()
        return True

    def _sample(self, handle: object) -> Any:
        """Take one, in memory that is used again."""
        memory = self._free.pop() if self._free else nvml.call("nvmlGpmSampleAlloc")
        try:
            if self._instance is None:
                nvml.call("nvmlGpmSampleGet", handle, memory)
            else:
                nvml.call("nvmlGpmMigSampleGet", handle, self._instance, memory)
        except BaseException:
            self._free.append(memory)
            raise
        return memory

    def _check_support(self, handle: object) -> None:
        try:
            support = nvml.call("nvmlGpmQueryDeviceSupport", handle)
        except nvml.FunctionMissing:
            raise nvml.FunctionMissing(
                "The NVIDIA driver is too old for NVML's performance monitoring (GPM)."
            ) from None
        if not support.isSupportedDevice:
            raise nvml.NotSupported(
                "NVML's performance monitoring (GPM) needs a Hopper GPU or newer."
            )
        self._prepare()
        self._supported = True

    def _prepare(self) -> None:
        """Write the ids once; NVML fills the same structure at each read."""
        self._request = request = nvml.constant("c_nvmlGpmMetricsGet_t")()
        request.version = nvml.constant("NVML_GPM_METRICS_GET_VERSION")
        self._asked.clear()
        for position, name in enumerate(self.names):
            number = nvml.constant(f"NVML_GPM_METRIC_{_ID_NAMES[name]}")
            if name not in self.missing and number is not None:
                request.metrics[len(self._asked)].metricId = number
                self._asked.append((position, name.endswith("_ratio")))
        request.numMetrics = len(self._asked)
        # read as one block: the binding's attribute access costs 1 µs a field
        result = nvml.constant("c_nvmlGpmMetric_t")
        size = ctypes.sizeof(result)
        self._unpack = struct.Struct(f"@IId{size - 16}x")
        self._results = (ctypes.c_char * (size * len(self._asked))).from_buffer(
            request, type(request).metrics.offset
        )

    def _youngest_before(self, latest_ns: int) -> _Sample | None:
        """The youngest sample taken by then; what is older than it is let go."""
        kept = self._kept
        while len(kept) > 1 and kept[1].taken_ns <= latest_ns:
            self._free.append(kept.popleft().memory)
        return kept[0] if kept and kept[0].taken_ns <= latest_ns else None

    def _ask(self, older: Any, newer: Any) -> None:
        self._request.sample1 = older
        self._request.sample2 = newer
        nvml.call("nvmlGpmMetricsGet", self._request)

    def _difference(self, older: Any, newer: Any) -> Values:
        self._ask(older, newer)
        values: list[float | None] = [None] * len(self.names)
        refused = []
        for (position, is_ratio), (_, code, value) in zip(
            self._asked, self._unpack.iter_unpack(self._results), strict=True
        ):
            if code == _NVML_NOT_SUPPORTED:
                refused.append(self.names[position])
            elif code != _NVML_SUCCESS or not math.isfinite(value) or value < 0:
                continue
            elif not is_ratio:
                values[position] = round(value * _MIB)
            elif value <= MOST_PERCENT:
                values[position] = round(value / 100, 5)
        if refused:
            self.missing = frozenset((*self.missing, *refused))
            self._changed = True
            self._prepare()
        return tuple(values)

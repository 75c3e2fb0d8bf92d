"""What an operation costs the CPU that judges it, told before it is done.

Whoever writes a program by hand may ask for what takes minutes, or all memory there is.

How fast the simulated machine is.

Figures that say *measured* were measured on an NVIDIA H200 (driver 580, CUDA 13.0,
PyTorch 2.11). Those that say *assumed* are plausible, and nobody has measured them yet:
no lab's threshold may hang on one.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping

from warpbook_labs.engines.simulated.judging.calls.allowed import base_of
from warpbook_labs.engines.simulated.judging.calls.operations import Operation
from warpbook_labs.engines.simulated.program import Launch
from warpbook_labs.results.findings import HostCounts, top_lines

# copies between host and GPU
#: bytes/s of pinned memory in either direction; measured: copies of 128 MiB
PINNED_BYTES_PER_S = 55.4e9
#: bytes/s of pageable memory, which is staged through pinned memory; assumed
PAGEABLE_BYTES_PER_S = 10e9
#: ns between two copies in a queue; measured: eight copies in a row
COPY_GAP_NS = 2_300

# kernels that reach page-locked memory themselves
#: bytes/s that they read and write; measured: rows of 1 KiB at random places; a fill
MAPPED_READ_BYTES_PER_S = 44.3e9
MAPPED_WRITE_BYTES_PER_S = 51.9e9
#: ns for a row at a random place, however short; measured: rows of 32 to 256 bytes
MAPPED_ROW_NS = 16.8
#: bytes that come at least; of the GPU's documentation: a sector of its cache
SECTOR_BYTES = 32

# kernels
#: bytes/s that a kernel moves, read and written; measured: a copy within its memory
DEVICE_BYTES_PER_S = 4.27e12
#: products of matrices; measured: random data, dense
MATRIX_FLOPS_PER_S = {
    "float64": 61e12,
    "float32": 51.2e12,
    "float16": 668e12,
    "int8": 916e12,
    # assumed to be as fast as float16, and twice as fast
    "bfloat16": 668e12,
    "float8_e4m3fn": 1336e12,
    "float8_e5m2": 1336e12,
}
#: arithmetic outside of matrix products; that of FP32 products, measured
FLOPS_PER_S = 51.2e12
#: ns that the smallest kernel takes; measured: additions to 64 numbers
KERNEL_NS = 1_000
#: ns between two kernels of a stream; measured: pointwise kernels of 0.25 ms
KERNEL_GAP_NS = 1_400
#: ns between two kernels of a graph; measured: a graph of 800 kernels
GRAPH_GAP_NS = 260

# the host
#: ns to launch one kernel from PyTorch; measured: 198,000 a second
LAUNCH_NS = 5_000
#: ns to queue a copy from PyTorch; measured: `copy_` under the profiler
COPY_CALL_NS = 5_500
#: ns from a launch on an idle GPU until the kernel begins; measured: median of 800
LAUNCH_LATENCY_NS = 2_300
#: ns to launch a graph; assumed
GRAPH_LAUNCH_NS = 10_000
#: ns to record an event, or to let a stream wait for one; measured: the driver's call
EVENT_NS = 500
#: ns of a wait that has nothing to wait for; measured: `cudaDeviceSynchronize`
SYNCHRONIZE_NS = 5_700
#: ns to make an executable graph, for each of its nodes; assumed
INSTANTIATE_NODE_NS = 2_000
#: bytes/s of the CPU's own work, read and written; assumed
HOST_BYTES_PER_S = 10e9
#: operations/s of the CPU; assumed
HOST_FLOPS_PER_S = 20e9
#: ns of the smallest piece of the CPU's work; assumed
HOST_WORK_NS = 2_000


#: counts that are of times: the lines of another count explain them
_EXPLAINED_BY = {
    "percent_of_bound": "synchronizations",
    "total_ns": "synchronizations",
}


class Counting:
    """The counts of one call."""

    def __init__(self) -> None:
        self.counts = HostCounts()
        self._amounts: defaultdict[str, Counter[int]] = defaultdict(Counter)

    def add(self, count: str, amount: int, line: int) -> None:
        """Add to a count what a line asked for; a line of 0 is not known."""
        setattr(self.counts, count, getattr(self.counts, count) + amount)
        self._amounts[count][line] += amount

    def hold(self, size_bytes: int, by_line: Mapping[int, int]) -> None:
        """Set how much memory was held at one time, and which lines made it."""
        self.counts.held_bytes = size_bytes
        self._amounts["held_bytes"] = Counter(by_line)

    def lines(self) -> dict[str, tuple[int, ...]]:
        """Give by count the lines that most of it comes of, the most first."""
        lines = {count: top_lines(amounts) for count, amounts in self._amounts.items()}
        for count, other in _EXPLAINED_BY.items():
            lines[count] = lines.get(other, ())
        return lines


#: ns for an element; measured, where it is slowest: float64 too large for float16
_ELEMENT_NS = 100.0
_SLOW_ELEMENT_NS = {
    "erf": 250.0,
    "floor_divide": 180.0,
    "gelu": 300.0,
    "gelu_tanh": 220.0,
    "log_softmax": 150.0,
    "norm": 150.0,
    "softmax": 150.0,
    "topk": 500.0,
}
#: ns for a byte of memory beside operands; of convolutions, which copy windows into it
_SCRATCH_NS = 3.0
#: ns for an operation of a product; measured: BLAS, and NumPy's loop for whole numbers
_FLOP_NS = 0.06
_WHOLE_FLOP_NS = 1.5


def seconds(
    operation: Operation, launch: Launch, flops: float, scratch_bytes: float
) -> float:
    """Say how long the CPU takes for a launch, at most."""
    views = (*launch.reads, *launch.writes)
    elements = max((math.prod(view.shape) for view in views), default=0)
    base = base_of(launch.operation) or launch.operation
    ns = elements * _SLOW_ELEMENT_NS.get(base, _ELEMENT_NS)
    ns += flops * (_WHOLE_FLOP_NS if _is_whole(operation, launch) else _FLOP_NS)
    return (ns + scratch_bytes * _SCRATCH_NS) / 1e9


def _is_whole(operation: Operation, launch: Launch) -> bool:
    """Tell whether it is a product of whole numbers."""
    factors = launch.reads[-2:]
    is_product = operation.unit == "tensor"
    return is_product and not any(view.dtype.startswith("float") for view in factors)

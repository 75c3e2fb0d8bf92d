"""How fast the simulated machine is.

Figures that say *measured* were measured on an NVIDIA H200 (driver 580, CUDA 13.0,
PyTorch 2.11). Those that say *assumed* are plausible, and nobody has measured them yet:
no lab's threshold may hang on one.
"""

from __future__ import annotations

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

"""Cells of any CUDA library: their kernels are seen, matched and named, without torch.

    pytest -m gpu -s tests/gpu/test_any_library.py

Each library has a kernel of its own. The first cell launches a tiny kernel many times,
which no host can do as fast as the GPU runs it; the second keeps the GPU full.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

import pytest

from tests.gpu.notebook import Notebook

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

LAUNCHES = 1000
#: who is at fault while the GPU mostly idles; which one depends on how long the
#: library takes for a launch
HOST = {"launch-bound", "host-bound"}
NOT_OF_A_FULL_GPU = HOST | {"sync-bound", "transfer-bound", "communication-bound"}


@dataclass(frozen=True)
class Library:
    """What is run of a library."""

    module: str
    setup: str
    #: LAUNCHES tiny kernels, waited for
    many: str
    #: large kernels that keep the GPU full, waited for
    large: str
    #: what the tiny kernel's name holds
    kernel: str
    #: a library that fuses and batches may run some kernels more
    is_exact: bool = True


CUPY = Library(
    "cupy",
    '''
import cupy, numpy
code = r"""extern "C" __global__ void warp_scale(float *x, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) x[i] += 1.0f;
}"""
warp_scale = cupy.RawKernel(code, "warp_scale")
small = cupy.ones(256, dtype=cupy.float32)
large = cupy.ones(1 << 28, dtype=cupy.float32)
count = numpy.int32(256)
warp_scale((1,), (256,), (small, count))
large += 1
cupy.cuda.runtime.deviceSynchronize()
''',
    f"""
for _ in range({LAUNCHES}):
    warp_scale((1,), (256,), (small, count))
cupy.cuda.runtime.deviceSynchronize()
""",
    """
for _ in range(60):
    large += 1
cupy.cuda.runtime.deviceSynchronize()
""",
    "warp_scale",
)
TRITON = Library(
    "triton",
    """
import torch, triton, triton.language as tl

@triton.jit
def warp_scale(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)

small = torch.ones(256, device="cuda")
large = torch.ones(1 << 28, device="cuda")
warp_scale[(1,)](small, 256, BLOCK=256)
warp_scale[(1 << 18,)](large, 1 << 28, BLOCK=1024)
torch.cuda.synchronize()
""",
    f"""
for _ in range({LAUNCHES}):
    warp_scale[(1,)](small, 256, BLOCK=256)
torch.cuda.synchronize()
""",
    """
for _ in range(60):
    warp_scale[(1 << 18,)](large, 1 << 28, BLOCK=1024)
torch.cuda.synchronize()
""",
    "warp_scale",
)
NUMBA = Library(
    "numba_cuda",
    """
import numpy
if not hasattr(numpy, "row_stack"):
    # NumPy 2.5 has no such name any more, and numba-cuda 0.30 looks for it
    numpy.row_stack = numpy.vstack
from numba import cuda

@cuda.jit
def warp_scale(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1

small = cuda.to_device(numpy.ones(256, numpy.float32))
large = cuda.device_array(1 << 28, numpy.float32)
warp_scale[1, 256](small)
warp_scale[1 << 20, 256](large)
cuda.synchronize()
""",
    f"""
for _ in range({LAUNCHES}):
    warp_scale[1, 256](small)
cuda.synchronize()
""",
    """
for _ in range(60):
    warp_scale[1 << 20, 256](large)
cuda.synchronize()
""",
    "warp_scale",
)
JAX = Library(
    "jax",
    """
import os
# else it takes three quarters of the GPU's memory
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
import jax, jax.numpy as jnp
assert jax.default_backend() == "gpu", jax.devices()
step = jax.jit(lambda x: x * 0.5 + 1)
small = step(jnp.ones(256)).block_until_ready()
large = step(jnp.ones(1 << 28)).block_until_ready()
""",
    f"""
for _ in range({LAUNCHES}):
    small = step(small)
_ = small.block_until_ready()
""",
    """
for _ in range(60):
    large = step(large)
_ = large.block_until_ready()
""",
    # XLA chooses the name, and may run another kernel beside it
    "",
    is_exact=False,
)
CUDA_CORE = Library(
    "cuda.core",
    '''
import numpy, torch
try:
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
except ImportError:
    from cuda.core.experimental import (
        Device, LaunchConfig, Program, ProgramOptions, launch)
device = Device()
device.set_current()
stream = device.create_stream()
code = r"""extern "C" __global__ void warp_scale(float *x, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) x[i] += 1.0f;
}"""
arch = "sm_" + "".join(str(each) for each in device.compute_capability)
program = Program(code, "c++", ProgramOptions(arch=arch))
warp_scale = program.compile("cubin").get_kernel("warp_scale")
# memory from torch: the two share the context
small = torch.ones(256, device="cuda")
large = torch.ones(1 << 28, device="cuda")
torch.cuda.synchronize()
few, many = numpy.int32(256), numpy.int32(1 << 28)
one_block = LaunchConfig(grid=1, block=256)
all_blocks = LaunchConfig(grid=1 << 20, block=256)
launch(stream, one_block, warp_scale, small.data_ptr(), few)
launch(stream, all_blocks, warp_scale, large.data_ptr(), many)
stream.sync()
''',
    f"""
at = small.data_ptr()
for _ in range({LAUNCHES}):
    launch(stream, one_block, warp_scale, at, few)
stream.sync()
""",
    """
at = large.data_ptr()
for _ in range(60):
    launch(stream, all_blocks, warp_scale, at, many)
stream.sync()
""",
    "warp_scale",
)


def is_installed(module: str) -> bool:
    """Importing it here would set CUDA up in the process of the tests."""
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


@pytest.mark.parametrize(
    "library",
    [CUPY, TRITON, NUMBA, JAX, CUDA_CORE],
    ids=lambda library: library.module,
)
def test_its_kernels_are_seen_matched_and_named(
    library: Library, notebook: Notebook
) -> None:
    if not is_installed(library.module):
        pytest.skip(f"{library.module} is not installed here")
    notebook.run(library.setup, timeout_s=240)
    # the process's first profile sets up what is set up once
    first = notebook.profile(library.many)
    many = notebook.profile(library.many)
    large = notebook.profile(library.large)
    # all of it is told at once: a machine with a GPU is there for a short time
    wrong = [
        *problems("first", first, library),
        *problems("many", many, library),
        *problems_of_a_full_gpu(large),
    ]
    print(f"{library.module}: {wrong or 'as it should be'}")
    assert not wrong


def problems(which: str, profile: dict[str, Any], library: Library) -> list[str]:
    """Say what is wrong with the profile of many tiny kernels."""
    wrong = []
    calls = sum(
        row["calls"] for row in profile["kernels"] if library.kernel in row["name"]
    )
    if calls != LAUNCHES if library.is_exact else calls < LAUNCHES:
        wrong.append(f"{which}: {calls} kernels of {LAUNCHES} by their name")
    complete = profile["completeness"]
    if not complete["matched"] == complete["launches"] >= LAUNCHES:
        wrong.append(f"{which}: launches {complete}")
    operators = [row["name"] for row in profile["operators"]]
    if any(name.startswith("aten::") for name in operators):
        wrong.append(f"{which}: operators of torch {operators}")
    verdict = profile["verdict"]
    if verdict is None or verdict["kind"] not in HOST:
        wrong.append(f"{which}: the verdict {verdict}")
    return wrong


def problems_of_a_full_gpu(profile: dict[str, Any]) -> list[str]:
    """Say what is wrong with the profile of large kernels."""
    wrong = []
    busy = (profile["gpu_busy_ns"] or 0) / profile["wall_ns"]
    if busy < 0.7:
        wrong.append(f"large: busy {busy:.0%} of the time only")
    complete = profile["completeness"]
    if not complete["matched"] == complete["launches"] >= 60:
        wrong.append(f"large: launches {complete}")
    verdict = profile["verdict"]
    # a kernel of somebody's own tells nobody what limits it: "unknown" is right too
    if verdict is None or verdict["kind"] in NOT_OF_A_FULL_GPU | {"mixed"}:
        wrong.append(f"large: the verdict {verdict}")
    return wrong

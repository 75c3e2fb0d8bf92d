"""What limits kernels of CuPy, XLA, Triton and Numba, whose operators nobody recorded.

Names are those that the libraries write; launches are of an H200 with 132
multiprocessors and 4.8 TB/s.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.profiler.replay.exam import read
from tests.profiler.trace.written import call, kernel, report_of, trace
from warpbook_profiler.facts.array_names import is_cupy, is_product, passes
from warpbook_profiler.verdict.analysis import analyse

PASSES = (
    "cupy_multiply__float32_float_float32",
    "cupy_copy__float64_float64",
    "cupy_sum",
    "cupy_getitem_mask",
    "loop_add_fusion",
    "loop_dynamic_update_slice_fusion_12",
    "input_reduce_fusion.1",
    "input_concatenate_fusion_3",
    "loop_convert_fusion_2",
    "fusion_17",
    "add_multiply_fusion",
    "wrapped_add",
    "wrapped_transpose_4",
    "transpose_fusion",
    "copy_fusion_1",
    "concatenate_7",
    "triton_softmax_3_0",
)
OTHERS = (
    "cupy_tensordot_core_int_kernel",
    "cupyx_scipy_ndimage_correlate_int64",
    "cupyx_scatter_add",
    "gemm_fusion_dot_285",
    "input_scatter_fusion_1",
    "wrapped_convolution",
    "cudnn_fusion",
    "my_fusion_of(float*)",
    "loop",
    "copy",
    "transposed",
    "reduce_kernel",
    "wrapped_",
)


def test_array_libraries_write_their_operations_into_names() -> None:
    assert {name: passes(name) for name in PASSES} == dict.fromkeys(PASSES, True)
    assert {name: passes(name) for name in OTHERS} == dict.fromkeys(OTHERS, False)
    assert is_product("gemm_fusion_dot_general_0")
    assert is_product("triton_gemm_dot_12")
    assert not is_product("loop_add_fusion")
    assert not any(map(is_cupy, ("my_cupy_add", "cupy_add(float*)", "cupy")))


def test_a_chain_of_cupy_is_bound_by_memory() -> None:
    profile = analyse(*read("cupy_chain"))
    assert profile.verdict is not None
    assert profile.verdict.kind == "memory-bound"


def limit(tmp_path: Path, name: str, time_us: float, **shape: Any) -> str:
    """Run a kernel 50 times, of 4096 blocks of 256 threads unless told otherwise."""
    args = {"grid": [4096, 1, 1], "block": [256, 1, 1], "registers per thread": 32}
    args |= {key.replace("_", " "): value for key, value in shape.items()}
    events = [call(0, 0.0)]
    at = 10.0
    for number in range(1, 51):
        events.append(call(number, number * 0.01, dur=0.001))
        events.append(kernel(number, at, name=name, dur=time_us, args=args))
        at += time_us + 1
    (work,) = report_of(tmp_path, trace(*events)).metrics.kernel_work
    return work.bound


#: of a kernel that Numba compiled, as the profiler writes its name
_NUMBA = "__main__::axpy[abi:v1](Array<float, 1, C, mutable, aligned>, float)"
#: 1,048,576 threads move 12 bytes each in 2.6 µs at the ceiling
_ONE_ELEMENT_US = 3.4


@pytest.mark.parametrize("name", ["add_kernel", _NUMBA, "axpy", "my_kernel(float*)"])
def test_a_kernel_as_long_as_one_pass_is_bound_by_memory(
    name: str, tmp_path: Path
) -> None:
    assert limit(tmp_path, name, _ONE_ELEMENT_US) == "memory"
    # eight elements of each thread, as Triton gives them
    assert limit(tmp_path, name, 8 * _ONE_ELEMENT_US) == "memory"


@pytest.mark.parametrize(
    ("time_us", "shape"),
    [
        # a loop in each thread: bodies, iterations of a fractal, a product by hand
        (200.0, {}),
        # operands are kept in shared memory, and read again and again
        (_ONE_ELEMENT_US, {"shared_memory": 49152}),
        # few blocks stride over a large array
        (_ONE_ELEMENT_US, {"grid": [132, 1, 1]}),
        (_ONE_ELEMENT_US, {"registers_per_thread": 0}),
    ],
)
def test_a_kernel_that_may_be_anything_stays_unknown(
    time_us: float, shape: dict[str, Any], tmp_path: Path
) -> None:
    assert limit(tmp_path, "my_kernel", time_us, **shape) == "unknown"


def test_a_product_of_tiles_is_on_the_tensor_cores(tmp_path: Path) -> None:
    tiles = {"shared_memory": 98304, "registers_per_thread": 168}
    assert limit(tmp_path, "matmul_kernel", 200.0, **tiles) == "tensor cores"
    assert limit(tmp_path, "_attn_fwd", 200.0, **tiles) == "tensor cores"
    # a product in CUDA C++ has two dimensions, or is of plain numbers
    square = tiles | {"block": [16, 16, 1]}
    assert limit(tmp_path, "matmul_kernel", 200.0, **square) == "unknown"
    assert limit(tmp_path, "matmul(float*)", 200.0, **tiles) == "unknown"
    assert limit(tmp_path, "stencil_kernel", 200.0, **tiles) == "unknown"

"""Rules about kernels of libraries: what they fire on, and what they leave."""

from __future__ import annotations

from typing import Any

import pytest

from tests.profiler.advice.programs import Written
from tests.profiler.replay.exam import TRACES, read
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.change import Change
from warpbook_profiler.verdict.analysis import analyse

#: of CuPy: 64 Mi elements, a thread each
ARRAY = {"grid": [524288, 1, 1], "block": [128, 1, 1]}
HALF = "c10::Half"


def names_of(program: Written) -> set[str]:
    return set(program.changes())


def test_a_chain_of_cupy_is_fused() -> None:
    changes = {one.name: one for one in analyse(*read("cupy_chain")).changes}
    change = changes["cupy-fuse"]
    assert change.basis == "predicted"
    assert "6 CuPy kernels" in change.evidence
    # one pass takes as long as one of the six, 0.32 ms
    assert change.low_ns is not None
    assert change.time_ns is not None
    assert change.high_ns is not None
    assert change.low_ns <= 420_000 <= change.high_ns < 900_000
    assert 320_000 <= change.time_ns <= 600_000


def of_cupy(*kernels: tuple[str, dict[str, Any]]) -> Written:
    program = Written()
    for name, shape in kernels:
        program.host(5.0)
        program.launch(name, 300.0, api="cuLaunchKernel", args=shape)
    return program


_ADD = "cupy_add__float32_float32_float32"
_SQRT = "cupy_sqrt__float32_float32"


def test_what_reads_more_arrays_takes_longer() -> None:
    one = of_cupy(*[(_SQRT, ARRAY)] * 6).changes()["cupy-fuse"]
    many = of_cupy(*[(_ADD, ARRAY)] * 6).changes()["cupy-fuse"]
    assert one.high_ns is not None
    assert many.high_ns is not None
    # eight arrays instead of three, six times
    assert many.high_ns > 1.5 * one.high_ns


@pytest.mark.parametrize(
    "program",
    [
        # arrays of other sizes, a product in between, reductions, two only
        of_cupy(*[(_ADD, ARRAY | {"grid": [1000 * n, 1, 1]}) for n in range(5, 11)]),
        of_cupy(*[(_ADD, ARRAY), ("ampere_sgemm_128x64_tn", ARRAY)] * 4),
        of_cupy(*[("cupy_sum", ARRAY)] * 6),
        of_cupy((_ADD, ARRAY), (_SQRT, ARRAY)),
        of_cupy(*[("add_kernel", ARRAY)] * 6),
    ],
)
def test_what_is_no_chain_of_cupy_is_left(program: Written) -> None:
    assert "cupy-fuse" not in names_of(program)


def of_jax(*names: str, pause_us: float = 30.0, repeats: int = 10) -> Written:
    program = Written()
    for _ in range(repeats):
        for name in names:
            program.host(pause_us)
            program.launch(name, 5.0, api="cuLaunchKernel")
    return program


EAGER = ("wrapped_add", "loop_multiply_fusion", "wrapped_tanh", "input_reduce_fusion")


def test_operations_of_jax_are_compiled_together() -> None:
    change = of_jax(*EAGER).changes()["jax-jit"]
    assert (change.basis, change.time_ns) == ("unknown", None)
    assert "40 JAX operations" in change.evidence


@pytest.mark.parametrize(
    "program",
    [
        # one compiled function: launched fast, or with kernels that are numbered
        of_jax(*EAGER, pause_us=1.0),
        of_jax(*[f"loop_add_fusion_{number}" for number in range(8)]),
        of_jax(*EAGER, repeats=2),
        of_jax("add_kernel", "mul_kernel", "my_sum", "k"),
    ],
)
def test_what_is_compiled_or_not_of_jax_is_left(program: Written) -> None:
    assert "jax-jit" not in names_of(program)


_TO_NHWC = "void cudnn::engines_precompiled::nchwToNhwcKernel<__half, __half>"
_FAST = "sm90_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc"
_SLOW = "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1>"


def convolutions(*kernels: tuple[str, float]) -> Written:
    program = Written()
    for _ in range(10):
        begin = program.now
        for name, time_us in kernels:
            program.launch(name, time_us)
        dims = [[64, 64, 56, 56], [64, 64, 3, 3]]
        args = {"Input Dims": dims, "Input type": [HALF, HALF]}
        program.operator("aten::cudnn_convolution", begin, **args)
        program.now += 1
        program.operator("aten::conv2d", begin - 1)
        program.now += 1
    return program


def test_axes_that_are_turned_are_kept_last() -> None:
    layers = (_TO_NHWC, 60.0), (_FAST, 100.0), (_TO_NHWC, 40.0)
    change = convolutions(*layers).changes()["channels-last"]
    assert change.basis == "predicted"
    assert change.operator == "aten::conv2d"
    assert "20 kernels" in change.evidence
    assert change.low_ns is not None
    assert change.time_ns is not None
    # ten convolutions of 100 µs are left
    assert 900_000 <= change.low_ns <= change.time_ns <= 1_150_000


@pytest.mark.parametrize(
    "layers",
    [
        [(_FAST, 100.0)],
        # nothing on tensor cores, and too little to care for
        [(_TO_NHWC, 60.0), (_SLOW, 100.0)],
        [(_TO_NHWC, 1.0), (_FAST, 100.0)],
    ],
)
def test_axes_that_cost_nothing_are_left(layers: list[tuple[str, float]]) -> None:
    assert "channels-last" not in names_of(convolutions(*layers))


def test_copies_outside_convolutions_are_no_layout() -> None:
    program = convolutions((_FAST, 100.0))
    name = "void at::native::elementwise_kernel<direct_copy_kernel_cuda>"
    program.does("aten::contiguous", name, 500.0)
    assert "channels-last" not in names_of(program)


def added(
    time_us: float,
    name: str = "aten::scatter_add_",
    scalars: tuple[str, ...] = (),
    rows: int = 1000,
) -> Written:
    """Add 4 Mi numbers to 1000, which moves 48 MiB: 10 µs at the ceiling."""
    count = 1 << 22
    program = Written()
    for _ in range(3):
        args = {
            "Input Dims": [[rows], [], [count], [count]],
            "Input type": ["float", "Scalar", "long int", "float"],
            "Concrete Inputs": list(scalars) or ["", "0", "", ""],
        }
        kernel = "void at::native::_scatter_gather_elementwise_kernel<128, 8>"
        program.does(name, kernel, time_us, args=args)
    return program


def test_additions_that_meet_are_named_without_a_promise() -> None:
    change = added(3_000.0, "aten::bincount").changes()["contention"]
    assert change.basis == "unknown"
    assert (change.low_ns, change.time_ns, change.high_ns) == (None, None, None)
    assert "same" in change.reason
    assert change.operator == "aten::bincount"


def test_additions_to_a_small_table_go_to_copies_of_it() -> None:
    """Nine milliseconds; additions at random addresses take a tenth of them."""
    change = added(3_000.0).changes()["contention"]
    assert change.basis == "predicted"
    assert change.low_ns is not None and change.high_ns is not None
    assert 100_000 < change.low_ns < 900_000 < change.high_ns < 2_500_000
    # 512 copies of a table of a million numbers are none to sum
    assert added(3_000.0, rows=1 << 20).changes()["contention"].basis == "unknown"


@pytest.mark.parametrize(
    "program",
    [
        # random addresses of a large table take several times the least
        added(90.0),
        # what gathers, and what puts without adding up
        added(3_000.0, "aten::gather"),
        added(3_000.0, "aten::index_put_", ("", "", "", "False")),
    ],
)
def test_additions_that_are_as_fast_as_memory_are_left(program: Written) -> None:
    assert "contention" not in names_of(program)


def test_values_that_are_put_and_added_up_may_meet() -> None:
    program = added(3_000.0, "aten::index_put_", ("", "", "", "True"))
    assert "contention" in names_of(program)


_ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096>)"


def trained(reduces: int, time_us: float, beside: bool = False) -> Written:
    """Compute a backward pass, and add its gradients up after it or beside it."""
    program = Written()
    begin = end = program.now
    for _ in range(20):
        end = program.launch("nvjet_sm90_tst_128x256", 200.0)[1]
    program.operator("autograd::engine::evaluate_function: AddmmBackward0", begin)
    for _ in range(reduces):
        program.launch(_ALL_REDUCE, time_us, 20, after=0.0 if beside else end)
    return program


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (trained(40, 50.0), "gradient-buckets"),
        (trained(2, 2_000.0), "gradient-overlap"),
    ],
)
def test_gradients_that_nothing_hides_are_named(program: Written, name: str) -> None:
    change: Change = program.changes()[name]
    assert (change.basis, change.high_ns) == ("not below", None)
    assert change.lab == "parallelism-by-hand"
    assert change.low_ns is not None
    # twenty products of 200 µs are computed in any case
    assert 3_700_000 <= change.low_ns <= 4_300_000


def test_gradients_that_take_longer_than_computing_are_made_smaller() -> None:
    """They begin within the backward pass already, in a kernel without a name."""
    program = Written()
    for _ in range(5):
        begin = program.now
        program.launch("nvjet_sm90_tst_128x256", 200.0)
        program.host(5.0)
        inner = program.now
        program.launch("ncclDevKernel_Generic(args)", 900.0, 20)
        program.operator("c10d::allreduce_", inner)
        program.operator(
            "autograd::engine::evaluate_function: AddmmBackward0",
            begin,
        )
        program.host(5.0)
    change = program.changes()["gradient-bytes"]
    assert change.basis == "not below"


def test_gradients_beside_the_backward_pass_are_left() -> None:
    names = names_of(trained(40, 50.0, beside=True))
    assert not [name for name in names if name.startswith("gradient")]


def test_statistics_of_a_layer_are_no_gradients() -> None:
    program = trained(0, 50.0)
    for _ in range(40):
        begin = program.now
        program.launch("nvjet_sm90_tst_128x256", 20.0, 20)
        program.launch(_ALL_REDUCE, 50.0, 20)
        program.operator("autograd::SyncBatchNormBackward", begin)
    assert "gradient-buckets" not in names_of(program)


def test_an_all_reduce_without_a_backward_pass_is_none_of_gradients() -> None:
    program = Written()
    for _ in range(40):
        program.launch("nvjet_sm90_tst_128x256", 20.0)
        program.launch(_ALL_REDUCE, 50.0)
    assert "gradient-buckets" not in names_of(program)


def test_recorded_cells_have_only_what_they_show() -> None:
    ours = {
        *("cupy-fuse", "jax-jit", "channels-last", "contention"),
        *("gradient-buckets", "gradient-overlap"),
    }
    fired = {
        path.name.removesuffix(".json.gz"): names
        for path in TRACES
        if (
            names := ours
            & {change.name for change in analyse(*read_chrome_trace(str(path))).changes}
        )
    }
    assert fired == {
        "cupy_chain": {"cupy-fuse"},
        "resnet18_one_image": {"channels-last"},
    }

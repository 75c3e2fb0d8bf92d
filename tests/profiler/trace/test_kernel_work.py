"""What limits kernels: an operator's need is all its kernels', a grid is its own.

Each operator here is written with its kernels back to back on an H200: 989 TFLOP/s in
BF16, 4.8 TB/s, 132 multiprocessors.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.profiler.trace.written import call, kernel, report_of, trace
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.figures import KernelWork
from warpbook_profiler.report.report import TraceReport
from warpbook_profiler.verdict.analysis import analyse

BF16 = "c10::BFloat16"
IMAGE, WEIGHT = [64, 64, 112, 112], [64, 64, 3, 3]
#: of the convolution of these, at the peak of the tensor cores
CONV_US = 2 * 64 * 112 * 112 * 64 * 64 * 9 / 989e6
FORWARD = (
    "aten::cudnn_convolution",
    [IMAGE, WEIGHT, [], [], [], [], [], [], []],
    ["", "", "[1, 1]", "[1, 1]", "[1, 1]", "1", "False", "False", "True"],
)
BACKWARD = (
    "aten::convolution_backward",
    [IMAGE, IMAGE, WEIGHT, *[[]] * 8],
    [
        *["", "", "", "[64]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"],
        "[True, True, False]",
    ],
)
LAYOUT = "void cudnn::engines_precompiled::nchwToNhwcKernel<__nv_bfloat16>"
FPROP = "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc"
SIMT = "cutlass_80_simt_sgemm_64x64_8x5_nn_align1"
GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn"
MUCH, ONE = [1000, 1, 1], [1, 1, 1]
Operator = tuple[str, list[list[int]], list[str]]
Kernel = tuple[str, float, list[int]]


def product(*sizes: int) -> Operator:
    rows, inner, columns = sizes
    return "aten::mm", [[rows, inner], [inner, columns]], ["", ""]


def written(
    operator: Operator | str, *kernels: Kernel, dtype: str = BF16, calls: int = 1
) -> bytes:
    """Launch the kernels by one operator, again and again."""
    events: list[dict[str, Any]] = []
    at, number = 100.0, 0
    for external in range(1, calls + 1):
        args: dict[str, Any] = {"External id": external}
        name = operator
        if not isinstance(operator, str):
            name, dims, scalars = operator
            types = [dtype if dim else "" for dim in dims]
            args |= {"Input Dims": dims, "Input type": types}
            args["Concrete Inputs"] = scalars
        begin = external * 0.01
        events.append(call(0, begin, cat="cpu_op", name=name, dur=0.01, args=args))
        for named, dur, grid in kernels:
            number += 1
            shape = {"External id": external, "grid": grid, "block": [256, 1, 1]}
            events += [
                call(number, begin, dur=0.001),
                kernel(number, at, name=named, dur=dur, args=shape),
            ]
            at += dur
    return trace(*events)


def work(trace_report: TraceReport) -> dict[str, KernelWork]:
    return {row.bound: row for row in trace_report.metrics.kernel_work}


def test_layout_kernels_beside_a_product_only_move_memory(tmp_path: Path) -> None:
    """It is BF16 on the tensor cores already; what surrounds it turns axes."""
    kernels = (LAYOUT, 400.0, MUCH), (FPROP, 150.0, MUCH), (LAYOUT, 400.0, MUCH)
    trace_report = report_of(tmp_path, written(FORWARD, *kernels, calls=20))
    assert {bound: row.kernels for bound, row in work(trace_report).items()} == {
        "memory": 40,
        "tensor cores": 20,
    }
    assert trace_report.verdict.kind == "memory-bound"
    assert not [
        finding for finding in trace_report.findings if "bf16" in finding.change
    ]
    # its need is held against the time of all three, as under the roofline
    share = pytest.approx(CONV_US / 950, rel=1e-3)
    assert work(trace_report)["tensor cores"].of_ceiling == share
    # what the layout needs is not known: the operator does not ask for it
    assert work(trace_report)["memory"].of_ceiling is None


def test_the_layout_of_plain_fp32_is_no_arithmetic_either(tmp_path: Path) -> None:
    kernels = (LAYOUT, 4000.0, MUCH), ("ampere_scudnn_128x64_relu", 3000.0, MUCH)
    by_bound = work(report_of(tmp_path, written(FORWARD, *kernels, dtype="float")))
    assert {bound: row.time_ns for bound, row in by_bound.items()} == {
        "memory": 4_000_000,
        "FP32 cores": 3_000_000,
    }


def test_helpers_of_attention_are_told_from_its_products(tmp_path: Path) -> None:
    query = [8, 2048, 16, 64]
    operator = (
        "aten::_flash_attention_backward",
        [*[query] * 5, [8, 16, 2048], *[[]] * 6],
        [*[""] * 8, "2048", "2048", "0.", "True"],
    )
    name = "void pytorch_flash::flash_bwd_{}_kernel<true>"
    kernels = [
        (name.format(what), dur, MUCH)
        for what, dur in (
            ("dot_do_o", 100.0),
            ("dq_dk_dv_loop_seqk_parallel", 500.0),
            ("convert_dq", 300.0),
        )
    ]
    trace_report = report_of(tmp_path, written(operator, *kernels))
    assert {bound: row.time_ns for bound, row in work(trace_report).items()} == {
        "tensor cores": 500_000,
        "memory": 400_000,
    }


@pytest.mark.parametrize(
    ("name", "dtype", "bound", "topic", "change"),
    [
        ("dgemm_sm80_simt_64x64", "double", "FP64 units", "tensor-cores", "float32"),
        (
            *("cutlass_80_tensorop_d884gemm_128x64", "double"),
            *("FP64 units", "tensor-cores", "float32"),
        ),
        (
            *("cutlass_80_tensorop_i16832gemm_s8_128x64", "signed char"),
            *("tensor cores in 8 bits", None, "larger tiles"),
        ),
        (
            *("sm90_xmma_gemm_e4m3bf16_e4m3f32_f32_tn", "c10::Float8_e4m3fn"),
            *("tensor cores in 8 bits", None, "larger tiles"),
        ),
        (
            *(GEMM, BF16),
            *("tensor cores", "fp8", "this GPU has FP8"),
        ),
        (SIMT, "float", "FP32 cores", "tensor-cores", "Use the tensor cores"),
    ],
)
@pytest.mark.parametrize("noted", [True, False])
def test_what_is_advised_suits_the_dtype(
    name: str,
    dtype: str,
    bound: str,
    topic: str | None,
    change: str,
    noted: bool,
    tmp_path: Path,
) -> None:
    """Its operands tell the dtype, or else the kernel's name."""
    operator = product(4096, 4096, 4096) if noted else "aten::mm"
    # two thirds of the ceiling
    eight_bits = dict.fromkeys(("signed char", "c10::Float8_e4m3fn"), 100.0)
    took_us = (eight_bits | {BF16: 200.0}).get(dtype, 3000.0)
    trace_report = report_of(
        tmp_path, written(operator, (name, took_us, MUCH), dtype=dtype)
    )
    assert list(work(trace_report)) == [bound]
    first = trace_report.findings[0]
    assert (first.kind, first.topic) == ("compute-bound", topic)
    # where shapes are known, the change is named apart
    assert (
        change in first.change
        or change.lower() in trace_report.changes[0].title.lower()
    )
    assert bound in first.evidence


def test_two_products_of_one_operator_share_its_need(tmp_path: Path) -> None:
    """Each takes twice the time of its half: 50 % of the peak, not the double."""
    names = "sm90_xmma_dgrad_implicit_gemm_bf16", "sm90_xmma_wgrad_implicit_gemm_bf16"
    kernels = [(name, 2 * CONV_US, MUCH) for name in names]
    content = written(BACKWARD, *kernels, calls=20)
    trace_report = report_of(tmp_path, content)
    assert work(trace_report)["tensor cores"].of_ceiling == pytest.approx(0.5, abs=1e-3)
    (point,) = analyse(*read_chrome_trace(str(tmp_path / "trace.json"))).roofline
    assert point.of_datasheet == pytest.approx(0.5, abs=1e-3)


def test_adding_up_the_parts_of_a_product_is_of_the_product(tmp_path: Path) -> None:
    """Long thin matrices: their traffic is most, and one reading of them counts."""
    kernels = (
        ("nvjet_sm90_tst_64x64_splitK", 25.0, MUCH),
        (
            "void cublasLt::splitKreduce_kernel<32, 16, int>",
            50.0,
            MUCH,
        ),
    )
    trace_report = report_of(tmp_path, written(product(128, 65536, 128), *kernels))
    (memory,) = trace_report.metrics.kernel_work
    least_us = 2 * (2 * 128 * 65536 + 128 * 128) / 4.8e6
    assert memory.bound == "memory"
    assert memory.of_ceiling == pytest.approx(least_us / 75, rel=1e-3)


def test_one_product_as_tf32_and_as_fp32_has_two_roofs(tmp_path: Path) -> None:
    tf32 = "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32"
    events: list[Any] = []
    for at, name in enumerate((tf32, "ampere_sgemm_128x64_tn"), 1):
        args = {"External id": at, "Input Dims": [[4096, 4096]] * 2}
        args |= {"Input type": ["float"] * 2}
        events += [
            call(0, at * 9.0, cat="cpu_op", name="aten::mm", args=args),
            call(at, at * 9.0, dur=1.0),
            kernel(at, at * 4e3, name=name, dur=3e3, args={"External id": at}),
        ]
    by_bound = work(report_of(tmp_path, trace(*events)))
    assert by_bound["FP32 cores"].of_ceiling == pytest.approx(2 * 4096**3 / 67e6 / 3e3)
    assert by_bound["tensor cores"].of_ceiling == pytest.approx(
        2 * 4096**3 / 494.5e6 / 3e3
    )


def test_tiny_products_are_too_small_with_shapes_and_without(tmp_path: Path) -> None:
    """A dtype half as large saves nothing where one block multiplies 64 by 64."""
    kernels = ((SIMT, 4.9, ONE),)
    for operator in (product(64, 64, 64), "my::mm"):
        content = written(operator, *kernels, dtype="float", calls=400)
        trace_report = report_of(tmp_path, content)
        assert list(work(trace_report)) == ["too small"]
        assert trace_report.verdict.kind == "launch-bound"


def test_few_blocks_near_the_roof_are_not_too_small(tmp_path: Path) -> None:
    """Whatever the grid is, a product at 40 % of its roof is limited by that."""
    least_us = 2 * 512**3 / 989e6
    kernels = (("nvjet_sm90_tst_128x128", least_us / 0.4, [16, 1, 1]),)
    trace_report = report_of(
        tmp_path, written(product(512, 512, 512), *kernels, calls=50)
    )
    assert "too small" not in work(trace_report)


@pytest.mark.parametrize("calls", [1, 3])
def test_a_long_kernel_of_one_block_leaves_the_chip_idle(
    calls: int, tmp_path: Path
) -> None:
    """No launch is in its way; spread over the chip it would take a 132nd."""
    kernels = (("nms_serial(float*)", 20_000.0, ONE),)
    trace_report = report_of(tmp_path, written("my::nms", *kernels, calls=calls))
    (finding,) = [one for one in trace_report.findings if one.share > 0.5]
    assert (finding.kind, finding.topic) == ("compute-bound", None)
    assert "1 of 132 had work" in finding.evidence
    (row,) = trace_report.metrics.kernel_work
    assert (row.multiprocessors, row.multiprocessors_used) == (132, 1)
    # that is no share of what the arithmetic or the memory can reach
    assert row.of_ceiling is None
    assert "more blocks" in finding.change
    assert f"{calls} long kernel{'s' if calls > 1 else ''} with" in finding.evidence
    busy_ns = calls * 20_000_000
    window_ns = trace_report.metrics.window_ns
    assert finding.bound_ns == pytest.approx(window_ns - busy_ns * 131 / 132, abs=2)


def test_one_small_kernel_is_told_as_one(tmp_path: Path) -> None:
    trace_report = report_of(tmp_path, written("my::add", ("add(float*)", 9.0, ONE)))
    (finding,) = [one for one in trace_report.findings if "too small" in one.evidence]
    assert finding.evidence.startswith("1 kernel too small")
    assert finding.change.startswith("Fuse it ")


@pytest.mark.parametrize(
    ("operator", "name", "is_told"),
    [
        # what torch.distributed launched, whatever its kernel is called
        ("record_param_comms", "exchange(float*)", True),
        ("c10d::allreduce_", "exchange(float*)", True),
        ("symm_mem::one_shot_all_reduce", "exchange(float*)", True),
        ("my::all_reduce", "exchange(float*)", False),
        # what Inductor fused with a collective's result
        ("my::step", "triton_poi_fused_all_reduce_0", False),
    ],
)
def test_communication_is_told_by_what_launched_it(
    operator: str, name: str, is_told: bool, tmp_path: Path
) -> None:
    metrics = report_of(tmp_path, written(operator, (name, 95.0, MUCH))).metrics
    assert metrics.communication_ns == (95_000 if is_told else 0)
    assert metrics.compute_ns == (0 if is_told else 95_000)
    assert bool(metrics.kernel_work) is not is_told


@pytest.mark.parametrize(
    ("name", "blocks", "shape", "told", "change"),
    [
        (GEMM, 100, {}, "not every multiprocessor", "more blocks"),
        (GEMM, 140, {"shared memory": 200_000}, "the last wave", "whole waves"),
        (
            *("void at::native::unrolled_elementwise_kernel<4>", 13_200),
            *({"registers per thread": 255}, "too few warps", "more warps"),
        ),
        (GEMM, 13_200, {}, "do not show why", "gpuprof --stalls"),
    ],
)
def test_far_from_its_roof_is_a_cause_with_what_tells_it(
    name: str,
    blocks: int,
    shape: dict[str, int],
    told: str,
    change: str,
    tmp_path: Path,
) -> None:
    """At 7 % of a ceiling no smaller dtype and no fewer FLOPs are what is missing."""
    table = [8192, 8192]
    passes = "aten::add", [table, table, []], ["", "", "1"]
    operator = product(4096, 4096, 4096) if name == GEMM else passes
    content = json.loads(written(operator, (name, 2000.0, [blocks, 1, 1])))
    content["traceEvents"][-1]["args"] |= shape
    trace_report = report_of(tmp_path, json.dumps(content).encode())
    first = trace_report.findings[0]
    assert "far from it" in first.evidence and told in first.evidence
    assert change in first.change and "dtype" not in first.change


def test_kernels_near_their_roof_and_far_from_it_are_told_apart(
    tmp_path: Path,
) -> None:
    content = json.loads(written(product(4096, 4096, 4096), (FPROP, 200.0, MUCH)))
    slow = json.loads(written(product(2048, 2048, 2048), (FPROP, 900.0, MUCH)))
    for event in slow["traceEvents"]:
        event["ts"] += 300.0
        for key in ("External id", "correlation"):
            if key in event["args"]:
                event["args"][key] += 10
    content["traceEvents"] += slow["traceEvents"]
    rows = report_of(tmp_path, json.dumps(content).encode()).metrics.kernel_work
    assert [(row.bound, row.time_ns, row.far) for row in rows] == [
        ("tensor cores", 900_000, "untold"),
        ("tensor cores", 200_000, None),
    ]

"""Operators under the roofs of an H200: what its traces must say, and why."""

import dataclasses
from pathlib import Path

import pytest

from tests.profiler.trace.stepped import stepped
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.ceilings import Ceilings, ceilings
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.limits import Limits
from warpbook_profiler.model.pictures import RooflinePoint
from warpbook_profiler.verdict.analysis import analyse

TRACES = Path(__file__).parents[2] / "data" / "traces"
H200 = "NVIDIA H200"
MEASURED = Ceilings(4.3e12, {"c10::BFloat16": 815e12, "float": 52e12})


def profile(
    name: str, measured: Ceilings | None = None, gpu: str = H200
) -> CellProfile:
    columns, run = read_chrome_trace(str(TRACES / f"{name}.json.gz"))
    gpus = tuple(
        dataclasses.replace(
            one,
            name=gpu,
            measured=None if measured is None else Limits.of(gpu, measured),
        )
        for one in run.gpus
    )
    return analyse(columns, dataclasses.replace(run, gpus=gpus))


def named(cell_profile: CellProfile, name: str) -> list[RooflinePoint]:
    return [point for point in cell_profile.roofline if point.name == name]


def test_large_bf16_products_stand_near_the_tensor_cores_roof() -> None:
    (point,) = profile("matmul_bf16", MEASURED).roofline
    assert (point.name, point.operands) == ("aten::mm", "8192×8192, 8192×8192")
    assert (point.dtype, point.calls, point.share_ratio) == ("c10::BFloat16", 5, 1.0)
    assert point.flops == 5 * 2 * 8192**3
    # two matrices are read and one is written
    assert point.size_bytes == 5 * 3 * 2 * 8192**2
    assert point.flops_per_byte == pytest.approx(8192 / 3)
    # GPM said 94 % tensor active; the clock was below the datasheet's boost
    assert point.of_datasheet == pytest.approx(0.82, abs=0.01)
    assert point.of_measured == pytest.approx(1.0, abs=0.01)


def test_plain_fp32_is_held_against_the_fp32_cores() -> None:
    cell_profile = profile("train_fp32")
    products = [*named(cell_profile, "aten::mm"), *named(cell_profile, "aten::addmm")]
    # GPM said 76 % FP32 active for such products, and 4 % tensor
    for point in products[:8]:
        assert point.dtype == "float"
        assert 0.7 < (point.of_datasheet or 0) < 0.85
    # what the report adds up is what its operators do; the longest are in the picture
    assert cell_profile.metrics is not None and cell_profile.metrics.flops is not None
    drawn = sum(point.flops or 0 for point in cell_profile.roofline)
    assert 0.95 < drawn / cell_profile.metrics.flops <= 1
    assert sum(point.share_ratio for point in cell_profile.roofline) <= 1
    times = [point.time_ns for point in cell_profile.roofline]
    assert times == sorted(times, reverse=True)


def test_elementwise_work_stands_under_the_memorys_slope() -> None:
    """No arithmetic is modelled there: what is known is that it moves bytes."""
    cell_profile = profile("train_fp32")
    (mul, *_) = named(cell_profile, "aten::mul")
    assert mul.flops is None and mul.flops_per_s is None and mul.flops_per_byte is None
    assert mul.dtype is None
    assert mul.of_datasheet == pytest.approx((mul.bytes_per_s or 0) / 4.8e12)


def test_copies_within_the_gpu_are_counted_and_move_twice_their_size() -> None:
    (copies,) = profile("ddp_rank0").roofline
    assert (copies.name, copies.calls) == ("Memcpy DtoD", 17)
    # its traffic was read and written at 3 of the 4.3 TB/s that a copy reaches
    assert copies.bytes_per_s == pytest.approx(3.03e12, rel=0.01)
    assert copies.of_datasheet == pytest.approx(0.63, abs=0.01)


@pytest.mark.parametrize("name", ["graph_replay", "pinned_h2d"])
def test_what_has_no_operands_has_no_point(name: str) -> None:
    """A graph's kernels have no operators, and a copy from the host crosses the bus."""
    cell_profile = profile(name)
    assert cell_profile.roofline == ()
    assert [roof.basis for roof in cell_profile.roofs] == ["datasheet"]


def test_tiny_kernels_are_far_below_every_roof() -> None:
    for point in profile("tiny_kernels").roofline:
        assert point.of_datasheet is not None and point.of_datasheet < 0.001


def test_the_roofs_are_the_datasheets_and_what_was_measured_here() -> None:
    sheet, measured = profile("matmul_bf16", MEASURED).roofs
    assert (sheet.gpu, sheet.basis, measured.basis) == (H200, "datasheet", "measured")
    # dense: the datasheet prints 1,979 for sparse matrices
    assert sheet.flops_per_s["c10::BFloat16"] == 989e12
    assert sheet.memory_bytes_per_s == 4.8e12
    assert measured.flops_per_s == MEASURED.flops_per_s


def test_a_gpu_without_a_datasheet_has_no_roof_but_what_was_measured() -> None:
    cell_profile = profile("matmul_bf16", gpu="NVIDIA Z1")
    (point,) = cell_profile.roofline
    assert cell_profile.roofs == ()
    assert point.of_datasheet is None and point.of_measured is None
    assert point.flops_per_s == pytest.approx(815e12, rel=0.01)
    (roof,) = profile("matmul_bf16", MEASURED, gpu="NVIDIA Z1").roofs
    assert (roof.gpu, roof.basis) == ("NVIDIA Z1", "measured")


def test_a_kind_of_arithmetic_without_a_ceiling_has_no_share() -> None:
    cell_profile = profile("train_fp32", Ceilings(4.3e12, {"c10::BFloat16": 815e12}))
    assert {point.of_measured for point in named(cell_profile, "aten::mm")} == {None}
    assert all(point.of_measured for point in named(cell_profile, "aten::mul"))


@pytest.mark.parametrize(
    ("gpu", "half", "memory"),
    [
        ("NVIDIA H200", 989, 4.8),
        ("NVIDIA H100 80GB HBM3", 989, 3.35),
        ("NVIDIA H100 PCIe", 756, 2.0),
        ("NVIDIA A100-SXM4-40GB", 312, 1.555),
        ("NVIDIA A100-PCIE-40GB", 312, 1.555),
        ("NVIDIA L4", 121, 0.3),
        ("NVIDIA L40S", 362, 0.864),
        ("Tesla T4", 65, 0.32),
        ("Tesla V100-SXM2-16GB", 125, 0.9),
        ("NVIDIA GeForce RTX 4090", 165.2, 1.008),
    ],
)
def test_datasheets_are_found_by_the_drivers_name(
    gpu: str, half: float, memory: float
) -> None:
    sheet = ceilings(gpu)
    assert sheet is not None
    assert sheet.flops_per_s["c10::Half"] == half * 1e12
    assert sheet.memory_bytes_per_s == memory * 1e12


@pytest.mark.parametrize(
    "gpu",
    [
        # a slice has a part of the chip
        "NVIDIA H200 MIG 1g.18gb",
        # other products whose names hold a listed one
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA T400",
        "NVIDIA H200X",
        "",
    ],
)
def test_no_datasheet_is_taken_for_anothers(gpu: str) -> None:
    assert ceilings(gpu) is None


def test_older_chips_have_no_ceiling_for_what_they_lack() -> None:
    for gpu in ("Tesla T4", "Tesla V100-PCIE-16GB"):
        sheet = ceilings(gpu)
        assert sheet is not None
        assert not {"c10::BFloat16", "tf32", "c10::Float8_e4m3fn"} & set(
            sheet.flops_per_s
        )


@pytest.mark.parametrize(
    ("gpu", "change"),
    [(H200, (b"", b"")), ("NVIDIA Nothing", (b"", b"")), (H200, (b"512, 512", b"5"))],
    ids=["known", "no datasheet", "no shapes"],
)
def test_a_step_tells_its_flops_of_the_peak_where_all_products_are_known(
    gpu: str, change: tuple[bytes, bytes], tmp_path: Path
) -> None:
    path = tmp_path / "steps.json"
    path.write_bytes(stepped(40.0, steps=4, gpu=gpu).replace(*change))
    steps = analyse(*read_chrome_trace(str(path))).steps
    assert len(steps) == 4
    at_peak_ns = 10 * 2 * 512**3 / 67e12 * 1e9
    for step in steps:
        if gpu == H200 and not change[0]:
            assert step.mfu == pytest.approx(at_peak_ns / step.time_ns, rel=0.02)
        else:
            assert step.mfu is None

"""FLOPs, roofline and memory over time on a real GPU; prints what it found.

pytest -m gpu -s tests/gpu/test_roofline_cuda.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from warpbook_profiler.capture.kineto import Capture
from warpbook_profiler.model.ceilings import ceilings
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.pictures import RooflinePoint
from warpbook_profiler.verdict.analysis import analyse

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def has_a_datasheet_and_ends_idle() -> Iterator[None]:
    name = torch.cuda.get_device_name()
    assert ceilings(name) is not None, f"no datasheet of {name} in ceilings.py"
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(precision)
    torch.cuda.synchronize()


def profiled(cell: Callable[[], object], **recorded: bool) -> CellProfile:
    """Profile the third of three runs: libraries are set up, clocks are up."""
    cell(), cell()
    capture = Capture(**recorded)
    capture.start()
    cell()
    cell_profile = analyse(*capture.stop())
    for point in cell_profile.roofline[:8]:
        print("\n", point, point.flops_per_s, point.bytes_per_s, end="")
    return cell_profile


def points(cell_profile: CellProfile, *names: str) -> list[RooflinePoint]:
    return [point for point in cell_profile.roofline if point.name in names]


def square(side: int, **options: Any) -> torch.Tensor:
    return torch.randn(side, side, device="cuda", **options)


def test_bf16_products_reach_most_of_the_tensor_cores() -> None:
    a, b = square(8192, dtype=torch.bfloat16), square(8192, dtype=torch.bfloat16)

    def cell() -> None:
        for _ in range(10):
            torch.mm(a, b)

    cell_profile = profiled(cell)
    (point,) = points(cell_profile, "aten::mm")
    assert (point.calls, point.dtype) == (10, "c10::BFloat16")
    assert point.flops == 10 * 2 * 8192**3
    assert point.of_datasheet is not None
    # an H200 reached 770 to 815 of 989 TFLOP/s on random data
    assert 0.6 < point.of_datasheet < 1.05
    assert point.share_ratio > 0.9
    assert (
        cell_profile.metrics is not None and cell_profile.metrics.flops == point.flops
    )


def test_fp32_is_of_the_fp32_cores_and_tf32_of_the_tensor_cores() -> None:
    a, b = square(4096), square(4096)
    (plain,) = points(profiled(lambda: torch.mm(a, b)), "aten::mm")
    torch.set_float32_matmul_precision("high")
    (tensor,) = points(profiled(lambda: torch.mm(a, b)), "aten::mm")
    assert (plain.dtype, tensor.dtype) == ("float", "tf32")
    for point in (plain, tensor):
        assert point.of_datasheet is not None
        assert 0.4 < point.of_datasheet < 1.05
    assert (tensor.flops_per_s or 0) > 2 * (plain.flops_per_s or 0)


def test_copies_and_elementwise_work_reach_the_memorys_roof() -> None:
    one = torch.randn(256 * 2**20, device="cuda")
    other = torch.empty_like(one)

    def cell() -> None:
        for _ in range(5):
            other.copy_(one)
            torch.add(one, other, out=other)

    cell_profile = profiled(cell)
    (added,) = points(cell_profile, "aten::add")
    # within the GPU torch copies by cudaMemcpyAsync
    copied = points(cell_profile, "Memcpy DtoD", "aten::copy_")
    for point in (added, *copied):
        assert point.flops is None
        assert point.of_datasheet is not None
        # an H200 copied at 4.3 of 4.8 TB/s
        assert 0.6 < point.of_datasheet < 1.05
    assert copied


class Block(nn.Module):
    """Convolution, attention and products: forward and backward in one."""

    def __init__(self) -> None:
        super().__init__()
        self.convolve = nn.Conv2d(64, 256, 3, padding=1)
        self.project = nn.Linear(256, 768)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.convolve(x).flatten(2).transpose(1, 2)
        q, k, v = (
            part.unflatten(-1, (4, 64)).transpose(1, 2)
            for part in self.project(rows).chunk(3, dim=-1)
        )
        return F.scaled_dot_product_attention(q, k, v)


def test_a_training_steps_flops_are_torchs() -> None:
    """Whichever kernels of attention and convolution this GPU's libraries choose."""
    block = Block().cuda().bfloat16()
    x = torch.randn(8, 64, 32, 32, device="cuda", dtype=torch.bfloat16)
    x.requires_grad_()

    def cell() -> None:
        block(x).sum().backward()

    with FlopCounterMode(display=False) as counter:
        cell()
    cell_profile = profiled(cell)
    assert cell_profile.metrics is not None
    print("\n", cell_profile.metrics.flops, counter.get_flop_counts())
    assert cell_profile.metrics.flops == counter.get_total_flops()
    assert cell_profile.metrics.modelled_share is not None
    assert cell_profile.metrics.modelled_share > 0.3


def test_causal_attention_stays_below_the_peak() -> None:
    shape = (4, 16, 4096, 64)
    q, k, v = (
        torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3)
    )
    attend = F.scaled_dot_product_attention
    whole = profiled(partial(attend, q, k, v))
    causal = profiled(partial(attend, q, k, v, is_causal=True))
    assert whole.metrics is not None and causal.metrics is not None
    flops = 2 * 2 * 4 * 16 * 4096 * 4096 * 64
    assert whole.metrics.flops == flops
    assert causal.metrics.flops == flops * 4097 // (2 * 4096)
    for profile in (whole, causal):
        assert all((point.of_datasheet or 0) < 1.05 for point in profile.roofline)


def test_eight_bit_products_are_modelled() -> None:
    a = torch.randint(-9, 9, (4096, 4096), dtype=torch.int8, device="cuda")
    (int8,) = points(profiled(lambda: torch._int_mm(a, a.t())), "aten::_int_mm")
    assert (int8.dtype, int8.flops) == ("signed char", 2 * 4096**3)
    if torch.cuda.get_device_capability() < (8, 9):
        return
    b = square(4096).to(torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")

    def cell() -> torch.Tensor:
        return torch._scaled_mm(
            b, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16
        )

    (fp8,) = points(profiled(cell), "aten::_scaled_mm")
    assert fp8.flops == 2 * 4096**3
    assert fp8.size_bytes == 4 * 4096**2 + 8 or fp8.size_bytes == 4 * 4096**2
    assert fp8.of_datasheet is not None and 0.2 < fp8.of_datasheet < 1.05


def test_the_curves_peak_is_torchs_own() -> None:
    held = torch.empty(64 * 2**20, dtype=torch.uint8, device="cuda")

    def cell() -> None:
        with torch.profiler.record_function("the large one"):
            large = torch.empty(512 * 2**20, dtype=torch.uint8, device="cuda")
        small = [torch.empty(2**20, dtype=torch.uint8, device="cuda") for _ in range(9)]
        del large
        small.clear()

    cell()
    torch.cuda.reset_peak_memory_stats()
    cell_profile = profiled(cell, memory=True)
    (curve,) = cell_profile.memory_curves
    print("\n", curve)
    assert curve.peak_allocated_bytes == torch.cuda.max_memory_allocated()
    assert max(curve.allocated_bytes) == curve.peak_allocated_bytes
    assert curve.allocated_bytes[-1] == torch.cuda.memory_allocated()
    assert curve.reserved_bytes[-1] == torch.cuda.memory_reserved()
    # the ninth of the small ones made it the most
    assert curve.peak_path.endswith("aten::empty")
    assert 0 <= curve.peak_ns <= cell_profile.wall_ns
    (use,) = cell_profile.memory
    assert use.peak_allocated_bytes == curve.peak_allocated_bytes
    assert held.numel() < curve.allocated_bytes[0] + 1


def test_what_noting_shapes_costs() -> None:
    """Printed for docs/adr/0010; it must stay below 2 µs for each operator."""
    x = torch.ones(8, device="cuda")
    count = 20_000

    def body_us(shapes: bool) -> float:
        capture = Capture(shapes=shapes)
        capture.start()
        began = time.perf_counter()
        for _ in range(count):
            x.add_(1)
        took = time.perf_counter() - began
        capture.stop()
        return took / count * 1e6

    body_us(True)
    pairs = [(body_us(False), body_us(True)) for _ in range(7)]
    cost_us = statistics.median(with_ - without for without, with_ in pairs)
    print(f"\n{pairs}\nshapes cost {cost_us:.2f} µs for each operator")
    assert cost_us < 2

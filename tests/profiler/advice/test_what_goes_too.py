"""What a change takes away, or leaves, beside what it is named for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.profiler.advice.program import Cell, changes_of, evidence_of
from warpbook_profiler.advice.chip import Chip
from warpbook_profiler.advice.prediction import Prediction
from warpbook_profiler.advice.proposal import Proposal
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.run import GpuLimits, Run
from warpbook_profiler.model.bare_run import BareTimes
from warpbook_profiler.techniques.data.made_on_host import made_on_host
from warpbook_profiler.techniques.gpu.attention import attention
from warpbook_profiler.techniques.host.launches import launches
from warpbook_profiler.techniques.host.transfers import transfers
from warpbook_profiler.techniques.host.waits import reads_in_turns

HALF = "c10::Half"
QUERIES, SCORES = (16, 4096, 64), (2, 8, 4096, 4096)
HEADS = (2, 8, 4096, 64)


def moves(memory: str, small: str) -> Cell:
    """Copy a large and a small tensor for each batch, as `.to()` does: it waits."""
    cell = Cell("for a, b in batches:\n    y = net(a.to(dev), b.to(dev))\n")
    for _ in range(8):
        for size_bytes, of in ((1 << 20, memory), (64 << 10, small)):
            with cell.operator("aten::to"), cell.operator("aten::copy_"):
                cell.copy("HtoD", size_bytes, of)
                if of == "Pageable":
                    cell.wait()
        for _ in range(10):
            cell.call("aten::relu", 50_000)
    cell.wait()
    return cell


def test_what_is_pinned_waits_no_more(tmp_path: Path) -> None:
    cell = moves("Pageable", "Pageable")
    change = changes_of(transfers, cell.evidence(tmp_path))["pinned"]
    assert change.time_ns is not None and change.high_ns is not None
    fixed = moves("Pinned", "Pinned")
    assert change.time_ns == pytest.approx(fixed.window_ns, rel=0.05)
    # small ones may be of lists, whose memory nobody pins
    assert change.high_ns >= moves("Pinned", "Pageable").window_ns


def test_at_best_all_that_makes_a_tensor_goes(tmp_path: Path) -> None:
    """What the CPU computes until the copy, and its memory in between, stay nowhere."""
    cell, fixed = Cell("y = [f(n) @ x for n in sizes]\n"), Cell()
    for _ in range(6):
        for name in ("arange", "sub", "clamp", "neg", "exp", "zeros_like", "where"):
            with cell.operator(f"aten::{name}"):
                cell.python(200_000)
            cell.python(50_000)
        with cell.operator("aten::to"), cell.operator("aten::copy_"):
            cell.copy("HtoD", 8 << 20, "Pageable")
            cell.wait()
        cell.call("aten::mm", 30_000)
        fixed.call("aten::where", 8_000)
        fixed.call("aten::mm", 30_000)
    fixed.wait()
    change = changes_of(made_on_host, cell.evidence(tmp_path))["make-on-gpu"]
    assert change.low_ns is not None and change.high_ns is not None
    assert change.low_ns <= fixed.window_ns < change.high_ns


@pytest.mark.parametrize("views", [(), ("aten::select",), ("aten::slice",) * 2])
def test_at_best_views_go_with_what_reads_them(
    tmp_path: Path, views: tuple[str, ...]
) -> None:
    cell, fixed = Cell("for i in range(n):\n    total += x[i].item()\n"), Cell()
    cell.call("aten::mm", 30_000)
    fixed.call("aten::mm", 30_000)
    for _ in range(300):
        cell.views(*views)
        cell.item()
        cell.python(5_000)
    fixed.item()
    change = changes_of(reads_in_turns, cell.evidence(tmp_path))["read-once"]
    assert change.low_ns is not None
    assert change.low_ns <= fixed.window_ns


def attends(
    lays_out: bool, is_fused: bool = False, source: str = "y = attend(x)\n"
) -> Cell:
    """Attend as einsum does it, which copies views first; then heads are joined."""
    cell = Cell(source)

    def lay_out(took: int) -> None:
        if lays_out:
            with cell.operator("aten::reshape"), cell.operator("aten::clone"):
                cell.call("aten::copy_", took, dims=(HEADS, HEADS), dtype=HALF)

    for _ in range(6):
        cell.call("aten::relu", 20_000)
        if is_fused:
            cell.call("aten::relu", 149_000)
            continue
        with cell.operator("aten::einsum"):
            lay_out(60_000)
            cell.call("aten::bmm", 150_000, dims=(QUERIES, (16, 64, 4096)), dtype=HALF)
        cell.call("aten::_softmax", 800_000, dims=(SCORES, (), ()), dtype=HALF)
        with cell.operator("aten::einsum"):
            lay_out(60_000)
            dims = ((16, 4096, 4096), QUERIES)
            cell.call("aten::bmm", 150_000, dims=dims, dtype=HALF)
        lay_out(60_000)
    cell.wait()
    return cell


@pytest.mark.parametrize("lays_out", [True, False])
def test_fused_attention_needs_no_copies_of_its_operands(
    tmp_path: Path, lays_out: bool
) -> None:
    evidence = attends(lays_out).evidence(tmp_path, is_timed=False)
    change = changes_of(attention, evidence)["sdpa"]
    fixed = attends(lays_out, is_fused=True)
    assert change.time_ns == pytest.approx(fixed.window_ns, rel=0.1)


def test_what_a_fused_mask_changes_is_told(tmp_path: Path) -> None:
    source = "y = torch.softmax((q @ k.mT){}, -1) @ v\n"
    for mask, told in (("", False), (".masked_fill(m, -torch.inf)", True)):
        cell = attends(False, source=source.format(mask))
        change = changes_of(attention, cell.evidence(tmp_path))["sdpa"]
        assert ("gives 0" in change.reason) == ("attn_mask" in change.code) == told


def test_attentions_that_an_edit_lets_be_make_a_bound(tmp_path: Path) -> None:
    source = "a = (q @ k.mT).softmax(-1) @ v\nb = (q @ k.mT{}).softmax(-1) @ v\n"
    for bias, basis in (("", "predicted"), (" + r", "not below")):
        cell = attends(False, source=source.format(bias))
        change = changes_of(attention, cell.evidence(tmp_path))["sdpa"]
        assert change.code and change.basis == basis


def test_the_math_backend_goes_whole_and_what_it_widens_is_half(tmp_path: Path) -> None:
    cell = Cell("with sdpa_kernel(SDPBackend.MATH):\n    y = attend(q, k, v)\n")
    rows = (16, 4096, 4096)
    for _ in range(3):
        outer = cell.operator("aten::scaled_dot_product_attention", (HEADS,), HALF)
        inner = cell.operator("aten::_scaled_dot_product_attention_math", (HEADS,))
        with outer, inner:
            cell.call("aten::copy_", 40_000, dims=(HEADS, HEADS), dtype=HALF)
            cell.call("aten::bmm", 900_000, dims=(QUERIES, (16, 64, 4096)))
            cell.call("aten::_softmax", 900_000, dims=(SCORES, (), ()))
            for name in ("isneginf", "all", "where"):
                cell.call(f"aten::{name}", 500_000, dims=(SCORES,))
            cell.call("aten::bmm", 900_000, dims=(rows, QUERIES))
    cell.wait()
    evidence = cell.evidence(tmp_path, is_timed=False)
    change = changes_of(attention, evidence)["sdpa-backend"]
    # half precision takes about 0.15 ms a call
    assert change.high_ns is not None and change.high_ns < 3 * 400_000
    assert not change.reason


def test_a_bound_of_training_leaves_no_scores_to_the_backward_pass(
    tmp_path: Path,
) -> None:
    """Fused, six forward and backward passes take 0.9 ms and about 2.7 ms."""
    cell, rows = attends(lays_out=False), (16, 4096, 4096)
    engine = "autograd::engine::evaluate_function: {}Backward0"
    for _ in range(6):
        for name, took, dims in (
            ("aten::bmm", 150_000, (rows, QUERIES)),
            ("aten::bmm", 150_000, (QUERIES, (16, 64, 4096))),
            ("aten::_softmax_backward_data", 900_000, (SCORES, SCORES, (), ())),
            ("aten::bmm", 150_000, (rows, QUERIES)),
            ("aten::bmm", 150_000, ((16, 64, 4096), rows)),
            # what else there is stays
            ("aten::mm", 500_000, ((4096, 512), (512, 512))),
        ):
            with cell.operator(engine.format(name.removeprefix("aten::"))):
                cell.call(name, took, dims=dims, dtype=HALF)
    cell.wait()
    change = changes_of(attention, cell.evidence(tmp_path))["sdpa"]
    assert change.basis == "not below"
    assert change.low_ns is not None
    kept_ns = 6 * (20_000 + 500_000)
    assert kept_ns + 6 * 200_000 < change.low_ns < kept_ns + 6 * 800_000


def test_a_small_head_takes_as_long_for_each_score() -> None:
    chip = Chip.of(Run(0, 1, 1, gpus=(GpuLimits("NVIDIA H200"),)))
    assert chip is not None
    scores = 64 * 1024 * 1024
    assert chip.attend(4 * scores * 32, HALF, 32) == chip.attend(
        4 * scores * 64, HALF, 64
    )


def sets(memsets: bool) -> Cell:
    cell = Cell("for x in xs:\n    x.sort()\n")
    for _ in range(100):
        cell.call("aten::sort", 8_000)
        with cell.operator("aten::sort"):
            if memsets:
                cell.memset(1_000)
            else:
                cell.kernel(1_000)
    cell.wait()
    return cell


def test_a_graph_brings_memsets_no_nearer_for_sure(tmp_path: Path) -> None:
    speeds = []
    for memsets in (False, True):
        evidence = sets(memsets).evidence(tmp_path)
        change = changes_of(launches, evidence)["cuda-graph"]
        speeds.append((change.speed_low, change.speed_high))
    (least, most), (with_memsets, most_with) = speeds
    assert with_memsets < least
    assert most_with == pytest.approx(most, rel=0.05)


@pytest.mark.parametrize(
    ("waits_at", "basis"),
    [
        # numbers that are set before a loop, and a result that is read behind it
        ((0, 1), "predicted"),
        ((0, 1, 399), "predicted"),
        (range(0, 400, 40), "not below"),
        ((200,), "not below"),
    ],
)
def test_waits_around_a_loop_leave_a_graph_of_its_turns(
    tmp_path: Path, waits_at: Iterable[int], basis: str
) -> None:
    cell = Cell("x[3] = 1.0\nfor day in range(100):\n    x = step(x)\nprint(x.sum())\n")
    for turn in range(400):
        for name in ("aten::mul", "aten::add", "aten::sub", "aten::relu"):
            with cell.operator(name):
                cell.kernel(2_000, name)
        cell.python(60_000)
        if turn in waits_at:
            cell.wait()
    cell.item()
    change = changes_of(launches, cell.evidence(tmp_path))["cuda-graph"]
    assert change.basis == basis


def test_a_time_that_the_gpu_decided_leaves_the_host_open(tmp_path: Path) -> None:
    cell = Cell()
    for _ in range(100):
        cell.call("aten::mm", 50_000)
        cell.python(60_000)
    cell.wait()
    profiled = cell.evidence(tmp_path, is_timed=False)
    gpu_ns = int(profiled.gpu.duration_ns.sum())
    times = BareTimes(3, gpu_ns + 300_000, gpu_ns, gpu_ns + 400_000, "executions")
    evidence = evidence_of(profiled.events, replace(profiled.run, bare=times))
    ways = Ways(evidence)
    ways.drop(np.arange(100))
    advice = Prediction(evidence).of(Proposal("fuse", "", "", ways))
    assert advice is not None
    change = advice.change
    assert change.time_ns is None
    assert change.low_ns is not None and change.high_ns is not None
    assert change.low_ns < 0.8 * change.high_ns

"""Memory over time: small enough to travel, and with every extreme that matters."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from warpbook_profiler.capture.kineto import Capture
from warpbook_profiler.events.allocations import Allocations, read_allocations
from warpbook_profiler.events.marks import make_marks
from warpbook_profiler.events.run import Run
from warpbook_profiler.facts.memory_curves import MAX_POINTS, memory_curves

SECOND = 10**9


def node(name: str, *children: Any) -> SimpleNamespace:
    """An operator in the profiler's tree."""
    tree_node = SimpleNamespace(
        name=name,
        tag=SimpleNamespace(name="TorchOp"),
        children=list(children),
        parent=None,
    )
    for child in children:
        child.parent = tree_node
    return tree_node


def change(
    at_ns: int, by: int, total: int, reserved: int, device: str = "cuda:0"
) -> SimpleNamespace:
    """An allocation, or a free."""
    of = torch.device(device)
    fields = SimpleNamespace(
        device=of, alloc_size=by, total_allocated=total, total_reserved=reserved
    )
    tree_node = node("[memory]")
    tree_node.tag = SimpleNamespace(name="Allocation")
    tree_node.start_time_ns, tree_node.typed = at_ns, ("Allocation", fields)
    return tree_node


def run(*allocations: Allocations, **more: Any) -> Run:
    return Run(0, SECOND, SECOND, allocations=allocations, **more)


def test_the_peak_is_told_with_its_time_operators_and_line() -> None:
    tree = [
        # roots of other threads come in any order
        node("AddmmBackward0", change(700, -50, 200, 1000)),
        node("aten::linear", node("aten::addmm", change(300, 150, 250, 1000))),
        change(100, 50, 100, 900),
        change(150, 5, 5, 64, device="cuda:1"),
        node("aten::ones", change(90, 4000, 0, 0, device="cpu")),
    ]
    by_device = read_allocations(tree)
    assert [one.device for one in by_device] == [0, 1]
    marks = make_marks([3, 4], [0, 250])
    first, second = memory_curves(run(*by_device, marks=marks))
    assert first.times_ns == (0, 100, 300, 700, SECOND)
    # 50 bytes were there before, and what is there at the end stays
    assert first.allocated_bytes == (50, 100, 250, 200, 200)
    assert first.reserved_bytes == (900, 900, 1000, 1000, 1000)
    assert (first.peak_allocated_bytes, first.peak_ns) == (250, 300)
    assert first.peak_path == "aten::linear > aten::addmm"
    assert (first.peak_line, first.changes) == (4, 3)
    assert (second.device, second.peak_path, second.peak_line) == (1, "", 3)


def test_what_is_around_the_cell_to_have_its_allocations_is_no_path() -> None:
    freed, made = change(200, -50, 50, 900), change(100, 50, 100, 900)
    (of_device,) = read_allocations(
        [node("ours", freed, node("aten::ones", made))], without="ours"
    )
    assert of_device.peak_path == ("aten::ones",)
    assert of_device.allocated_bytes.tolist() == [100, 50]


def test_torchs_own_tree_is_read_and_memory_of_the_host_is_not_a_gpus() -> None:
    capture = Capture(memory=True)
    capture.start()
    torch.ones(1000).sum()
    tree = capture.stop()[1].allocations
    assert tree == ()


def allocations(times: list[int], changes: list[int], device: int = 0) -> Allocations:
    at_ns, by = np.sort(np.array(times)), np.array(changes)
    total = 10**9 + np.cumsum(by)
    reserved = np.maximum.accumulate(total) + 10**6
    return Allocations(device, at_ns, by, total, reserved)


@settings(max_examples=30)
@given(st.integers(1, 30_000), st.integers(0, 2**31), st.integers(1, 3))
def test_few_points_keep_every_extreme(count: int, seed: int, gpus: int) -> None:
    random = np.random.default_rng(seed)
    recorded = [
        allocations(
            random.integers(0, SECOND, count).tolist(),
            random.integers(-(10**6), 10**6, count).tolist(),
            device,
        )
        for device in range(gpus)
    ]
    curves = memory_curves(run(*recorded))
    assert sum(len(curve.times_ns) for curve in curves) <= MAX_POINTS
    for all_of, curve in zip(recorded, curves, strict=True):
        assert max(curve.allocated_bytes) == max(
            curve.allocated_bytes[0], int(all_of.allocated_bytes.max())
        )
        assert min(curve.allocated_bytes) == min(
            curve.allocated_bytes[0], int(all_of.allocated_bytes.min())
        )
        assert max(curve.reserved_bytes) == int(all_of.reserved_bytes.max())
        assert curve.peak_allocated_bytes == max(curve.allocated_bytes)
        assert list(curve.times_ns) == sorted(curve.times_ns)
        assert len(curve.allocated_bytes) == len(curve.times_ns)
        # every point is one that was
        true = set(
            zip(
                all_of.at_ns.tolist(),
                all_of.allocated_bytes.tolist(),
                strict=True,
            )
        )
        inner = zip(curve.times_ns[1:-1], curve.allocated_bytes[1:-1], strict=True)
        assert set(inner) <= true


def test_a_spike_of_a_moment_in_a_long_run_is_kept() -> None:
    """Also one between two points that are drawn, which are 0.5 ms apart."""
    times = list(range(0, SECOND, 10_000))
    changes = [1, -1] * (len(times) // 2)
    changes[70_001], changes[70_002] = 10**9, -(10**9)
    (curve,) = memory_curves(run(allocations(times, changes)))
    assert curve.changes == 100_000
    assert curve.peak_allocated_bytes > 2 * 10**9 - 5
    assert curve.peak_allocated_bytes in curve.allocated_bytes
    assert curve.peak_ns == 700_010_000


def test_code_that_only_frees_had_its_peak_before() -> None:
    tree = [node("aten::set_", change(100, -50, 250, 400))]
    (curve,) = memory_curves(run(*read_allocations(tree)))
    assert (curve.peak_allocated_bytes, curve.peak_ns) == (300, 0)
    assert (curve.peak_path, curve.peak_line) == ("", None)


def test_nothing_allocated_is_no_curve() -> None:
    assert memory_curves(run()) == ()
    nothing = np.zeros(0, np.int64)
    empty = Allocations(0, nothing, nothing, nothing, nothing)
    assert memory_curves(run(empty)) == ()
    assert dataclasses.replace(run()).allocations == ()

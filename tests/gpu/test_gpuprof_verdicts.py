"""Cells whose bottleneck is known, on a real GPU: the verdict names it.

    pytest -m gpu -s tests/gpu/test_gpuprof_verdicts.py

prints the sentence of each.
"""

import time
from collections.abc import Callable

import pytest
import torch

from warpbook_monitors.trace.analysis import analyse
from warpbook_monitors.trace.kineto import Capture

pytestmark = pytest.mark.gpu


Cell = Callable[[], None]


def small_additions() -> Cell:
    x = torch.zeros(64, device="cuda")

    def cell() -> None:
        for _ in range(3000):
            x.add_(1)

    return cell


def small_network() -> Cell:
    layers = [torch.nn.Linear(64, 64, device="cuda") for _ in range(40)]
    x = torch.randn(8, 64, device="cuda")

    def cell() -> None:
        out = x
        with torch.no_grad():
            for _ in range(20):
                for layer in layers:
                    out = torch.relu(layer(out))

    return cell


def item_in_a_loop() -> Cell:
    x = torch.randn(1 << 18, device="cuda")

    def cell() -> None:
        for _ in range(500):
            x.sum().item()

    return cell


def slow_loader() -> Cell:
    x = torch.randn(2048, 2048, device="cuda")

    def cell() -> None:
        for _ in range(20):
            time.sleep(0.005)
            x @ x

    return cell


def python_between_launches() -> Cell:
    x = torch.randn(2048, 2048, device="cuda")

    def cell() -> None:
        for _ in range(20):
            sum(number * number for number in range(50_000))
            x @ x

    return cell


def pageable_copies() -> Cell:
    host = torch.randn(1 << 25)

    def cell() -> None:
        for _ in range(10):
            host.to("cuda")

    return cell


def pinned_copies() -> Cell:
    host = torch.randn(1 << 25).pin_memory()
    there = torch.empty(1 << 25, device="cuda")

    def cell() -> None:
        for _ in range(20):
            there.copy_(host, non_blocking=True)

    return cell


def pointwise_chain() -> Cell:
    x = torch.randn(1 << 28, device="cuda")

    def cell() -> None:
        for _ in range(20):
            x * 1.01 + 0.5

    return cell


def copies_within_the_gpu() -> Cell:
    x = torch.randn(1 << 28, device="cuda")
    y = torch.empty_like(x)

    def cell() -> None:
        for _ in range(40):
            y.copy_(x)

    return cell


def half_products() -> Cell:
    x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)

    def cell() -> None:
        for _ in range(30):
            x @ x

    return cell


def single_products() -> Cell:
    x = torch.randn(8192, 8192, device="cuda")

    def cell() -> None:
        for _ in range(10):
            x @ x

    return cell


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (small_additions, "launch-bound"),
        (small_network, "launch-bound"),
        (item_in_a_loop, "sync-bound"),
        (slow_loader, "host-bound"),
        (python_between_launches, "host-bound"),
        (pageable_copies, "transfer-bound"),
        (pinned_copies, "transfer-bound"),
        (pointwise_chain, "memory-bound"),
        (copies_within_the_gpu, "memory-bound"),
        (half_products, "compute-bound"),
        (single_products, "compute-bound"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_the_verdict_is_the_known_bottleneck(
    make: Callable[[], Cell], kind: str
) -> None:
    cell = make()
    cell()  # libraries are loaded and memory is taken once
    torch.cuda.synchronize()
    capture = Capture()
    capture.start()
    cell()
    found = analyse(*capture.stop())
    assert found.verdict is not None
    print(f"\n{make.__name__}: {found.verdict.kind}: {found.verdict.sentence}")
    for each in found.findings:
        print(f"    {each.share:4.0%} {each.kind}: {each.evidence}")
    assert found.metrics is not None
    print(f"    occupancy {found.metrics.occupancy_share}, {found.metrics.launch}")
    assert found.completeness.matched == found.completeness.launches
    assert found.verdict.kind == kind

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


def small_additions() -> None:
    x = torch.zeros(64, device="cuda")
    for _ in range(3000):
        x.add_(1)


def small_network() -> None:
    layers = [torch.nn.Linear(64, 64, device="cuda") for _ in range(40)]
    x = torch.randn(8, 64, device="cuda")
    with torch.no_grad():
        for _ in range(20):
            for layer in layers:
                x = torch.relu(layer(x))


def item_in_a_loop() -> None:
    x = torch.randn(1024, 1024, device="cuda")
    for _ in range(500):
        (x @ x).sum().item()


def nonzero_in_a_loop() -> None:
    x = torch.randn(1 << 20, device="cuda")
    for _ in range(500):
        x[(x > 2).nonzero()]


def slow_loader() -> None:
    x = torch.randn(2048, 2048, device="cuda")
    for _ in range(20):
        time.sleep(0.005)
        x = x @ x / 2048


def python_between_launches() -> None:
    x = torch.randn(2048, 2048, device="cuda")
    for _ in range(20):
        sum(number * number for number in range(50_000))
        x = x @ x / 2048


def pageable_copies() -> None:
    host = torch.randn(1 << 25)
    for _ in range(10):
        host.to("cuda")


def pinned_copies() -> None:
    host = torch.randn(1 << 25, pin_memory=True)
    there = torch.empty(1 << 25, device="cuda")
    for _ in range(20):
        there.copy_(host, non_blocking=True)


def pointwise_chain() -> None:
    x = torch.randn(1 << 28, device="cuda")
    for _ in range(20):
        x = x * 1.01 + 0.5


def copies_within_the_gpu() -> None:
    x = torch.randn(1 << 28, device="cuda")
    y = torch.empty_like(x)
    for _ in range(40):
        y.copy_(x)


def half_products() -> None:
    x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    for _ in range(30):
        x @ x


def single_products() -> None:
    x = torch.randn(8192, 8192, device="cuda")
    for _ in range(10):
        x @ x


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        (small_additions, "launch-bound"),
        (small_network, "launch-bound"),
        (item_in_a_loop, "sync-bound"),
        (nonzero_in_a_loop, "sync-bound"),
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
    cell: Callable[[], None], kind: str
) -> None:
    cell()  # libraries are loaded and memory is taken once
    torch.cuda.synchronize()
    capture = Capture()
    capture.start()
    cell()
    found = analyse(*capture.stop())
    assert found.verdict is not None
    print(f"\n{cell.__name__}: {found.verdict.kind}: {found.verdict.sentence}")
    for each in found.findings:
        print(f"    {each.share:4.0%} {each.kind}: {each.evidence}")
    assert found.metrics is not None
    print(f"    occupancy {found.metrics.occupancy_share}, {found.metrics.launch}")
    assert found.completeness.matched == found.completeness.launches
    assert found.verdict.kind == kind

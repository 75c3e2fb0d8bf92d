"""Cells whose bottleneck is known, profiled as a person does: the verdict names it.

    pytest -m gpu -s tests/gpu/test_gpuprof_verdicts.py

prints the findings of each, and at the end the table that docs/evidence/ keeps. Cells
that need two GPUs are in test_two_gpus_verdicts.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.gpu.bottleneck import HEADER, Bottleneck, judge
from tests.gpu.notebook import Notebook
from warpbook_labs.lab.files import CATALOGUE

pytestmark = pytest.mark.gpu

#: how many products take as long as half of a step, and how long that is
_CALIBRATED = """
a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
a @ a
products = max(round(0.005 / (fastest_s(lambda: [a @ a for _ in range(20)]) / 20)), 1)
half_s = fastest_s(lambda: [a @ a for _ in range(products)])
"""

KNOWN = [
    Bottleneck(
        "3,000 additions to 64 numbers",
        "launch-bound",
        "a kernel takes the GPU 1 µs and the host several to launch",
        'x = torch.zeros(64, device="cuda")',
        "for _ in range(3000):\n    x.add_(1)",
        "launched",
    ),
    Bottleneck(
        "20 passes of 40 layers of 64 x 64",
        "launch-bound",
        "the same with a real network: 1,600 kernels of microseconds",
        'layers = [torch.nn.Linear(64, 64, device="cuda") for _ in range(40)]\n'
        'x = torch.randn(8, 64, device="cuda")',
        "with torch.no_grad():\n"
        "    for _ in range(20):\n"
        "        out = x\n"
        "        for layer in layers:\n"
        "            out = torch.relu(layer(out))",
        "launched",
    ),
    Bottleneck(
        "500 sums, each with `.item()`",
        "sync-bound",
        "each number is waited for, and only then is the next sum launched",
        'x = torch.randn(1 << 18, device="cuda")',
        "for _ in range(500):\n    x.sum().item()",
        "aten::item",
    ),
    Bottleneck(
        "300 sums of 16 MiB, each timed with `synchronize()`",
        "sync-bound",
        "on an H100 10.7 ms, 7.0 without the waits, and the GPU's part is 2.6; a sum "
        "of 9 µs has ended before a slow host waits for it: then it is launching",
        'import json, statistics\nx = torch.randn(1 << 22, device="cuda")',
        "log, times = [], []\n"
        "for step in range(300):\n"
        "    began = time.perf_counter()\n"
        "    y = x.sum()\n"
        "    torch.cuda.synchronize()\n"
        "    times.append(time.perf_counter() - began)\n"
        '    seen = {"step": step, "median_s": statistics.median(times)}\n'
        "    log.append(json.dumps(seen))",
        "cudaDeviceSynchronize|launched",
        "launch-bound",
    ),
    Bottleneck(
        "20 steps, each after 5 ms of sleep",
        "host-bound",
        "a loader that is too slow: nothing is queued while the host sleeps",
        'x = torch.randn(2048, 2048, device="cuda")',
        "for _ in range(20):\n    time.sleep(0.005)\n    x @ x",
        "Python",
    ),
    Bottleneck(
        "20 steps, each after a sum in Python",
        "host-bound",
        "the host computes for milliseconds between two launches",
        'x = torch.randn(2048, 2048, device="cuda")',
        "for _ in range(20):\n"
        "    sum(number * number for number in range(50_000))\n"
        "    x @ x",
        "Python",
    ),
    Bottleneck(
        '`.to("cuda")` of 128 MiB, 10 times',
        "transfer-bound",
        "copies from pageable memory, and no kernel at all",
        "host = torch.randn(1 << 25)",
        'for _ in range(10):\n    host.to("cuda")',
        "HtoD .*pageable",
    ),
    Bottleneck(
        "the same from pinned memory",
        "transfer-bound",
        "as fast as the bus can be, and still only copies",
        "host = torch.randn(1 << 25).pin_memory()\n"
        'there = torch.empty(1 << 25, device="cuda")',
        "for _ in range(20):\n    there.copy_(host, non_blocking=True)",
        "HtoD .*pinned",
    ),
    Bottleneck(
        "`.cpu()` of 128 MiB, 10 times",
        "transfer-bound",
        "results are read back to pageable memory, one after the other",
        'there = torch.randn(1 << 25, device="cuda")',
        "for _ in range(10):\n    there.cpu()",
        "DtoH .*pageable",
    ),
    Bottleneck(
        "`x * 1.01 + 0.5` of 1 GiB",
        "memory-bound",
        "one operation for every eight bytes that are moved",
        'x = torch.randn(1 << 28, device="cuda")',
        "for _ in range(20):\n    x * 1.01 + 0.5",
        "device memory",
    ),
    Bottleneck(
        "`y.copy_(x)` of 1 GiB",
        "memory-bound",
        "copies within the GPU's memory compute nothing",
        'x = torch.randn(1 << 28, device="cuda")\ny = torch.empty_like(x)',
        "for _ in range(40):\n    y.copy_(x)",
        "device memory",
    ),
    Bottleneck(
        "bf16 products of 8192",
        "compute-bound",
        "2,731 operations for each byte that must be moved: tensor cores",
        'x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)',
        "for _ in range(30):\n    x @ x",
        "tensor cores",
    ),
    Bottleneck(
        "attention of 4096 tokens, bf16",
        "compute-bound",
        "a flash kernel never writes the scores to memory: tensor cores",
        'q = torch.randn(4, 16, 4096, 128, device="cuda", dtype=torch.bfloat16)',
        "for _ in range(20):\n"
        "    torch.nn.functional.scaled_dot_product_attention(q, q, q)",
        "tensor cores",
    ),
    Bottleneck(
        "fp32 products of 8192",
        "compute-bound",
        "TF32 is off, so FP32 cores have to do it",
        'x = torch.randn(8192, 8192, device="cuda")',
        "for _ in range(10):\n    x @ x",
        "FP32 cores",
    ),
    Bottleneck(
        "the same in TF32",
        "compute-bound",
        "the same product on tensor cores",
        'torch.set_float32_matmul_precision("high")\n'
        'x = torch.randn(8192, 8192, device="cuda")',
        "for _ in range(20):\n    x @ x",
        "tensor cores",
    ),
    Bottleneck(
        "fp64 products of 8192",
        "compute-bound",
        "a Hopper multiplies doubles on its tensor cores too (DMMA)",
        'x = torch.randn(8192, 8192, device="cuda", dtype=torch.float64)',
        "for _ in range(5):\n    x @ x",
        "tensor cores|FP64 units",
    ),
    Bottleneck(
        "products for 5 ms, then sleep until 10 ms are over, 20 times",
        "mixed",
        "half of the time the tensor cores work, half of it the host sleeps",
        _CALIBRATED,
        "for _ in range(20):\n"
        "    end = time.perf_counter() + 2 * half_s\n"
        "    for _ in range(products):\n"
        "        a @ a\n"
        "    time.sleep(end - time.perf_counter())",
        "host-bound.*compute-bound|compute-bound.*host-bound",
    ),
    Bottleneck(
        "a pinned copy, then pointwise work that takes as long",
        "mixed",
        "half of the time the bus works, half of it the GPU's memory",
        "host = torch.randn(1 << 26).pin_memory()\n"
        'there = torch.empty(1 << 26, device="cuda")\n'
        'x = torch.randn(1 << 28, device="cuda")\n'
        "copy_s = fastest_s(lambda: there.copy_(host, non_blocking=True))\n"
        "x.mul_(1.0)\n"
        "steps = round(copy_s / (fastest_s(lambda: [x.mul_(1.0) for _ in range(10)])"
        " / 10))",
        "for _ in range(10):\n"
        "    there.copy_(host, non_blocking=True)\n"
        "    for _ in range(steps):\n"
        "        x.mul_(1.0)",
        "transfer-bound.*memory-bound|memory-bound.*transfer-bound",
    ),
    Bottleneck(
        "a sum in Python alone",
        "python-bound",
        "nothing ran on the GPU, and Python's own loop takes all of the time",
        "",
        "sum(range(1_000_000))",
        "Nothing ran on the GPU",
    ),
    Bottleneck(
        "the loop of the lab `read-the-trace`",
        "host-bound",
        "pictures are turned one by one on the CPU, in small operators",
        (CATALOGUE / "profile" / "read_the_trace" / "given.py").read_text(),
        "losses = []\n"
        "for images in batches(20):\n"
        "    losses.append(step(images))\n"
        "print(sum(losses).item() / 20)",
        "operators|Python",
    ),
]


@pytest.fixture(scope="module")
def table() -> Iterator[list[str]]:
    rows: list[str] = []
    yield rows
    print("\n", HEADER, *rows, sep="\n")


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.kind)
def test_the_verdict_is_the_known_bottleneck(
    known: Bottleneck, shared_notebook: Callable[[], Notebook], table: list[str]
) -> None:
    row, wrong = judge(shared_notebook(), known)
    table.append(row)
    print(row)
    assert not wrong

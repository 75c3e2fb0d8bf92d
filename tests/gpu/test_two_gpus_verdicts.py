"""Cells on two GPUs that are bound by what they tell one another.

`pytest -m two_gpus -s tests/gpu/test_two_gpus_verdicts.py` prints the table.
"""

from __future__ import annotations

import pytest

from tests.gpu.bottleneck import HEADER, Bottleneck, judge
from tests.gpu.notebook import Notebook

pytestmark = [pytest.mark.two_gpus, pytest.mark.timeout(600)]

_BOTH_RANKS = """
import torch.distributed as dist
torch.cuda.set_device(rank)
dist.init_process_group(
    "nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
layers = [torch.nn.Linear(8192, 8192, bias=False) for _ in range(4)]
# without copies of gradients into buckets, which take as long as their sums on NVLink
model = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Sequential(*layers).to(rank), device_ids=[rank],
    gradient_as_bucket_view=True)
batch = torch.randn(16, 8192, device=rank)
def step():
    model.zero_grad()
    model(batch).sum().backward()
"""
#: the other rank's process, which ends with the kernel that started it
_OTHER_RANK = f"""
import ctypes, signal, sys, torch
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
rank, port = 1, sys.argv[1]
{_BOTH_RANKS}
while True:
    step()
"""

KNOWN = [
    Bottleneck(
        "an all-reduce of 256 MiB between two GPUs, 40 times",
        "communication-bound",
        "NCCL's kernels are all that runs",
        "from torch.cuda import nccl\n"
        'parts = [torch.ones(1 << 26, device=f"cuda:{gpu}") for gpu in (0, 1)]\n'
        "nccl.all_reduce(parts)\n"
        "for gpu in (0, 1):\n"
        "    torch.cuda.synchronize(gpu)",
        "for _ in range(40):\n    nccl.all_reduce(parts)",
        "Communication between GPUs",
    ),
    Bottleneck(
        "`there.copy_(here)` of 1 GiB from one GPU to the other, 20 times",
        "communication-bound",
        "the copy engines and NVLink work, and nothing is computed",
        'here = torch.ones(1 << 28, device="cuda:0")\n'
        'there = torch.empty(1 << 28, device="cuda:1")',
        "for _ in range(20):\n    there.copy_(here)",
        "Communication between GPUs",
    ),
    Bottleneck(
        "a DDP step with a GiB of gradients and a batch of 16",
        "communication-bound",
        "each gradient takes longer to be summed than to be computed, and little of it "
        "is hidden behind the backward pass",
        "import socket, subprocess, sys\n"
        "with socket.socket() as free:\n"
        '    free.bind(("127.0.0.1", 0))\n'
        "    rank, port = 0, free.getsockname()[1]\n"
        f"command = [sys.executable, '-c', {_OTHER_RANK!r}, str(port)]\n"
        "other = subprocess.Popen(command)\n"
        f"{_BOTH_RANKS}\n"
        "for _ in range(5):\n"
        "    step()",
        "for _ in range(20):\n    step()",
        "Communication between GPUs",
    ),
]


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known.kind)
def test_the_verdict_is_the_known_bottleneck(
    known: Bottleneck, notebook: Notebook
) -> None:
    row, wrong = judge(notebook, known)
    print("\n", HEADER, row, sep="\n")
    assert not wrong

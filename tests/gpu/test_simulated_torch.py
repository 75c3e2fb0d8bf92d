"""What the simulated GPU is asked for is what a real one is asked for.

    pytest -m gpu -s tests/gpu/test_simulated_torch.py

The same lines run on a GPU under the profiler and on the simulated one: copies between
host and GPU by direction and kind of host memory, and the number of all else, must
agree. Matrix products are left out, since libraries choose how many kernels they take,
and so is the clearing of small memory with which a sum begins.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from tests.labs.simulated.learner_file import program_of
from warpbook_labs.engines.simulated.program import (
    Allocate,
    Copy,
    Launch,
    Place,
    Program,
    Read,
)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),
]

SIDE = 256
#: `p` is pinned, `h` is ordinary memory, `d` and `e` are on the GPU
LINES = [
    "d.copy_(p, non_blocking=True)",
    "d.copy_(h, non_blocking=True)",
    "p.copy_(d, non_blocking=True)",
    "h.copy_(d)",
    "d[3:7].copy_(p[:4], non_blocking=True)",
    "d[:, 3:7].copy_(p[:, :4], non_blocking=True)",
    "y = p[:, :9].to('cuda', non_blocking=True)",
    "y = p.t().to('cuda', non_blocking=True)",
    "y = p.to('cuda', torch.float16, non_blocking=True)",
    "y = p.to('cuda', torch.float16)",
    "y = d.to('cpu', torch.float16, non_blocking=True)",
    "y = d.to('cpu', torch.float16)",
    "y = d.to('cpu', non_blocking=True)",
    "y = d.cpu()",
    "p[:, :9].copy_(d[:, :9], non_blocking=True)",
    "y = d[:, :9].cpu()",
    "y = d.half()",
    "y = d.t().contiguous()",
    "y = d[:, ::2] + 1",
    "d.mul_(2).add_(e)",
    "y = (d * 2 + e).relu()",
    "torch.add(d, e, alpha=3, out=e)",
    "y = torch.cat([d, e])",
    "y = torch.stack([d, e], 1)",
    "y = d.sum(), d.mean(dim=1), d.amax(0), d.max()",
    "y = torch.where(d > 0, d, 1.0)",
    "y = torch.softmax(d, 1)",
    "y = d.clamp(-1, 1).abs_()",
    "d[2:4] = 7; d.fill_(3)",
    "d[0] = e[1]",
    "y = d * torch.tensor(2.0)",
    "y = d.sum().item()",
    "y = d.repeat(2, 3)",
    "y = torch.ones(5, 6, device='cuda'); z = torch.arange(9, device='cuda')",
    "y = torch.tensor([1.0, 2.0], device='cuda')",
    "torch.cuda._sleep(1000)",
]

ORDER: dict[str, str] = {"HtoD": "host to device", "DtoH": "device to host"}


def real(line: str) -> Counter[str]:
    """What the profiler saw on the GPU."""
    shape = (SIDE, SIDE)
    space: dict[str, Any] = {
        "torch": torch,
        "p": torch.ones(shape, pin_memory=True),
        "h": torch.ones(shape),
        "d": torch.ones(shape, device="cuda"),
        "e": torch.ones(shape, device="cuda"),
    }
    # libraries are loaded, and their memory is filled, the first time
    exec(line, dict(space))
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as seen:
        exec(line, space)
        torch.cuda.synchronize()
    on_gpu = [
        event.name
        for event in seen.events() or ()
        if event.device_type == torch.autograd.DeviceType.CUDA
    ]
    # what the profiler itself does has a name on the GPU, too
    left_out = ("Sync", "Memset", "Activity Buffer", "Buffer Flush", "Command Buffer")
    return Counter(
        _kind(name) for name in on_gpu if not any(word in name for word in left_out)
    )


def _kind(name: str) -> str:
    for letters, way in ORDER.items():
        if letters in name:
            return f"{way}, {'pageable' if 'Pageable' in name else 'pinned'}"
    return "on the GPU"


def simulated(line: str) -> Counter[str]:
    """What the simulated GPU was asked."""
    square = np.ones((SIDE, SIDE), np.float32)
    places: dict[str, Place] = {
        "p": "pinned",
        "h": "pageable",
        "d": "device",
        "e": "device",
    }
    source = (
        "import torch\n\ndef prepare():\n    pass\n\n"
        f"def run(state, p, h, d, e):\n    {line}\n"
    )
    lent = {name: (square, place) for name, place in places.items()}
    return _asked(program_of(source, lent), places)


def _asked(program: Program, places: dict[str, Place]) -> Counter[str]:
    where = {view.storage: places[name] for name, view in program.buffers.items()}
    counts: Counter[str] = Counter()
    for one in program.instructions:
        if isinstance(one, Allocate):
            where[one.storage] = one.place
        elif isinstance(one, Copy):
            ends = where[one.source.storage], where[one.target.storage]
            way = "device to host" if ends[0] == "device" else "host to device"
            counts[f"{way}, {'pageable' if 'pageable' in ends else 'pinned'}"] += 1
        elif isinstance(one, Launch) and one.stream >= 0:
            counts["on the GPU"] += 1
        elif isinstance(one, Read) and where[one.source.storage] == "device":
            counts["device to host, pageable"] += 1
    return counts


@pytest.mark.parametrize("line", LINES)
def test_the_same_copies_and_as_many_kernels(line: str) -> None:
    seen, recorded = real(line), simulated(line)
    print(f"{line}: {dict(seen)}")
    # PyTorch reads a single number by way of pinned memory of its own
    if "item" in line:
        seen["device to host, pageable"] += seen.pop("device to host, pinned", 0)
    assert recorded == seen


def test_a_copy_to_the_host_that_is_not_waited_for_lands_in_pinned_memory() -> None:
    assert torch.ones(9, device="cuda").to("cpu", non_blocking=True).is_pinned()


def test_streams_come_from_a_pool_of_32() -> None:
    streams = [torch.cuda.Stream() for _ in range(33)]
    assert streams[0] == streams[32] and len(set(streams)) == 32


@pytest.mark.parametrize(
    "body",
    [
        "x.sum().item()",
        "torch.cuda.synchronize()",
        "torch.cuda.current_stream().synchronize()",
        "x.cpu()",
        "torch.cuda.current_stream().wait_event(before)",
    ],
)
def test_a_capture_forbids_what_makes_the_host_wait(body: str) -> None:
    script = f"""
import torch
x = torch.zeros(4, device="cuda")
before = torch.cuda.Stream().record_event()
torch.cuda.synchronize()
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        {body}
except RuntimeError as problem:
    print("refused:", problem)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    print(done.stdout)
    assert "refused:" in done.stdout, done.stderr

"""Makes this process's PyTorch one with a simulated GPU, for good, and tries it."""

from __future__ import annotations

import contextlib
import importlib
import io
import pkgutil
import threading

import numpy as np
import torch

from warpbook_labs.engines.simulated.lacking import leave_out_compiler
from warpbook_labs.engines.simulated.pytorch import cuda, device, host_reads, specials
from warpbook_labs.engines.simulated.pytorch.accelerator import NotSupported, give_gpu
from warpbook_labs.engines.simulated.pytorch.current import refuse
from warpbook_labs.engines.simulated.pytorch.session import Session

#: parts that PyTorch loads when they are first wanted, which the jail allows no more
_LOADED_LATE = (
    *(
        f"torch.cuda.{module.name}"
        for module in pkgutil.iter_modules(torch.cuda.__path__)
        if not module.name.startswith("_")
    ),
    "torch._functorch.eager_transforms",
    "torch._functorch.vmap",
    "torch.distributions",
    "torch.nn.utils.parametrizations",
    "torch.optim.lr_scheduler",
    "torch.optim.swa_utils",
    "torch.profiler",
    "torch.utils._device",
    "torch.utils.checkpoint",
    "torch.utils.data",
)
#: meets what PyTorch loads or starts only when it is first wanted
_REHEARSAL = """
import torch
from torch.nn import functional

stream = torch.cuda.Stream()
ones = torch.ones(4, 4, device="cuda", requires_grad=True)
pinned = torch.empty(4, pin_memory=True)
pinned.fill_(2)
with torch.cuda.stream(stream):
    moved = pinned.to("cuda", non_blocking=True)
    (ones @ ones + moved.sum(dim=0)).sqrt().sum().backward()
torch.cuda.current_stream().wait_stream(stream)
torch.cuda.synchronize()
print(ones, pinned, moved[0].item(), ones.grad.cpu().tolist(), str(ones.device))
assert moved.tolist() == [2.0] * 4 and abs(float(ones.grad[0, 0]) - 1.1547) < 1e-3
assert torch.ones(2, device=0).device == torch.device("cuda", 0)
static, graph = torch.zeros(2, device="cuda"), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    doubled = static * 2 + 1
static.copy_(torch.tensor([3.0, 4.0]))
graph.replay()
assert doubled.tolist() == [7.0, 9.0]
layer = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)).cuda()
scaler = torch.amp.GradScaler("cuda", init_scale=2.0)
for kind in (torch.optim.SGD, torch.optim.AdamW):
    optimizer = kind(layer.parameters(), lr=0.1)
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cuda", dtype=dtype):
            held = torch.tanh(layer(torch.ones(3, 4, device="cuda")))
            loss = functional.cross_entropy(held, torch.arange(3, device="cuda"))
            loss = loss + functional.mse_loss(held, torch.zeros_like(held))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    image = torch.ones(1, 3, 8, 8, dtype=dtype, device="cuda", requires_grad=True)
    filters = torch.ones(4, 3, 3, 3, dtype=dtype, device="cuda")
    last = image.to(memory_format=torch.channels_last)
    functional.conv2d(last, filters).sum().backward()
    parts = [torch.ones(1, 2, 4, 8, dtype=dtype, device="cuda")] * 3
    functional.scaled_dot_product_attention(*parts)
torch.einsum("ij,jk->ik", ones, ones)
torch.randn(3, device="cuda", generator=torch.Generator("cuda").manual_seed(1))
try:
    torch.ones(2, device="cuda") @ torch.ones(3)
except RuntimeError as problem:
    str(problem)
else:
    raise AssertionError("host and GPU are mixed")
"""


def install() -> None:
    """Do it, once for a process.

    Raises:
        NotSupported: this PyTorch or machine can't; the message says why, in words.
    """
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    # they compile while they run, for which the jail gives no memory
    torch.backends.mkldnn.set_flags(False)
    torch.backends.nnpack.set_flags(False)
    leave_out_compiler(torch)
    for name in _LOADED_LATE:
        importlib.import_module(name)
    # the engine counts devices now, and starts no thread for the GPU
    torch.ones(1, requires_grad=True).sum().backward()
    give_gpu()
    torch._C._set_only_lift_cpu_tensors(True)
    torch.autograd.set_multithreading_enabled(False)
    specials.install()
    cuda.install()
    device.install()
    host_reads.install()
    _leave_out_threads()
    _rehearse()


def _rehearse() -> None:
    session = Session({"x": (np.ones(4, np.float32), "pinned")}, "rehearsal")
    try:
        with session.recording(), contextlib.redirect_stdout(io.StringIO()):
            exec(compile(_REHEARSAL, "rehearsal", "exec", dont_inherit=True), {})
    except Exception as problem:
        what = f"{type(problem).__name__}: {problem}".splitlines()[0][:200]
        raise NotSupported(
            f"PyTorch {torch.__version__} does not do under the simulated GPU what it "
            f"does with one ({what}). PyTorch 2.13 is known to work: "
            "pip install torch==2.13.0"
        ) from problem


def _leave_out_threads() -> None:
    """Say in words that there are no more threads, which the jail starts none of."""

    def start(self: threading.Thread) -> None:
        refuse(
            "threads beside the one that calls `run`",
            "Ask for all of it there: streams go on by themselves.",
        )

    threading.Thread.start = start  # type: ignore[method-assign]

"""Runs host code with PyTorch on the CPU, in the jail, on one thread.

No right answer is in this process: what the buffers hold is told, and judged as data.
"""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from warpbook_labs.engines.simulated.lacking import leave_out_compiler
from warpbook_labs.engines.simulated.learner import Load, NotFit, run_cases, values_of
from warpbook_labs.engines.simulated.messages import (
    BeginRank,
    CaseRun,
    HostCase,
    HostRuns,
    RunOnCpu,
    RunOnRanks,
    RunTorch,
)
from warpbook_labs.errors import INSTALL_TORCH, Missing, NotInstalled
from warpbook_labs.sandbox.learner_code import load_modules
from warpbook_labs.sandbox.work import Refused

Job = RunTorch | RunOnCpu

_NO_GPU = (
    "Without a GPU this lab runs on the CPU: make tensors with "
    "`device=x.device`, and leave out what only a GPU has."
)
#: of `torch.cuda`: what only a GPU has, and what has nothing to do without one
_OF_A_GPU = ("_lazy_init", "CUDAGraph", "Event", "ExternalStream", "Stream")
_IDLE = ("set_device", "synchronize", "empty_cache", "manual_seed", "manual_seed_all")
_MARKS = ("mark", "range_end", "range_pop", "range_push", "range_start")
#: meets what PyTorch loads or starts only when it is first wanted
_REHEARSAL = """
import torch
from torch.nn import functional

print(torch.tensor([1.5, float("nan")]), torch.zeros(2, dtype=torch.int8))
layer = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4))
scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
for kind in (torch.optim.SGD, torch.optim.AdamW):
    optimizer = kind(layer.parameters(), lr=0.1)
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", dtype=dtype):
            held = torch.tanh(layer(torch.ones(3, 4)))
            loss = functional.cross_entropy(held, torch.arange(3))
            loss = loss + functional.mse_loss(held, torch.zeros(3, 4))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
whole = torch.ones(32, 32, dtype=torch.int8)
torch._int_mm(whole, whole)
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    image = torch.ones(1, 3, 8, 8, dtype=dtype, requires_grad=True)
    held = image.to(memory_format=torch.channels_last)
    functional.conv2d(held, torch.ones(4, 3, 3, 3, dtype=dtype)).sum().backward()
    torch.softmax(torch.ones(3, 3, dtype=dtype) @ torch.ones(3, 3, dtype=dtype), -1)
    functional.scaled_dot_product_attention(*[torch.ones(1, 2, 4, 8, dtype=dtype)] * 3)
generator = torch.Generator().manual_seed(1)
torch.randn(3, generator=generator)
torch.linalg.norm(torch.einsum("ij,jk->ik", torch.ones(2, 2), torch.ones(2, 2)))
try:
    torch.ones(2) @ torch.ones(3)
except RuntimeError as problem:
    str(problem)
library = torch.library.Library("rehearsal", "FRAGMENT")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "CPU")
torch.library.register_fake("rehearsal::twice", torch.empty_like, lib=library)
torch.library.register_autograd(
    "rehearsal::twice", lambda context, slope: slope * 2, lib=library
)
torch.ops.rehearsal.twice(torch.ones(2, requires_grad=True)).sum().backward()
torch.ops.rehearsal.twice(torch.ones(2, device="meta"))
"""


def prepare() -> None:
    """Load PyTorch, and have it start what it starts only once."""
    load_modules()
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError as problem:
        words = f"PyTorch can't be loaded ({problem}): {INSTALL_TORCH}"
        raise NotInstalled(words) from None
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    # they compile while they run, for which the jail gives no memory
    torch.backends.mkldnn.set_flags(False)
    torch.backends.nnpack.set_flags(False)
    leave_out_compiler(torch)
    _leave_out_gpu(torch.cuda)
    _rank_processes()
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(_REHEARSAL, "rehearsal", "exec", dont_inherit=True), {})


def _leave_out_gpu(cuda: Any) -> None:
    """Say in words that there is none, where it matters, and do nothing where not."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise Missing(_NO_GPU)

    def idle(*_: Any, **__: Any) -> int:
        return 0

    for name in _OF_A_GPU:
        setattr(cuda, name, refuse)
    for name in _IDLE:
        setattr(cuda, name, idle)
    for name in _MARKS:
        setattr(cuda.nvtx, name, idle)


def do(job: RunTorch | RunOnCpu) -> HostRuns | Refused:
    return run_cases(job, _run)


def _rank_processes() -> ModuleType:
    # it imports PyTorch, which may be missing
    from warpbook_labs.engines.simulated import rank_processes

    return rank_processes


def converse(first: bytes, exchange: Callable[[Struct], bytes]) -> None:
    """Answer for all ranks of a job, or be one of them."""
    processes = _rank_processes()
    job = msgspec.msgpack.decode(first, type=RunOnRanks | BeginRank)
    if isinstance(job, BeginRank):
        processes.serve_rank(job, exchange)
        return

    def one(_: Load, case: HostCase) -> CaseRun:
        return _run(partial(processes.Ranks, job, case, exchange), case)

    exchange(run_cases(job, one))


def _run(load: Load, case: HostCase) -> CaseRun:
    torch: Any = importlib.import_module("torch")
    memory = {
        buffer.name: np.empty(buffer.shape, buffer.dtype)  # the same for every call
        for buffer in case.buffers
    }
    outputs = []
    module = load()
    state = module.prepare(**case.sizes)
    for call in case.calls:
        for name, values in values_of(case, call).items():
            memory[name][...] = values
        tensors = {name: torch.from_numpy(held) for name, held in memory.items()}
        module.run(state, **tensors, **call.numbers)
        for buffer in case.buffers:
            if not buffer.is_written:
                if memory[buffer.name].tobytes() != call.data[buffer.name]:
                    words = f"It writes `{buffer.name}`, which is an input."
                    raise NotFit(CaseRun(problem=words))
        outputs.append(
            {
                buffer.name: memory[buffer.name].tobytes()
                for buffer in case.buffers
                if buffer.is_written
            }
        )
    return CaseRun(tuple(outputs))

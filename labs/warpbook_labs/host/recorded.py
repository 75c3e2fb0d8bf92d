"""Records what host code asks of a GPU, in the jail: `torch` is a stand-in there.

No right answer is in this process, and of hidden cases no input either: what a stand-in
computes is not graded, what it was asked is.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpbook_labs.host.learner import SOURCE_NAME, Load, run_cases, values_of
from warpbook_labs.host.messages import (
    HostBuffer,
    HostCall,
    HostCase,
    HostRan,
    Left,
    Record,
)
from warpbook_labs.jail.jobs import Refused
from warpbook_labs.jail.learner_code import load_modules
from warpbook_labs.simulated.recording.session import Session

#: meets what NumPy and the stand-in load only when it is first wanted
_REHEARSAL = """
import torch


def prepare(n):
    return torch.cuda.Stream(), torch.empty(n, device="cuda")


def run(state, x, y):
    stream, held = state
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        held.copy_(x, non_blocking=True)
        y.copy_((held @ held + held.sum()).sqrt() * torch.ones_like(held))
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    print(y, y[0].item(), y.cpu().tolist())
"""


def prepare() -> None:
    """Load all that a recording needs, which no file can be opened for later."""
    load_modules()
    np.seterr(all="ignore")
    buffers = (
        HostBuffer("x", "float32", (4,), "pinned", False, 16),
        HostBuffer("y", "float32", (4,), "device", True, 16),
    )
    call = HostCall({"x": bytes(16), "y": bytes(16)}, {})
    case = HostCase({"n": 4}, buffers, (call, call))
    rehearsed = do(Record(_REHEARSAL, "", (case,), 10.0))
    if isinstance(rehearsed, Refused) or rehearsed.cases[0].problem:
        raise RuntimeError(f"The stand-in for PyTorch does not work: {rehearsed}")


def do(job: Record) -> HostRan | Refused:
    """Record every case."""
    return run_cases(job, _record)


def _record(load: Load, case: HostCase) -> Left:
    places: dict[str, tuple[NDArray[Any], str]] = {
        each.name: (np.zeros(each.shape, each.dtype), each.place)
        for each in case.buffers
    }
    session = Session(places, SOURCE_NAME)
    sys.modules.update(session.modules())
    module = load()
    state = module.prepare(**case.sizes)
    for number, call in enumerate(case.calls):
        session.begin_call(number, values_of(case, call))
        module.run(state, **session.tensors, **call.numbers)
    return Left(program=session.program())

"""Records and judges with PyTorch, in children of a process that has loaded it.

Where a learner's code is, no right answer is, and of hidden cases no input either: what
is computed there is not graded, what was asked is. Who judges it is another child.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from warpbook_labs.engines.simulated.learner import (
    SOURCE_NAME,
    Load,
    NotFit,
    run_cases,
    values_of,
)
from warpbook_labs.engines.simulated.messages import (
    Buffer,
    CaseRun,
    HostBuffer,
    HostCall,
    HostCase,
    HostRuns,
    HostVerdicts,
    Judge,
    Record,
    RunTorch,
    Trial,
)
from warpbook_labs.errors import INSTALL_TORCH, NotInstalled
from warpbook_labs.sandbox.learner_code import load_modules
from warpbook_labs.sandbox.work import Refused

Job = RunTorch | Record | Judge

#: meets what is loaded only when it is first wanted
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
_NOT_KNOWN = (
    "This PyTorch can't stand in for one with a GPU here ({}). PyTorch 2.13 is known "
    "to work: pip install torch==2.13.0"
)
_session: Callable[..., Any]
_writes_of: Callable[[Any], int | None]
_judged: Callable[[Judge], HostVerdicts]


def prepare() -> None:
    """Load PyTorch, give it a simulated GPU, and rehearse.

    Raises:
        NotInstalled: PyTorch is not installed, or not known.
    """
    global _session, _writes_of, _judged
    load_modules()
    np.seterr(all="ignore")
    try:
        importlib.import_module("torch")
    except ImportError as problem:
        words = f"PyTorch can't be loaded ({problem}): {INSTALL_TORCH}"
        raise NotInstalled(words) from None
    # these load PyTorch, so they are loaded here only
    from warpbook_labs.engines.simulated.pytorch import accelerator

    try:
        # even its parts may not be there in another version
        from warpbook_labs.engines.simulated.pytorch.install import install

        install()
    except accelerator.NotSupported as problem:
        raise NotInstalled(str(problem)) from None
    except Exception as problem:
        raise NotInstalled(_NOT_KNOWN.format(problem)) from problem
    from warpbook_labs.engines.simulated.judging.judge import judged
    from warpbook_labs.engines.simulated.pytorch import session

    _session, _writes_of = session.Session, session.writes_of
    _judged = judged
    _rehearse()


def do(job: RunTorch | Record | Judge) -> HostRuns | HostVerdicts | Refused:
    """Run or record every case, or judge every program."""
    if isinstance(job, Judge):
        return _judged(job)
    one = _record if isinstance(job, Record) else _run
    return run_cases(job, one, _writes_of)


def _rehearse() -> None:
    buffers = (
        HostBuffer("x", "float32", (4,), "pinned", False, 16),
        HostBuffer("y", "float32", (4,), "device", True, 16),
    )
    call = HostCall({"x": bytes(16), "y": bytes(16)}, {})
    case = HostCase({"n": 4}, buffers, (call, call))
    rehearsed = do(Record(_REHEARSAL, "", (case,), 10.0))
    if not isinstance(rehearsed, HostRuns) or rehearsed.cases[0].problem:
        raise RuntimeError(f"The simulated GPU does not work: {rehearsed}")
    program = rehearsed.cases[0].program
    parameters = (
        Buffer("x", "pinned", "float32", (4,), True, False),
        Buffer("y", "device", "float32", (4,), False, True),
    )
    trial = Trial(program, parameters, ({"x": bytes(16)},) * 2)
    [verdict] = _judged(Judge((trial,))).verdicts
    if verdict.refused:
        raise RuntimeError(f"The simulated GPU does not work: {verdict.refused}")


def _record(load: Load, case: HostCase) -> CaseRun:
    places = {
        buffer.name: (np.zeros(buffer.shape, buffer.dtype), buffer.place)
        for buffer in case.buffers
    }
    session = _session(places, SOURCE_NAME)
    with session.recording():
        module = load()
        state = module.prepare(**case.sizes)
        for number, call in enumerate(case.calls):
            session.begin_call(number, values_of(case, call))
            module.run(state, **session.tensors, **call.numbers)
        # what is released from here on, nobody asked for
        program = session.program()
    return CaseRun(program=msgspec.msgpack.encode(program))


def _run(load: Load, case: HostCase) -> CaseRun:
    """Run a case with the inputs that count, and tell what its buffers hold."""
    places = {
        buffer.name: (np.empty(buffer.shape, buffer.dtype), buffer.place)
        for buffer in case.buffers
    }
    session = _session(places, SOURCE_NAME, is_judged=False)
    outputs = []
    with session.recording():
        module = load()
        state = module.prepare(**case.sizes)
        for number, call in enumerate(case.calls):
            session.begin_call(number, values_of(case, call))
            tensors = {
                name: tensor.detach() for name, tensor in session.tensors.items()
            }
            module.run(state, **tensors, **call.numbers)
            held = {buffer.name: session.held(buffer.name) for buffer in case.buffers}
            for buffer in case.buffers:
                if (
                    not buffer.is_written
                    and held[buffer.name] != call.data[buffer.name]
                ):
                    words = f"It writes `{buffer.name}`, which is an input."
                    raise NotFit(CaseRun(problem=words))
            outputs.append({e.name: held[e.name] for e in case.buffers if e.is_written})
    return CaseRun(tuple(outputs))

"""What host code does on the GPU, recorded apart; see `gpu/tracing.py`.

The learner's process records itself under PyTorch's profiler, so what the trace says is
for the learner to look at, and nothing is graded by it.
"""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import sys
from pathlib import Path

import msgspec
import numpy as np

from warpbook_labs.cases.preparation import OwnPython
from warpbook_labs.compiler.nvrtc import CompileError
from warpbook_labs.engines.host.child_handle import CantBegin, Lost, Raised
from warpbook_labs.engines.host.correctness import numbers_of, put
from warpbook_labs.engines.host.lane import HostRequest
from warpbook_labs.engines.host.memory import laid_out
from warpbook_labs.engines.host.messages import Prepare, Record
from warpbook_labs.engines.host.session import Session, TooLarge
from warpbook_labs.errors import BadLab, NotInstalled, NoTrace
from warpbook_labs.gpu.driver import Device
from warpbook_labs.gpu.errors import DriverError
from warpbook_labs.gpu.gpu import Gpu
from warpbook_labs.gpu.tracing import (
    RUNS,
    TraceRequest,
    answer,
    case_of,
    keep_at_work,
    record_in_child,
    telemetry_of,
)
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.lab.loader import load

_WALL_S = 120.0
_PATIENCE_S = 30.0


def trace_submission(
    gpu: Gpu, submission: Submission, trace: Path, telemetry: Path
) -> None:
    """Record what a source does on the GPU that grades.

    Args:
        submission: the learner's, which was found to be right.
        trace: is written, a Chrome trace in gzip.
        telemetry: is written, a recording; the file must not be there yet.

    Raises:
        NoTrace: it could not be recorded.
    """
    request = TraceRequest(
        str(submission.loaded.folder),
        submission.source,
        case_of(submission.loaded),
        str(trace),
        str(telemetry),
    )
    record_in_child("warpbook_labs.engines.host.tracing", request, gpu.uuid, _WALL_S)


def main() -> None:
    """Do what is asked on stdin, and answer in one line."""
    request = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=TraceRequest)
    answer(
        lambda: _record(request),
        (DriverError, BadLab, CantBegin, Lost, Raised, TooLarge)
        + (CompileError, NotInstalled),
    )


def _record(request: TraceRequest) -> None:
    loaded = load(Path(request.folder))
    of_host = HostRequest(
        request.folder,
        request.source,
        (request.case,),
        has_gpu=request.has_gpu,
        is_traced=True,
    )
    session = Session(of_host, loaded, Device() if request.has_gpu else None)
    try:
        problem = session.start()
        if problem:
            raise NoTrace(f"It can't be loaded: {problem}")
        _recorded(session, loaded, request)
    finally:
        session.close()


def _recorded(session: Session, loaded: LoadedLab, request: TraceRequest) -> None:
    harness, sizes = session.harness, dict(request.case.sizes)
    layout = laid_out(loaded.lab.parameters, sizes)
    rng = np.random.default_rng(request.case.seed)
    given = OwnPython(loaded).inputs(sizes, request.case.values, rng)
    child = harness.children["learner"]
    child.ask(Prepare(sizes, layout.slots), _PATIENCE_S)
    child.stop()
    put(harness, layout, given)
    run = harness.next_run(1, numbers_of(loaded, given))
    plain = child.folder / "trace.json"
    child.ask(Record(run, RUNS, str(plain)), _PATIENCE_S)
    _packed(plain, Path(request.trace))
    if not request.has_gpu:
        return
    numbers = numbers_of(loaded, given)
    with telemetry_of(Path(request.telemetry)):
        keep_at_work(lambda: child.ask(harness.next_run(1, numbers), _PATIENCE_S))


def _packed(plain: Path, trace: Path) -> None:
    """Take what the learner's process wrote, if it is a file and nothing else."""
    descriptor = os.open(plain, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as whole:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NoTrace("Its process left no trace.")
        with gzip.open(trace, "wb") as packed:
            shutil.copyfileobj(whole, packed)


if __name__ == "__main__":
    main()

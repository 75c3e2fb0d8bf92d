"""What a submission does on the GPU, recorded: a trace, and telemetry beside it.

It is run once more for that, with sizes as they are timed, in a process of its own and
never when it is timed. Both files open as any others: `warpbook analyze`, and
`warpbook up --replay`.
"""

from __future__ import annotations

import gzip
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from warpbook_labs.cases.preparation import Prepared
from warpbook_labs.compiler.jobs import Compiled
from warpbook_labs.compiler.programs import image_of, job_of
from warpbook_labs.errors import BadLab, BadRule, NoTrace
from warpbook_labs.gpu.driver import Device
from warpbook_labs.gpu.driver import Prepared as PreparedLaunch
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
from warpbook_labs.lab.languages.table import rule_of
from warpbook_labs.lab.loaded import Submission
from warpbook_labs.lab.loader import load
from warpbook_labs.sandbox import warm
from warpbook_labs.sandbox.work import Limits

_PATIENCE_S = 10.0
_WALL_S = 90.0
_GUARD_BYTES = 256


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
        NotInstalled: NVRTC is not installed.
    """
    case = case_of(submission.loaded)
    try:
        job = job_of(submission, gpu.architecture, [case.sizes])
    except BadRule as problem:
        raise NoTrace(str(problem)) from None
    built = warm.run(job, Limits())
    if not isinstance(built.result, Compiled):
        raise NoTrace("It does not compile: `warpbook labs check` says why.")
    request = TraceRequest(
        str(submission.loaded.folder),
        submission.source,
        case,
        str(trace),
        str(telemetry),
        image_of(built.result),
    )
    record_in_child("warpbook_labs.engines.kernels.tracing", request, gpu.uuid, _WALL_S)


def main() -> None:
    """Do what is asked on stdin, and answer in one line."""
    request = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=TraceRequest)
    answer(lambda: _record(request), (DriverError, BadLab, BadRule))


def _record(request: TraceRequest) -> None:
    # torch comes first: it brings libraries of its own that CUDA's driver is used with
    capture = _capture()
    device = Device()
    run = _runner(device, request)
    run()
    with telemetry_of(Path(request.telemetry)):
        _traced(capture, run, Path(request.trace))
        keep_at_work(run)


def _capture() -> Any:
    try:
        import torch

        from warpbook_profiler.capture import kineto
    except ImportError as problem:
        raise NoTrace(
            "There is no trace without PyTorch, whose profiler records it "
            f"({problem}): pip install 'warpbook-labs[torch]'"
        ) from None
    if not torch.cuda.is_available():
        raise NoTrace(
            f"PyTorch {torch.__version__} can't use the GPU here, so there is no trace."
        )
    return kineto.Capture()


def _runner(device: Device, request: TraceRequest) -> Callable[[], None]:
    """Make the case ready; what is returned runs it once."""
    loaded = load(Path(request.folder))
    rule = rule_of(loaded.lab, request.source)
    prepared = Prepared(loaded, rule, request.case)
    addresses = {}
    for buffer in prepared.run.memory:
        addresses[buffer.name] = device.allocate(buffer.size_bytes + _GUARD_BYTES)
        if buffer.data:
            values = np.frombuffer(buffer.data, np.uint8)
            device.upload(addresses[buffer.name], values)
    program = device.load(device.assembled(request.image))
    launches: list[PreparedLaunch] = [
        device.prepare(program, launch, addresses) for launch in prepared.run.launches
    ]

    def run() -> None:
        for launch in launches:
            device.launch(launch)
        device.wait(_PATIENCE_S)

    return run


def _traced(capture: Any, run: Callable[[], None], trace: Path) -> None:
    plain = trace.with_suffix(".tmp")
    from warpbook_profiler.model import errors

    try:
        capture.start()
        for _ in range(RUNS):
            run()
        capture.stop()
        capture.save(str(plain))
        with plain.open("rb") as whole, gzip.open(trace, "wb") as packed:
            shutil.copyfileobj(whole, packed)
    except errors.TraceError as problem:
        raise NoTrace(str(problem)) from None
    finally:
        plain.unlink(missing_ok=True)


if __name__ == "__main__":
    main()

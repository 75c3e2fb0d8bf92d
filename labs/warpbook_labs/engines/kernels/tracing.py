"""What a submission does on the GPU, recorded: a trace, and telemetry beside it.

It is run once more for that, with sizes as they are timed, in a process of its own and
never when it is timed. Both files open as any others: `warpbook analyze`, and
`warpbook up --replay`.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from warpbook_labs.cases.preparation import Prepared
from warpbook_labs.cases.sampling import DrawnCase, public_cases
from warpbook_labs.compiler.jobs import Compiled
from warpbook_labs.engines.kernels.programs import image_of, job_of
from warpbook_labs.gpu.child import run_child
from warpbook_labs.gpu.driver import Device
from warpbook_labs.gpu.driver import Prepared as PreparedLaunch
from warpbook_labs.gpu.errors import DriverError
from warpbook_labs.gpu.gpu import Gpu
from warpbook_labs.lab.launch_rule import BadRule
from warpbook_labs.lab.loader import BadLab, LoadedLab, load
from warpbook_labs.lab.rules import rule_of
from warpbook_labs.sandbox import parent
from warpbook_labs.sandbox.limits import Limits
from warpbook_monitors.frames import PROTOCOL_VERSION, Hello
from warpbook_monitors.nvml_probe import NvmlSource
from warpbook_monitors.recording import RecordingWriter
from warpbook_monitors.sampler import Sampler

#: in the trace
RUNS = 10
#: telemetry needs some readings of a GPU at work
AT_WORK_S = 1.5
_PATIENCE_S = 10.0
_WALL_S = 90.0
_GUARD_BYTES = 256


class NoTrace(Exception):
    """There is no trace of it; the message says why."""


class _Asked(Struct, frozen=True):
    """Run one case, and record it."""

    folder: str
    source: str
    image: bytes
    case: DrawnCase
    trace: str
    telemetry: str


class _Answer(Struct, frozen=True):
    """Why there is no trace, in words; empty if there is one."""

    problem: str = ""


def trace_submission(
    gpu: Gpu, loaded: LoadedLab, source: str, trace: Path, telemetry: Path
) -> None:
    """Record what a source does on the GPU that grades.

    Args:
        gpu: where it runs.
        loaded: the lab.
        source: the learner's, which was found to be right.
        trace: is written, a Chrome trace in gzip.
        telemetry: is written, a recording; the file must not be there yet.

    Raises:
        NoTrace: it could not be recorded.
        NoCompiler: NVRTC is not installed.
    """
    case = case_of(loaded)
    try:
        job = job_of(loaded, source, gpu.architecture, [case.sizes])
    except BadRule as problem:
        raise NoTrace(str(problem)) from None
    built = parent.run(job, Limits())
    if not isinstance(built.result, Compiled):
        raise NoTrace("It does not compile: `warpbook labs check` says why.")
    asked = _Asked(
        str(loaded.folder),
        source,
        image_of(built.result),
        case,
        str(trace),
        str(telemetry),
    )
    told = run_child(
        "warpbook_labs.engines.kernels.tracing",
        msgspec.msgpack.encode(asked),
        gpu.uuid,
        _WALL_S,
    )
    try:
        answer = msgspec.json.decode(told.stdout, type=_Answer)
    except msgspec.MsgspecError:
        raise NoTrace(f"It could not be recorded: {told.last_words}") from None
    if answer.problem:
        raise NoTrace(answer.problem)


def case_of(loaded: LoadedLab) -> DrawnCase:
    """Take the sizes that are timed, for a trace of tiny kernels tells little."""
    speed = loaded.lab.speed
    if speed is None:
        return public_cases(loaded.lab)[0]
    return DrawnCase("timed sizes", dict(speed.sizes), speed.values[0], 0, False)


def main() -> None:
    """Do what is asked on stdin, and answer in one line."""
    answers = os.dup(1)
    # what kernels print would come before the answer
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    asked = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=_Asked)
    problem = ""
    try:
        _record(asked)
    except (NoTrace, DriverError, BadLab, BadRule, OSError) as found:
        problem = " ".join(str(found).split())
    os.write(answers, msgspec.json.encode(_Answer(problem)))
    # a context that crashed can't be tidied up
    os._exit(0)


def _record(asked: _Asked) -> None:
    # torch comes first: it brings libraries of its own that CUDA's driver is used with
    capture = _capture()
    device = Device()
    run = _runner(device, asked)
    run()
    with telemetry_of(Path(asked.telemetry)):
        _traced(capture, run, Path(asked.trace))
        until_s = time.monotonic() + AT_WORK_S
        while time.monotonic() < until_s:
            run()


def _capture() -> Any:
    try:
        kineto: Any = importlib.import_module("warpbook_monitors.trace.kineto")
    except ImportError as problem:
        raise NoTrace(
            "There is no trace without PyTorch, whose profiler records it "
            f"({problem}): pip install 'warpbook[torch]'"
        ) from None
    if not kineto.torch.cuda.is_available():
        raise NoTrace(
            f"PyTorch {kineto.torch.__version__} can't use the GPU here, so there is "
            "no trace."
        )
    return kineto.Capture()


def _runner(device: Device, asked: _Asked) -> Callable[[], None]:
    """Make the case ready; what is returned runs it once."""
    loaded = load(Path(asked.folder))
    rule = rule_of(loaded.lab.language, asked.source)
    prepared = Prepared(loaded, rule, asked.case)
    addresses = {}
    for each in prepared.run.memory:
        addresses[each.name] = device.allocate(each.size_bytes + _GUARD_BYTES)
        if each.data:
            values = np.frombuffer(each.data, np.uint8)
            device.upload(addresses[each.name], values)
    program = device.load(device.assembled(asked.image))
    launches: list[PreparedLaunch] = [
        device.prepare(program, each, addresses) for each in prepared.run.launches
    ]

    def run() -> None:
        for each in launches:
            device.launch(each)
        device.wait(_PATIENCE_S)

    return run


def _traced(capture: Any, run: Callable[[], None], trace: Path) -> None:
    plain = trace.with_suffix(".tmp")
    errors = importlib.import_module("warpbook_monitors.trace.errors")
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


@contextlib.contextmanager
def telemetry_of(file: Path) -> Iterator[None]:
    """Record what NVML tells meanwhile."""
    sampler = Sampler([NvmlSource()])
    sampler.label = "a submission"
    sampler.open()
    hello = Hello(
        protocol=PROTOCOL_VERSION,
        version="labs",
        time_ms=time.time_ns() // 1000 / 1000,
        rate_hz=sampler.rate_hz,
        devices=sampler.devices,
        absences=sampler.absences,
    )
    # closed in this order: the clock's thread may be in the middle of a line
    with RecordingWriter(file, hello) as writer, contextlib.closing(sampler):
        stop = sampler.listen(writer.write)
        with sampler.watch("a submission"):
            yield
        stop()


if __name__ == "__main__":
    main()

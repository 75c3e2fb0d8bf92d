"""A recording of a submission: in a process of its own, never while it is timed."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from warpbook_labs.cases.sampling import DrawnCase, public_cases
from warpbook_labs.errors import NoTrace
from warpbook_labs.gpu.parent import run_child
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_monitors.frames import PROTOCOL_VERSION, Hello
from warpbook_monitors.nvml.probe import NvmlSource
from warpbook_monitors.recordings.recording import RecordingWriter
from warpbook_monitors.sampling.sampler import Sampler

#: in the trace
RUNS = 10


#: telemetry needs some readings of a GPU at work
AT_WORK_S = 1.5


class TraceRequest(Struct, frozen=True):
    """Run one case, and record it."""

    folder: str
    source: str
    case: DrawnCase
    #: are written: a Chrome trace in gzip, and a recording
    trace: str
    telemetry: str
    #: of kernels: the compiled program
    image: bytes = b""
    #: of host code: a test has none
    has_gpu: bool = True


class Answer(Struct, frozen=True):
    """Why there is no trace, in words; empty if there is one."""

    problem: str = ""


def record_in_child(module: str, request: Struct, uuid: str, wall_s: float) -> None:
    """Have a module record, in a process that uses the GPU; see `answer`.

    Raises:
        NoTrace: it could not be recorded.
    """
    ended = run_child(module, msgspec.msgpack.encode(request), uuid, wall_s)
    try:
        answer = msgspec.json.decode(ended.stdout, type=Answer)
    except msgspec.MsgspecError:
        raise NoTrace(f"It could not be recorded: {ended.last_words}") from None
    if answer.problem:
        raise NoTrace(answer.problem)


def answer(record: Callable[[], None], problems: tuple[type[Exception], ...]) -> None:
    """Record in this process, answer in one line, and end.

    Args:
        problems: what it may raise, beside `NoTrace` and `OSError`, in words.
    """
    answers = os.dup(1)
    # what kernels print would come before the answer
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    problem = ""
    try:
        record()
    except (NoTrace, OSError) + problems as raised:
        problem = " ".join(str(raised).split())
    os.write(answers, msgspec.json.encode(Answer(problem)))
    # a context that crashed can't be tidied up
    os._exit(0)


def case_of(loaded: LoadedLab) -> DrawnCase:
    """Take the sizes that are timed, for a trace of tiny kernels tells little."""
    speed = loaded.lab.speed
    if speed is None:
        return public_cases(loaded.lab)[0]
    return DrawnCase("timed sizes", dict(speed.sizes), speed.values[0], 0, False)


def keep_at_work(run: Callable[[], object]) -> None:
    until_s = time.monotonic() + AT_WORK_S
    while time.monotonic() < until_s:
        run()


@contextlib.contextmanager
def telemetry_of(file: Path) -> Iterator[None]:
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

"""Has a job done in the trusted process, and ends that where it does not end itself."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

import msgspec
from msgspec import Struct

from warpbook_labs.gpu.jobs import (
    Began,
    Ended,
    GoOn,
    Message,
    Sampled,
    Timed,
    Tried,
    Trying,
)
from warpbook_labs.lab.texts import INVALID_MESSAGE
from warpbook_labs.sandbox.children import kill
from warpbook_labs.sandbox.work import write_message
from warpbook_monitors.python_path import NOWHERE, own_path
from warpbook_profiler.model.stalls import Stalls

_MOST_WORDS = 500


class ChildEnd(NamedTuple):
    """What a process told before it ended."""

    stdout: bytes
    #: what it said last on stderr, or how it ended
    last_words: str


def run_child(
    module: str, given: bytes, uuid: str, wall_s: float, *options: str
) -> ChildEnd:
    """Run a module of ours in a process that sees one GPU.

    Args:
        module: run as `python -m`.
        uuid: NVML's, of the GPU.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-m", module, *options],
            input=given,
            cwd=NOWHERE,
            env={
                **os.environ,
                "PYTHONPATH": own_path(),
                "CUDA_VISIBLE_DEVICES": uuid,
            },
            capture_output=True,
            timeout=wall_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ChildEnd(b"", f"it did not end within {wall_s:g} s.")
    words = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    last = words[:_MOST_WORDS] or f"the process ended with {done.returncode}."
    return ChildEnd(done.stdout, last)


#: it ends what hangs after seconds of its own; this is for a driver that hangs
WALL_S = 120.0
_WORKER = "warpbook_labs.engines.kernels.worker"
_MOST_LINE_BYTES = 1 << 20
_MOST_STDERR_BYTES = 4096
# made now: msgspec takes no two threads that meet a type for the first time
_decode = msgspec.json.Decoder(Message).decode


class WorkerReport(msgspec.Struct):
    """What the process told until it ended, or was ended."""

    pid: int = 0
    began: Began | None = None
    #: when it told so, by `time.monotonic_ns`
    began_ns: int = 0
    trying: Trying | None = None
    tried: list[Tried] = []
    timed: Timed | None = None
    #: when the timed and the sampled run were reported; None: they were not
    timed_ns: int | None = None
    sampled_ns: int | None = None
    stalls: Stalls | None = None
    #: None: it told no end
    ended: Ended | None = None
    #: why it was ended, or what it said last; empty if it told an end
    problem: str = ""

    @property
    def pids(self) -> frozenset[int]:
        """Name all processes that used the GPU for it."""
        return frozenset((self.pid, *(self.began.pids if self.began else ())))


#: has a job done within some seconds
Do = Callable[[Struct, float], WorkerReport]


def run(
    request: Struct,
    uuid: str,
    wall_s: float = WALL_S,
    module: str = _WORKER,
    until: Callable[[], object] | None = None,
) -> WorkerReport:
    """Do a job in a process of its own.

    Args:
        uuid: NVML's, of the GPU.
        module: the program that does it, and tells what `device.jobs` has.
        until: returns when the timed run may begin; the time limit starts again then.
    """
    with started(uuid, module=module, until=until) as do:
        return do(request, wall_s)


@contextlib.contextmanager
def started(
    uuid: str,
    first: Struct | None = None,
    module: str = _WORKER,
    until: Callable[[], object] | None = None,
) -> Iterator[Do]:
    """Start a process that waits for one job, and give what has it done; see `run`.

    The process ends with the context, whatever it does.

    Args:
        first: sent at once, before the job.
    """
    child = subprocess.Popen(
        [sys.executable, "-m", "warpbook_labs.gpu.start", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=NOWHERE,
        env=_environment(uuid),
        start_new_session=True,
    )
    told: list[threading.Thread] = []
    if first is not None:
        told = _begun(lambda: _tell(child.stdin, first))
    try:
        yield lambda request, wall_s: _heard(child, told, request, wall_s, until)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        # the driver takes some tenths of a second to take its memory back
        with _lock:
            _ending[:] = [thread for thread in _ending if thread.is_alive()]
            _ending.extend(_begun(lambda: _wait_for_end(child)))


#: what waits for processes that have told all, and use no GPU any more
_ending: list[threading.Thread] = []
_lock = threading.Lock()


def _begun(*work: Callable[[], None]) -> list[threading.Thread]:
    threads = [threading.Thread(target=each, daemon=True) for each in work]
    for thread in threads:
        thread.start()
    return threads


def _wait_for_end(child: subprocess.Popen[bytes]) -> None:
    # what it did not read any more is lost
    with contextlib.suppress(BrokenPipeError), child:
        child.wait()


def _tell(pipe: IO[bytes] | None, message: Struct) -> None:
    # a child that ends, or is ended, before it has read all says why in another way
    with contextlib.suppress(BrokenPipeError, ValueError):
        if pipe is not None:
            write_message(pipe, msgspec.msgpack.encode(message))


def _heard(
    child: subprocess.Popen[bytes],
    before: list[threading.Thread],
    request: Struct,
    wall_s: float,
    until: Callable[[], object] | None,
) -> WorkerReport:
    heard = WorkerReport(child.pid)
    errors = bytearray()

    def tell() -> None:
        # nothing of an earlier one is on the GPU when this one begins
        with _lock:
            earlier = [*_ending, *before]
        for thread in earlier:
            thread.join()
        _tell(child.stdin, request)
        if until is not None:
            until()
            _tell(child.stdin, GoOn())

    listening, keeping, telling = _begun(
        lambda: _listen(child.stdout, heard),
        lambda: _keep(child.stderr, errors),
        tell,
    )
    listening.join(wall_s)
    if listening.is_alive() and telling.is_alive() and until is not None:
        until()
        listening.join(wall_s)
    if listening.is_alive():
        heard.problem = f"Timed out after {wall_s:g} s."
    if heard.ended is None:
        kill(child)
        listening.join()
        keeping.join()
    if heard.ended is None and not heard.problem:
        words = errors.decode(errors="replace").strip().splitlines()[-1:] or ["no word"]
        heard.problem = f"The process that grades crashed ({words[0][:300]})."
    return heard


def _environment(uuid: str) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": own_path(),
        "CUDA_VISIBLE_DEVICES": uuid,
        # a kernel is on the GPU before it is timed
        "CUDA_MODULE_LOADING": "EAGER",
    }


def _listen(pipe: IO[bytes] | None, heard: WorkerReport) -> None:
    while pipe is not None and (line := pipe.readline(_MOST_LINE_BYTES)):
        try:
            message = _decode(line)
        except msgspec.DecodeError:
            heard.problem = INVALID_MESSAGE
            return
        if isinstance(message, Began):
            heard.began, heard.began_ns = message, time.monotonic_ns()
        elif isinstance(message, Trying):
            heard.trying = message
        elif isinstance(message, Tried):
            heard.tried.append(message)
        elif isinstance(message, Timed):
            heard.timed, heard.timed_ns = message, time.monotonic_ns()
        elif isinstance(message, Sampled):
            heard.stalls = message.stalls
            heard.sampled_ns = time.monotonic_ns()
        else:
            heard.ended = message
            return


def _keep(pipe: IO[bytes] | None, errors: bytearray) -> None:
    while pipe is not None and (part := pipe.read(4096)):
        errors += part
        del errors[:-_MOST_STDERR_BYTES]

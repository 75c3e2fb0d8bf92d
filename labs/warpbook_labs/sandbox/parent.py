"""Has a job done in the jail, and says in words how that ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import IO, Any, Generic, Literal

import msgspec

from warpbook_labs.errors import NotInstalled
from warpbook_labs.sandbox.children import (
    JAIL_PREFIX,
    OwnFolder,
    Watchdog,
    kill,
    waited_for,
)
from warpbook_labs.sandbox.progress import MARK
from warpbook_labs.sandbox.work import (
    Answer,
    Job,
    Limits,
    Refused,
    ResultT,
    Tier,
    Work,
    isolation_words,
)
from warpbook_labs.sandbox.worker import NO_COMPILER, OUT_OF_MEMORY, READY
from warpbook_monitors.plain_text import bounded
from warpbook_monitors.python_path import NOWHERE, own_path

Status = Literal["done", "timeout", "out of memory", "crashed", "too much output"]
#: what a result says of a job that came to no end of its own
Ended = Literal["stopped", "timed out"]

ASLEEP_WORDS = "Timed out: it slept for {asleep_s:g} s."
PROCESSOR_WORDS = "Timed out after {processor_s} s of CPU time."

_WORDS: dict[Status, str] = {
    "done": "It was done.",
    "timeout": ASLEEP_WORDS,
    "out of memory": "Memory limit exceeded ({memory_mib:,} MiB).",
    "crashed": "The worker process crashed ({how}).",
    "too much output": "Its result is larger than {output_mib:,} MiB.",
}
_READ_BYTES = 1 << 20
MOST_STDERR_BYTES = 4096


class Outcome(msgspec.Struct, Generic[ResultT], frozen=True):
    """How a job ended."""

    status: Status
    #: for the learner, in words
    message: str
    #: None unless it is done
    result: ResultT | Refused | None
    #: None if it ended before it told
    tier: Tier | None
    wall_s: float
    #: only the system calls that it needs were let through
    is_filtered: bool = False

    @property
    def ended(self) -> Ended:
        """Say whether a job without a result ran out of time, or was stopped."""
        return "timed out" if self.status == "timeout" else "stopped"

    @property
    def isolation(self) -> str:
        """Tell in words where it was done; nothing if it ended before it told."""
        if self.tier is None:
            return ""
        return isolation_words(self.tier, self.is_filtered)


def run(job: Job[ResultT], limits: Limits | None = None) -> Outcome[ResultT]:
    """Do a job in a process of its own, which ends with it.

    Raises:
        NotInstalled: NVRTC is not installed.
        TooBusy: the machine has no CPU time for it.
    """
    with started(type(job), limits or Limits()) as do:
        return do(job)


@contextlib.contextmanager
def started(
    kind: type[Job[ResultT]], limits: Limits
) -> Iterator[Callable[[Job[ResultT]], Outcome[ResultT]]]:
    """Start a process that waits for one job of a kind, and give what has it done.

    It raises what `run` does. The process ends with the context, whatever it does.
    """
    with OwnFolder(JAIL_PREFIX) as empty:
        command = [sys.executable, "-m", "warpbook_labs.sandbox.worker"]
        with subprocess.Popen(
            [*command, msgspec.json.encode(limits), empty, kind.work.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=NOWHERE,
            env=environment(),
            start_new_session=True,
        ) as child:
            try:
                yield lambda job: _watched(child, job, limits)
            finally:
                kill(child)


def environment() -> dict[str, str]:
    """Give the child what Python needs to start, and no secret of this process."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    # threads would want memory of their own, and none may be started in the jail
    threads = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    alone = {**dict.fromkeys(threads, "1"), "MALLOC_ARENA_MAX": "1"}
    return {**kept, **alone, "PYTHONPATH": own_path()}


def _watched(
    child: subprocess.Popen[bytes],
    job: Job[ResultT],
    limits: Limits,
) -> Outcome[ResultT]:
    encoded = msgspec.msgpack.encode(job)
    began = time.monotonic()
    output = Bounded(child.stdout, limits.output_bytes + len(READY), True)
    errors = Bounded(child.stderr, MOST_STDERR_BYTES)
    watchdog = Watchdog(child.pid, limits.asleep_s)
    code = waited_for(child, encoded, watchdog.wait, output.read, errors.read)
    held = output.held
    if code == NO_COMPILER and not held.startswith(READY):
        words = errors.held.decode(errors="replace")
        raise NotInstalled(bounded(words, MOST_STDERR_BYTES))
    answer = held.removeprefix(READY)
    return outcome_of(job.work, code, answer, errors.held, limits, began)


class Bounded:
    """What comes out of a pipe, up to a bound and a byte more."""

    def __init__(
        self, pipe: IO[bytes] | None, most_bytes: int, closes_when_full: bool = False
    ) -> None:
        """Begin with nothing read.

        Args:
            most_bytes: that are kept, and one more that tells of others.
        """
        self._pipe, self._most_bytes = pipe, most_bytes
        self._closes_when_full = closes_when_full
        self._held = bytearray()

    @property
    def held(self) -> bytes:
        return bytes(self._held)

    def read(self) -> None:
        """Read to the end, so that the child is never held up by a full pipe."""
        while self._pipe is not None and (part := self._pipe.read(_READ_BYTES)):
            self.keep(part)
            if self._closes_when_full and len(self._held) > self._most_bytes:
                self._pipe.close()
                return

    def keep(self, part: bytes) -> None:
        self._held += part[: self._most_bytes + 1 - len(self._held)]

    def read_and_close(self) -> None:
        """Read to the end, and close the pipe."""
        self.read()
        if self._pipe is not None:
            self._pipe.close()


def outcome_of(
    work: Work,
    code: int | None,
    output: bytes,
    errors: bytes,
    limits: Limits,
    began: float,
) -> Outcome[Any]:
    """Say how a process ended.

    Args:
        code: its exit code; None if it was killed since it slept too long.

    """
    status: Status = "crashed"
    how = errors.replace(MARK, b"").decode(errors="replace").strip().splitlines()[
        -1:
    ] or ["no word"]
    answer: Answer[Any] | None = None
    if len(output) > limits.output_bytes:
        status = "too much output"
    elif code is None or code == -signal.SIGXCPU:
        status = "timeout"
    elif code == OUT_OF_MEMORY:
        status = "out of memory"
    elif code == 0:
        try:
            answer = work.decoder.decode(output)
            status = "done"
        except (msgspec.DecodeError, RecursionError):
            how = ["it sent an invalid message"]
    elif code < 0:
        how = [signal.Signals(-code).name]
    template = PROCESSOR_WORDS if code == -signal.SIGXCPU else _WORDS[status]
    words = template.format(
        asleep_s=limits.asleep_s,
        processor_s=limits.processor_s,
        memory_mib=limits.memory_bytes >> 20,
        output_mib=limits.output_bytes >> 20,
        how=bounded(how[0], 200),
    )
    return Outcome(
        status,
        words,
        answer.result if answer else None,
        answer.tier if answer else None,
        time.monotonic() - began,
        answer.is_filtered if answer else False,
    )

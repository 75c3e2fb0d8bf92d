"""Has jobs done by a process that is warm: the parent's side of `warm_worker`."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from select import select
from typing import Any

import msgspec

from warpbook_labs.errors import NotInstalled, TooBusy
from warpbook_labs.sandbox.children import JAIL_PREFIX, OwnFolder, Watchdog
from warpbook_labs.sandbox.kept import KeptProcessError, exchange
from warpbook_labs.sandbox.parent import (
    MOST_STDERR_BYTES,
    Bounded,
    Outcome,
    environment,
    outcome_of,
)
from warpbook_labs.sandbox.progress import MARK, Steps
from warpbook_labs.sandbox.warm_worker import CODE, MOST_ASKED_BYTES, Fork, Ready
from warpbook_labs.sandbox.work import Job, Limits, ResultT, Work
from warpbook_monitors.python_path import NOWHERE

#: PyTorch takes seconds to start, and more on a busy machine
_START_S = 300.0
_PIPE_BYTES = 1 << 20
_TRIES = 2
_NO_START = (
    "The process that loads PyTorch ended before it was ready ({how}): this PyTorch or "
    "machine is not known."
)
_NO_PROCESS = "The process that did it ended, and with it what it did."
_NOT_STARTED = (
    "This machine is too busy: the checker was not ready within "
    f"{_START_S:g} s, so nothing is graded."
)


class _Gone(Exception):
    """The warm process is not there any more."""


class _Warm:
    """One warm process, started when it is first wanted, and again when it is gone."""

    def __init__(self, module: str) -> None:
        self._module = module
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        #: of whom it is a child; a fork of ours has none
        self._owner = 0

    def do(
        self, work: Work, job: bytes, limits: Limits, steps: Steps | None
    ) -> Outcome[Any]:
        with OwnFolder(JAIL_PREFIX) as empty:
            with contextlib.ExitStack() as files:
                line = self._begin(Fork(limits, empty), files)
                return self._watched(work, line, job, limits, steps)

    @contextlib.contextmanager
    def keep(self, limits: Limits, steps: Steps | None) -> Iterator[_Kept]:
        with OwnFolder(JAIL_PREFIX) as empty, contextlib.ExitStack() as files:
            line = self._begin(Fork(limits, empty, is_kept=True), files)
            child = _Kept(line)
            if not child.pid:
                raise _Gone
            errors = _Errors(line.stderr, steps)
            line.stderr = -1
            pump = threading.Thread(target=errors.read_and_close)
            pump.start()
            try:
                yield child
            finally:
                child.kill()
                pump.join()

    def wake(self) -> None:
        """Start it, if it is not there; who asks next is told what is missing."""
        with self._lock, contextlib.suppress(NotInstalled, TooBusy):
            self._ready()

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        control, process = self._control, self._process
        self._control = self._process = None
        if control is not None:
            control.close()
        if process is not None and self._owner == os.getpid():
            if process.stderr is not None:
                process.stderr.close()
            process.kill()
            process.wait()

    def _begin(self, fork: Fork, files: contextlib.ExitStack) -> _Line:
        ours, theirs = socket.socketpair()
        files.enter_context(ours)
        pipes = [os.pipe() for _ in range(3)]
        (job, stdin), (stdout, output), (stderr, errors) = pipes
        for pipe in (job, stdout):
            # inputs are many MiB, of which an ordinary pipe holds 64 KiB at a time
            with contextlib.suppress(OSError, AttributeError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        line = _Line(ours, stdin, stdout, stderr)
        files.callback(line.close)
        sent = [job, output, errors, theirs.fileno()]
        try:
            with self._lock:
                control = self._ready()
                message = msgspec.msgpack.encode(fork)
                try:
                    socket.send_fds(control, [message], sent)
                except OSError:
                    self._close()
                    raise _Gone from None
        finally:
            theirs.close()
            for descriptor in sent[:-1]:
                os.close(descriptor)
        return line

    def _ready(self) -> socket.socket:
        """Give the socket of a process that runs.

        Raises:
            NotInstalled: what it takes is not installed, or not known.
            TooBusy: it has not started after long.
        """
        process = self._process
        is_ours = process is not None and self._owner == os.getpid()
        if is_ours and process is not None and process.poll() is not None:
            self._close()
        if not is_ours or self._control is None:
            self._start()
        assert self._control is not None
        return self._control

    def _start(self) -> None:
        self._control = self._process = None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        number = str(theirs.fileno())
        command = [sys.executable, "-m", "warpbook_labs.sandbox.warm_worker"]
        with theirs:
            self._process = subprocess.Popen(
                [*command, number, self._module],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=NOWHERE,
                env={**environment(), "CUDA_VISIBLE_DEVICES": ""},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._control, self._owner = ours, os.getpid()
        ours.settimeout(_START_S)
        try:
            message = ours.recv(MOST_ASKED_BYTES)
        except TimeoutError:
            self._close()
            raise TooBusy(_NOT_STARTED) from None
        except OSError:
            message = b""
        ours.settimeout(None)
        problem = self._last_words() if not message else ""
        if message:
            problem = msgspec.msgpack.decode(message, type=Ready).problem
        if problem:
            self._close()
            raise NotInstalled(problem)

    def _last_words(self) -> str:
        process = self._process
        assert process is not None
        process.kill()
        errors = process.stderr.read() if process.stderr is not None else b""
        said = errors.decode(errors="replace").strip().splitlines()[-1:]
        code = process.wait()
        return _NO_START.format(how=(said or [f"exit code {code}"])[0][:200])

    def _watched(
        self,
        work: Work,
        line: _Line,
        job: bytes,
        limits: Limits,
        steps: Steps | None,
    ) -> Outcome[Any]:
        began = time.monotonic()
        output = Bounded(os.fdopen(line.stdout, "rb"), limits.output_bytes, True)
        errors = _Errors(line.stderr, steps)
        line.stdout = line.stderr = -1
        stdin, line.stdin = line.stdin, -1
        pumps = [
            threading.Thread(target=_feed, args=(stdin, job)),
            threading.Thread(target=output.read_and_close),
            threading.Thread(target=errors.read_and_close),
        ]
        for pump in pumps:
            pump.start()
        try:
            code_bytes = line.wait(limits.asleep_s)
        finally:
            # its child is killed, if it is still there, and so the pipes end
            line.socket.close()
            for pump in pumps:
                pump.join()
        if code_bytes == b"":
            raise _Gone
        code = None if code_bytes is None else CODE.unpack(code_bytes)[0]
        return outcome_of(work, code, output.held, errors.held, limits, began)


class _Errors(Bounded):
    """What a child writes to stderr, without the steps that it notes there."""

    def __init__(self, pipe: int, steps: Steps | None) -> None:
        super().__init__(os.fdopen(pipe, "rb", buffering=0), MOST_STDERR_BYTES)
        self._steps = steps

    def keep(self, part: bytes) -> None:
        if self._steps is not None and (count := part.count(MARK)):
            self._steps.add(count)
        super().keep(part.replace(MARK, b""))


class _Line:
    """What the parent holds of one job."""

    def __init__(
        self, line: socket.socket, stdin: int, stdout: int, stderr: int
    ) -> None:
        self.socket = line
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr

    def wait(self, asleep_s: float) -> bytes | None:
        """Give the exit code as it is told; nothing if nobody tells; None if it sleeps.

        Raises:
            TooBusy: the machine has no CPU time for it.
        """
        with contextlib.suppress(OSError):
            if not (pid := self.socket.recv(CODE.size)):
                return b""
            watchdog = Watchdog(CODE.unpack(pid)[0], asleep_s)
            if watchdog.wait(lambda seconds: select([self.socket], [], [], seconds)[0]):
                return None
            return self.socket.recv(CODE.size)
        return b""

    def close(self) -> None:
        for descriptor in (self.stdin, self.stdout, self.stderr):
            if descriptor >= 0:
                os.close(descriptor)


class _Kept:
    """A child that is kept for the next message; its line closes its pipes."""

    def __init__(self, line: _Line) -> None:
        self._socket, self.stdin, self.stdout = line.socket, line.stdin, line.stdout
        self.pid = self.code() or 0

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def code(self) -> int | None:
        with contextlib.suppress(OSError, struct.error):
            code: int = CODE.unpack(self._socket.recv(CODE.size))[0]
            return code
        return None


def _feed(pipe: int, given: bytes) -> None:
    # a child that ends before it has read all says why in another way
    with contextlib.suppress(BrokenPipeError), os.fdopen(pipe, "wb") as file:
        file.write(given)


_warm: dict[str, _Warm] = {}
_lock = threading.Lock()


def run(
    job: Job[ResultT], limits: Limits | None = None, steps: Steps | None = None
) -> Outcome[ResultT]:
    """Do a job in a child of a warm process, which ends with it.

    Args:
        steps: counts what the child notes; see `progress`.

    Raises:
        NotInstalled: what it takes is not installed, or not known.
        TooBusy: the machine has no CPU time for it.
    """
    worker = _worker(job.work.warm_module)
    encoded = msgspec.msgpack.encode(job)
    limits = limits or Limits()
    for _ in range(_TRIES):
        with contextlib.suppress(_Gone):
            return worker.do(job.work, encoded, limits, steps)
    return Outcome("crashed", _NO_PROCESS, None, None, 0.0)


@contextlib.contextmanager
def kept(
    kind: type[Job[Any]], limits: Limits, steps: Steps | None = None
) -> Iterator[Callable[[bytes], bytes]]:
    """Have a child of a warm process, and give what sends it a message for an answer.

    It raises what `run` does, and in an exchange `KeptProcessError`.
    """
    worker = _worker(kind.work.warm_module)
    with contextlib.ExitStack() as stack:
        child = None
        for _ in range(_TRIES):
            with contextlib.suppress(_Gone):
                child = child or stack.enter_context(worker.keep(limits, steps))
        if child is None:
            raise KeptProcessError(_NO_PROCESS)
        watchdog = Watchdog(child.pid, limits.asleep_s)
        yield partial(exchange, child, watchdog, limits)


def wake(kind: type[Job[Any]]) -> None:
    """Start the process for a kind of jobs, if none is there, and don't wait for it."""
    worker = _worker(kind.work.warm_module)
    threading.Thread(target=worker.wake, name="warpbook-wake", daemon=True).start()


def close() -> None:
    with _lock:
        workers = list(_warm.values())
        _warm.clear()
    for worker in workers:
        worker.close()


def _worker(module: str) -> _Warm:
    with _lock:
        if module not in _warm:
            _warm[module] = _Warm(module)
        return _warm[module]


atexit.register(close)

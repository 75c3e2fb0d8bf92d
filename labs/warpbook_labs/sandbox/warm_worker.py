"""A process that has loaded what is slow to load, and forks for each job.

    python -m warpbook_labs.sandbox.warm_worker SOCKET MODULE

MODULE does the jobs. This process runs no learner's code and is not shut in itself:
each child is, before it reads its job, and does one. Nothing comes back from a child
but its answer and its exit code. Whoever closes a job's line ends its child; when the
socket is closed, or nobody has asked for long, the process ends, and with it its
children.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import selectors
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import NoReturn

import msgspec

from warpbook_labs.errors import NotInstalled
from warpbook_labs.sandbox import linux
from warpbook_labs.sandbox.confinement import confine
from warpbook_labs.sandbox.learner_code import start_clock, stop_clock
from warpbook_labs.sandbox.work import (
    Answer,
    Limits,
    Module,
    Tier,
    read_message,
    write_message,
)
from warpbook_labs.sandbox.worker import OUT_OF_MEMORY

#: how the number of a child is told, and then its exit code
CODE = struct.Struct("=i")
#: of a job: its stdin, stdout, stderr, and its line
FILES = 4
MOST_ASKED_BYTES = 4096
_IDLE_S = 900.0
_READ_BYTES = 1 << 20
_CRASHED = 1


class Ready(msgspec.Struct, frozen=True):
    """The process can fork; or it can't, and says why."""

    problem: str = ""


class Fork(msgspec.Struct, frozen=True):
    """Begin one job."""

    limits: Limits
    #: a folder with nothing in it
    empty: str
    #: it is asked again and again, in messages with their length
    is_kept: bool = False


def main() -> None:
    """Load, then fork until nobody asks any more."""
    control = socket.socket(fileno=int(sys.argv[1]))
    module: Module = importlib.import_module(sys.argv[2])
    try:
        module.prepare()
    except NotInstalled as problem:
        control.send(msgspec.msgpack.encode(Ready(str(problem))))
        return
    stop_clock()
    gc.collect()
    # children would else copy pages only to count who refers to what
    gc.freeze()
    # who reads what went wrong reads no more
    os.dup2(0, 2)
    control.send(msgspec.msgpack.encode(Ready()))
    _Nursery(control, module).serve()
    # nothing is left to be tidied up
    os._exit(0)


class _Nursery:
    """The children, each with the line of its job."""

    def __init__(self, control: socket.socket, module: Module) -> None:
        self._control, self._module = control, module
        self._lines: dict[int, socket.socket] = {}
        self._ended, self._end = os.pipe()
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._selector.register(self._ended, selectors.EVENT_READ)

    def serve(self) -> None:
        """Fork until the socket is closed, or nobody has asked for long."""
        os.set_blocking(self._end, False)
        signal.set_wakeup_fd(self._end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        while True:
            ready = self._selector.select(None if self._lines else _IDLE_S)
            if not ready:
                return
            for key, _ in ready:
                if key.fileobj is self._control:
                    if not self._begin():
                        return
                elif key.fileobj == self._ended:
                    os.read(self._ended, _READ_BYTES)
                    self._reap()
                else:
                    self._abandon(key.fileobj)

    def _begin(self) -> bool:
        message, files, _, _ = socket.recv_fds(self._control, MOST_ASKED_BYTES, FILES)
        if not message:
            return False
        fork = msgspec.msgpack.decode(message, type=Fork)
        parent = os.getpid()
        child = os.fork()
        if not child:
            self._be_child(fork, files, parent)
        for file in files[: FILES - 1]:
            os.close(file)
        line = socket.socket(fileno=files[FILES - 1])
        with contextlib.suppress(OSError):
            # whoever asked watches what it does with its time
            line.send(CODE.pack(child))
        self._lines[child] = line
        self._selector.register(line, selectors.EVENT_READ)
        return True

    def _abandon(self, line: object) -> None:
        """Kill the child whose line was closed; nobody writes there."""
        for child, other in self._lines.items():
            if other is line:
                self._selector.unregister(other)
                os.kill(child, signal.SIGKILL)

    def _reap(self) -> None:
        for child in list(self._lines):
            ended, status = os.waitpid(child, os.WNOHANG)
            if not ended:
                continue
            line = self._lines.pop(child)
            with contextlib.suppress(KeyError):
                # it was left out when it was abandoned
                self._selector.unregister(line)
            code = os.waitstatus_to_exitcode(status)
            with contextlib.suppress(OSError), line:
                # perhaps nobody waits for it any more
                line.send(CODE.pack(code))

    def _be_child(self, fork: Fork, files: list[int], parent: int) -> NoReturn:
        """Do one job, in a process that has nothing of the others'."""
        code = _CRASHED
        try:
            linux.die_with_parent()
            if os.getppid() != parent:
                os._exit(code)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number, file in enumerate(files[: FILES - 1]):
                os.dup2(file, number)
            # what is the parent's, and of other jobs, begins behind stderr
            os.closerange(3, _most_files())
            start_clock()
            tier, is_filtered = confine(fork.limits, Path(fork.empty))
            if fork.is_kept:
                _converse(self._module, fork.limits, tier, is_filtered)
            code = self._do(tier, is_filtered)
        except BaseException as problem:  # noqa: BLE001 - no child goes on as a parent
            os.write(2, f"{type(problem).__name__}: {problem}"[:500].encode())
        finally:
            os._exit(code)

    def _do(self, tier: Tier, is_filtered: bool) -> int:
        try:
            parts = []
            while part := os.read(0, _READ_BYTES):
                parts.append(part)
            job = msgspec.msgpack.decode(b"".join(parts), type=self._module.Job)
            result = self._module.do(job)
            answer = Answer(tier, is_filtered, result)
            left = memoryview(msgspec.msgpack.encode(answer))
        except MemoryError:
            return OUT_OF_MEMORY
        while left:
            left = left[os.write(1, left) :]
        return 0


def _converse(
    module: Module, limits: Limits, tier: Tier, is_filtered: bool
) -> NoReturn:
    """Answer until nobody asks any more."""
    requests, answers = os.fdopen(0, "rb"), os.fdopen(1, "wb")

    def request() -> bytes:
        content = read_message(requests, limits.output_bytes)
        if content is None:
            os._exit(0)
        return content

    def exchange(result: msgspec.Struct) -> bytes:
        answer = Answer(tier, is_filtered, result)
        write_message(answers, msgspec.msgpack.encode(answer))
        return request()

    try:
        module.converse(request(), exchange)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    os._exit(_CRASHED)


def _most_files() -> int:
    """Say above which number no file is open."""
    return max(int(descriptor) for descriptor in os.listdir("/proc/self/fd")) + 1


if __name__ == "__main__":
    main()

"""A jailed process that is kept for the next message, and ends with what holds it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import weakref
from select import POLLIN, POLLOUT, poll
from typing import Protocol

import msgspec

from warpbook_labs.errors import TooBusy
from warpbook_labs.sandbox.children import JAIL_PREFIX, OwnFolder, Watchdog, kill
from warpbook_labs.sandbox.parent import (
    ASLEEP_WORDS,
    PROCESSOR_WORDS,
    environment,
)
from warpbook_labs.sandbox.work import LENGTH_BYTES, Limits, framed
from warpbook_monitors.python_path import NOWHERE

_READ_BYTES = 1 << 20


class KeptProcessError(Exception):
    """It gave no answer; the message says why."""

    def __init__(self, message: str, is_late: bool = False) -> None:
        super().__init__(message)
        self.is_late = is_late


class Child(Protocol):
    """A jailed process that answers messages on pipes, by their descriptors."""

    pid: int
    stdin: int
    stdout: int

    def kill(self) -> None:
        """End it; a second time nothing happens."""

    def code(self) -> int | None:
        """Give its exit code, once it was killed."""


def exchange(
    child: Child, watchdog: Watchdog, limits: Limits, *messages: bytes
) -> bytes:
    """Send messages to a child, and give its answer to the last one.

    Raises:
        KeptProcessError: it ended, took too long, or wrote too much; it is killed.
        TooBusy: the machine has no CPU time for it.
    """
    sent = b"".join(map(framed, messages))
    answer = _Exchange(child, sent, limits.output_bytes)
    try:
        is_asleep = watchdog.wait(answer.is_over)
    except TooBusy:
        child.kill()
        raise
    if answer.content is not None:
        return answer.content
    child.kill()
    if is_asleep or child.code() == -signal.SIGXCPU:
        words = ASLEEP_WORDS if is_asleep else PROCESSOR_WORDS
        raise KeptProcessError(
            words.format(**msgspec.structs.asdict(limits)), is_late=True
        )
    raise KeptProcessError("Its process ended: it crashed, or took too much memory.")


class _Exchange:
    """What is still to be sent, and what has come."""

    def __init__(self, child: Child, sent: bytes, most_bytes: int) -> None:
        self._child, self._sent, self._most_bytes = child, memoryview(sent), most_bytes
        self._held = bytearray()
        #: the answer, once it is whole
        self.content: bytes | None = None
        self._poll = poll()
        self._poll.register(child.stdout, POLLIN)
        self._poll.register(child.stdin, POLLOUT)
        for pipe in (child.stdin, child.stdout):
            # who neither reads nor writes holds nobody up
            os.set_blocking(pipe, False)

    def is_over(self, seconds: float) -> bool:
        """Go on for some seconds; tell whether the answer is there, or none comes."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0:
            for pipe, _ in self._poll.poll(1000 * left_s):
                if self._has_read() if pipe == self._child.stdout else self._is_deaf():
                    return True
        return False

    def _is_deaf(self) -> bool:
        try:
            self._sent = self._sent[os.write(self._child.stdin, self._sent) :]
        except BrokenPipeError:
            return True
        if not self._sent:
            self._poll.unregister(self._child.stdin)
        return False

    def _has_read(self) -> bool:
        part = os.read(self._child.stdout, _READ_BYTES)
        self._held += part
        if len(self._held) < LENGTH_BYTES:
            return not part
        length = int.from_bytes(self._held[:LENGTH_BYTES], "little")
        if length > self._most_bytes:
            return True
        if len(self._held) >= LENGTH_BYTES + length:
            self.content = bytes(self._held[LENGTH_BYTES : LENGTH_BYTES + length])
        return not part or self.content is not None


class _Started:
    """One that was started from nothing."""

    def __init__(self, command: list[str | bytes]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=NOWHERE,
            env=environment(),
            start_new_session=True,
        )
        self._pipes = (self._process.stdin, self._process.stdout)
        self.stdin, self.stdout = (pipe.fileno() for pipe in self._pipes if pipe)
        self.pid = self._process.pid

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        kill(self._process)

    def code(self) -> int | None:
        return self._process.returncode

    def end(self, folder: OwnFolder) -> None:
        self.kill()
        for pipe in self._pipes:
            if pipe is not None:
                pipe.close()
        folder.cleanup()


class KeptProcess:
    """A module that answers messages in the jail.

    It is run as `python -m MODULE LIMITS EMPTY_FOLDER`, gets `first` as its first
    message, and answers each later one.
    """

    def __init__(self, module: str, first: bytes, limits: Limits) -> None:
        """Keep what is needed; nothing is started before the first exchange."""
        self._module, self._first, self._limits = module, first, limits
        self._child: _Started | None = None
        self._watchdog = Watchdog(0, 0.0)

    def exchange(self, request: bytes) -> bytes:
        """Send a message, and give its answer; it raises what `exchange` does.

        After a failure the next one starts another process.
        """
        child, first = self._started()
        try:
            return exchange(child, self._watchdog, self._limits, *first, request)
        except KeptProcessError:
            self._child = None
            raise

    def _started(self) -> tuple[_Started, tuple[bytes, ...]]:
        """Give the process, and what it has to be sent first, if anything."""
        # a process also ends with the thread that started it
        if self._child is not None and not self._child.has_ended():
            return self._child, ()
        folder = OwnFolder(JAIL_PREFIX)
        command = [sys.executable, "-m", self._module]
        self._child = child = _Started(
            [*command, msgspec.json.encode(self._limits), folder.name]
        )
        self._watchdog = Watchdog(child.pid, self._limits.asleep_s)
        weakref.finalize(self, child.end, folder)
        return child, (self._first,)

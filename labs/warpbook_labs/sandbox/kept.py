"""A jailed process that is kept for the next message, and ends with what holds it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import weakref
from concurrent.futures import Future

import msgspec

from warpbook_labs.errors import TooBusy
from warpbook_labs.sandbox.children import kill
from warpbook_labs.sandbox.frames import read_message, write_message
from warpbook_labs.sandbox.leftovers import JAIL_PREFIX, OwnFolder
from warpbook_labs.sandbox.limits import Limits
from warpbook_labs.sandbox.parent import (
    ASLEEP_WORDS,
    PROCESSOR_WORDS,
    environment,
)
from warpbook_labs.sandbox.watchdog import Watchdog
from warpbook_monitors.python_path import NOWHERE


class KeptProcessError(Exception):
    """It gave no answer; the message says why."""

    def __init__(self, message: str, is_late: bool = False) -> None:
        super().__init__(message)
        self.is_late = is_late


class KeptProcess:
    """A module that answers messages in the jail.

    It is run as `python -m MODULE LIMITS EMPTY_FOLDER`, gets `first` as its first
    message, and answers each later one.
    """

    def __init__(self, module: str, first: bytes, limits: Limits) -> None:
        """Keep what is needed; nothing is started before the first exchange."""
        self._module, self._first, self._limits = module, first, limits
        self._child: subprocess.Popen[bytes] | None = None
        self._watchdog = Watchdog(0, 0.0)

    def exchange(self, request: bytes) -> bytes:
        """Send a message, and give its answer.

        Raises:
            KeptProcessError: it ended, took too long, or wrote too much. The next
                exchange starts another process.
            TooBusy: the machine has no CPU time for it.
        """
        child, first = self._started()
        answered, is_late = threading.Event(), Future[bool]()

        def watch() -> None:
            try:
                is_late.set_result(self._watchdog.wait(answered.wait))
            except TooBusy as problem:
                is_late.set_exception(problem)
            if not answered.is_set():
                kill(child)

        # an interrupted program does not wait for it
        threading.Thread(target=watch, daemon=True).start()
        try:
            assert child.stdin is not None and child.stdout is not None
            if first:
                write_message(child.stdin, first)
            write_message(child.stdin, request)
            content = read_message(child.stdout, self._limits.output_bytes)
        except (BrokenPipeError, ValueError):
            content = None
        finally:
            answered.set()
        if content is not None:
            return content
        is_asleep = is_late.result()
        kill(child)
        self._child = None
        if is_asleep or child.returncode == -signal.SIGXCPU:
            words = ASLEEP_WORDS if is_asleep else PROCESSOR_WORDS
            limits = msgspec.structs.asdict(self._limits)
            raise KeptProcessError(words.format(**limits), is_late=True)
        raise KeptProcessError(
            "Its process ended: it crashed, or took too much memory."
        )

    def _started(self) -> tuple[subprocess.Popen[bytes], bytes]:
        """Give the process, and what it has to be sent first, if anything."""
        # a process also ends with the thread that started it
        if self._child is not None and self._child.poll() is None:
            return self._child, b""
        folder = OwnFolder(JAIL_PREFIX)
        command = [sys.executable, "-m", self._module]
        self._child = child = subprocess.Popen(
            [*command, msgspec.json.encode(self._limits), folder.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=NOWHERE,
            env=environment(),
            start_new_session=True,
        )
        self._watchdog = Watchdog(child.pid, self._limits.asleep_s)
        weakref.finalize(self, _end, child, folder)
        return child, self._first


def _end(child: subprocess.Popen[bytes], folder: OwnFolder) -> None:
    kill(child)
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()
    folder.cleanup()

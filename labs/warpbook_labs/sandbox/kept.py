"""A jailed process that is kept for the next message, and ends with what holds it."""

from __future__ import annotations

import subprocess
import sys
import threading
import weakref

import msgspec

from warpbook_labs.sandbox.children import kill
from warpbook_labs.sandbox.frames import read_message, write_message
from warpbook_labs.sandbox.leftovers import JAIL_PREFIX, OwnFolder
from warpbook_labs.sandbox.limits import Limits
from warpbook_labs.sandbox.parent import environment
from warpbook_monitors.python_path import NOWHERE


class KeptProcessError(Exception):
    """It gave no answer; the message says why."""


class KeptProcess:
    """A module that answers messages in the jail.

    It is run as `python -m MODULE LIMITS EMPTY_FOLDER`, gets `first` as its first
    message, and answers each later one.
    """

    def __init__(self, module: str, first: bytes, limits: Limits) -> None:
        """Keep what is needed; nothing is started before the first exchange."""
        self._module, self._first, self._limits = module, first, limits
        self._child: subprocess.Popen[bytes] | None = None

    def exchange(self, request: bytes, wall_s: float | None = None) -> bytes:
        """Send a message, and give its answer.

        Args:
            request: what is sent.
            wall_s: what the answer may take; that of the limits if left out.

        Raises:
            KeptProcessError: it ended, took too long, or wrote too much. The next
                exchange starts another process.
        """
        child, first = self._started()
        wall_s = self._limits.wall_s if wall_s is None else wall_s
        overdue = threading.Event()

        def end() -> None:
            overdue.set()
            kill(child)

        timer = threading.Timer(wall_s, end)
        # an interrupted program does not wait for it
        timer.daemon = True
        try:
            timer.start()
            assert child.stdin is not None and child.stdout is not None
            if first:
                write_message(child.stdin, first)
            write_message(child.stdin, request)
            content = read_message(child.stdout, self._limits.output_bytes)
        except (BrokenPipeError, ValueError):
            content = None
        finally:
            timer.cancel()
        if content is not None:
            return content
        kill(child)
        self._child = None
        if overdue.is_set():
            raise KeptProcessError(f"It timed out after {wall_s:g} s.")
        raise KeptProcessError(
            "Its process ended: it took more time or memory than it may, or crashed."
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
        weakref.finalize(self, _end, child, folder)
        return child, self._first


def _end(child: subprocess.Popen[bytes], folder: OwnFolder) -> None:
    kill(child)
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()
    folder.cleanup()

"""A foreign lab's own Python, in a jailed process that is kept for the next call.

It is started by the first call, and ends with what holds it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import weakref
from typing import Any

import msgspec

from warpbook_labs.lab.lab_python import read_message, write_message
from warpbook_labs.sandbox.children import kill
from warpbook_labs.sandbox.leftovers import JAIL_PREFIX
from warpbook_labs.sandbox.limits import Limits
from warpbook_labs.sandbox.parent import environment
from warpbook_labs.sandbox.values import UnfitValue, decode, encode
from warpbook_monitors.python_path import NOWHERE

#: of all calls together by the CPU, of each by the clock
LIMITS = Limits(
    wall_s=120.0, processor_s=600, memory_bytes=8 << 30, output_bytes=2 << 30
)


class LabPythonError(Exception):
    """The lab's own Python could not be run, or gave back what is no plain data."""


class LabProcess:
    """One source, and the process that runs it."""

    def __init__(self, file_name: str, source: str, limits: Limits = LIMITS) -> None:
        """Keep the source; nothing is started before the first call."""
        self._first = encode([file_name, source])
        self._limits = limits
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    def call(self, function: str, *arguments: Any) -> Any:
        """Call one of its functions.

        Args:
            function: its name.
            arguments: plain data, arrays of numbers, generators of random numbers.

        Raises:
            Exception: of the type's name and with the words of what the function
                raised.
            LabPythonError: it took too long, ended, or gave back no plain data.
        """
        request = encode([function, list(arguments)])
        with self._lock:
            content = self._exchange(request)
        try:
            status, *results = decode(content)
        except (UnfitValue, ValueError, TypeError):
            raise LabPythonError("It gave back malformed data.") from None
        if status == "done" and len(results) == 1:
            return results[0]
        kind, words = [*map(str, results), "", ""][:2]
        name = kind if kind.isidentifier() else "Exception"
        raise type(name[:100], (Exception,), {})(words)

    def _exchange(self, request: bytes) -> bytes:
        child = self._started()
        overdue = threading.Event()

        def end() -> None:
            overdue.set()
            kill(child)

        timer = threading.Timer(self._limits.wall_s, end)
        # an interrupted program does not wait for it
        timer.daemon = True
        try:
            timer.start()
            assert child.stdin is not None and child.stdout is not None
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
            raise LabPythonError(f"It timed out after {self._limits.wall_s:g} s.")
        raise LabPythonError(
            "Its process ended: it took more time or memory than it may, or crashed."
        )

    def _started(self) -> subprocess.Popen[bytes]:
        # a process also ends with the thread that started it
        if self._child is not None and self._child.poll() is None:
            return self._child
        folder = tempfile.TemporaryDirectory(prefix=JAIL_PREFIX)
        command = [sys.executable, "-m", "warpbook_labs.lab.lab_python"]
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
        assert child.stdin is not None
        write_message(child.stdin, self._first)
        return child


def _end(
    child: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str]
) -> None:
    kill(child)
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()
    folder.cleanup()

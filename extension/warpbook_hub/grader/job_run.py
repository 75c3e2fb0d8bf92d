"""One job in a process of its own, bounded in time and memory, whatever it does."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO

import msgspec
import psutil
from msgspec import Struct

from warpbook.hub_protocol import GRADER_MESSAGE_BYTES, JobOrder, LeaseName
from warpbook_hub.grader.engine import Graded, How, JobEnd, NotGraded
from warpbook_hub.grader.processes import end_tree, started
from warpbook_monitors.plain_text import bounded

#: how often a job is looked at, and its memory, which takes longer
_LOOK_S, _LOOK_AT_MEMORY_S = 0.05, 0.5
_READ_BYTES = 1 << 16
_PIPE_S = 5.0
_MOST_STDERR_BYTES = 4_096
_decode = msgspec.json.Decoder(Graded | NotGraded).decode


#: what grades with the labs
COMMAND = (sys.executable, "-m", "warpbook_hub.grader.child")


class Bounds(Struct, frozen=True):
    """What one job may take; the learner's own part of it is bounded by the jail."""

    wall_s: float = 900.0
    memory_bytes: int = 12 << 30


class JobRun:
    """One job: started, watched, and ended whatever it does."""

    def __init__(
        self,
        order: JobOrder,
        bounds: Bounds,
        command: Sequence[str],
        spare: subprocess.Popen[bytes] | None = None,
        user: str = "",
    ) -> None:
        """Take what to run.

        Args:
            order: the job.
            bounds: what it may take.
            command: what grades it; it reads the order and writes an outcome.
            spare: such a process that has started already.
            user: the account that it is started as; ours if empty.
        """
        self.order = order
        self._bounds, self._command, self._user = bounds, command, user
        self._spare = spare
        self._is_cancelled = threading.Event()

    def cancel(self) -> None:
        """Have it end, and all that it started; from any thread."""
        self._is_cancelled.set()

    def ended(self) -> JobEnd:
        """Run it to its end, in the thread that calls this."""
        began_s = time.monotonic()
        try:
            how, message, outcome = self._watched()
        except (OSError, LookupError) as problem:
            how, message, outcome = "crashed", f"It can't be begun: {problem}", None
        took_ms = int((time.monotonic() - began_s) * 1000)
        name = LeaseName(self.order.job, self.order.fence)
        return JobEnd(name, self.order.stage, how, message, outcome, took_ms)

    def _watched(self) -> tuple[How, str, Graded | NotGraded | None]:
        if self._is_cancelled.is_set() and self._spare is None:
            return "cancelled", "", None
        with self._spare or self._started() as child:
            output = _PipeTail(child.stdout, GRADER_MESSAGE_BYTES + 1)
            errors = _PipeTail(child.stderr, _MOST_STDERR_BYTES)
            try:
                _give(child.stdin, msgspec.json.encode(self.order))
                stopped = self._wait(child)
            finally:
                end_tree(child)
            # what has escaped from its tree may hold a pipe open
            output.join(_PIPE_S)
            errors.join(_PIPE_S)
        if stopped is not None:
            return stopped
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
            if child.returncode == 0:
                return "done", "", _decode(output.content)
        stderr_lines = errors.content.decode(errors="replace").strip().splitlines()
        last = bounded(stderr_lines[-1], 300) if stderr_lines else ""
        return "crashed", f"It ended with {_code(child.returncode)}. {last}", None

    def _started(self) -> subprocess.Popen[bytes]:
        return started(self._command, self.order.device, self._user)

    def _wait(
        self, child: subprocess.Popen[bytes]
    ) -> tuple[How, str, Graded | NotGraded | None] | None:
        """Wait for its end; say why if it is to be ended."""
        end_s = time.monotonic() + self._bounds.wall_s
        most_bytes = self._bounds.memory_bytes
        memory_s = 0.0
        while child.poll() is None:
            if self._is_cancelled.is_set():
                return "cancelled", "", None
            if time.monotonic() > end_s:
                words = f"It took more than {self._bounds.wall_s:g} s."
                return "timed out", words, None
            if time.monotonic() >= memory_s:
                if tree_bytes(child.pid) > most_bytes:
                    words = f"It took more than {most_bytes >> 20:,} MiB of memory."
                    return "out of memory", words, None
                memory_s = time.monotonic() + _LOOK_AT_MEMORY_S
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_LOOK_S)
        return None


class _PipeTail(threading.Thread):
    """Reads a pipe to its end, and keeps the last of it that fits."""

    def __init__(self, pipe: IO[bytes] | None, most_bytes: int) -> None:
        super().__init__(daemon=True)
        self._pipe, self._most_bytes = pipe, most_bytes
        self.content = b""
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while self._pipe is not None and (
                part := os.read(self._pipe.fileno(), _READ_BYTES)
            ):
                self.content = (self.content + part)[-self._most_bytes :]


def tree_bytes(pid: int) -> int:
    """Add up the memory of a process and all that it started."""
    total = 0
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                total += process.memory_info().rss
    return total


def _give(pipe: IO[bytes] | None, message: bytes) -> None:
    # one that ends before it has read all says why in another way
    if pipe is not None:
        with contextlib.suppress(BrokenPipeError), pipe:
            pipe.write(message)


def _code(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"status {code}"

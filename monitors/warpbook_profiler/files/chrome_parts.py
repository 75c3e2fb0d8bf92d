"""Reads a large trace file in parts, each in a process of its own.

Where a part may begin is a guess: a "}, {" may stand within a name. The part before it
proves it, since it must end there between two events; the first begins at the file's
begin. Whatever goes wrong, the file is read once more in one piece.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO

from warpbook_monitors.cores import usable_cores
from warpbook_monitors.python_path import NOWHERE, own_path
from warpbook_profiler.files.chrome_events import Gathered
from warpbook_profiler.files.chrome_file import (
    BETWEEN,
    LIST,
    MAX_TRACE_BYTES,
    WHOLE,
    Part,
    is_gzip,
    read_pieces,
)
from warpbook_profiler.model import progress
from warpbook_profiler.model.errors import TraceFileError

#: what is worth a new process, which takes 0.15 s to start, and what one is that is
#: this one once more
PART_BYTES, FORKED_PART_BYTES = 40_000_000, 8_000_000
_MOST_PARTS = 8
_MB = 1_000_000
_READING = "Reading the trace"
#: how far from where it might be a place to cut is looked for
_SEARCHED_BYTES = 100_000


def gather(path: str) -> Gathered:
    """Take all that is of use from a file.

    Raises:
        TraceFileError: the file is damaged, too large, or no such trace.
    """
    failed = (TraceFileError, OSError, EOFError, pickle.PickleError)
    with contextlib.suppress(*failed):
        parts = _parts(path)
        if len(parts) > 1:
            return _gather_side_by_side(path, parts)
    return _gather(path, WHOLE, _ReadBytes(path, 1), 0)


class _ReadBytes:
    """What is read of a file, by all processes that are this one once more."""

    def __init__(self, path: str, parts: int) -> None:
        self._total_mb = os.path.getsize(path) // _MB if os.path.isfile(path) else 0
        # processes that are forked later share it
        self._by_part = memoryview(mmap.mmap(-1, 8 * parts)).cast("Q")
        self._told_mb = 0

    def add(self, part: int, count: int) -> None:
        """Count bytes of a part; the process that reads the first one tells of all."""
        self._by_part[part] += count
        read_mb = sum(self._by_part) // _MB
        if not part and read_mb > self._told_mb:
            self._told_mb = read_mb
            progress.tell(_READING, read_mb, max(self._total_mb, read_mb), " MB")


def _gather(path: str, part: Part, read: _ReadBytes, at: int) -> Gathered:
    gathered = Gathered()
    for piece in read_pieces(path, part, partial(read.add, at)):
        gathered.add(piece)
        gathered.check(path)
    return gathered


def _gather_side_by_side(path: str, parts: list[Part]) -> Gathered:
    with contextlib.ExitStack() as stack:
        workers, read = [], _ReadBytes(path, len(parts))
        for at, part in enumerate(parts[1:], 1):
            alone = _is_alone()
            reader = _forked(path, part, read, at) if alone else _started(path, part)
            workers.append(stack.enter_context(reader))
        gathered = _gather(path, parts[0], read, 0)
        for worker in workers:
            # only what this very module has written
            gathered.join(pickle.load(worker))
            gathered.check(path)
    return gathered


def _is_alone() -> bool:
    """Tell whether this is the process's only thread, which alone may fork safely."""
    with contextlib.suppress(OSError):
        return len(os.listdir("/proc/self/task")) == 1
    return False


@contextlib.contextmanager
def _forked(path: str, part: Part, read: _ReadBytes, at: int) -> Iterator[IO[bytes]]:
    """Read a part in this process once more, and give what it tells."""
    answer, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        # nothing of the parent's may be tidied up here, whatever happens
        with contextlib.suppress(BaseException):
            _tell(_gather(path, part, read, at), write_end)
        os._exit(0)
    os.close(write_end)
    try:
        with open(answer, "rb") as pipe:
            yield pipe
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@contextlib.contextmanager
def _started(path: str, part: Part) -> Iterator[IO[bytes]]:
    """Read a part in a new process, and give what it tells."""
    with subprocess.Popen(
        [sys.executable or "", "-m", __name__, os.path.abspath(path), *map(str, part)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=NOWHERE,
        env={**os.environ, "PYTHONPATH": own_path(), "OPENBLAS_NUM_THREADS": "1"},
    ) as worker:
        assert worker.stdout
        try:
            yield worker.stdout
        finally:
            worker.kill()


def _parts(path: str) -> list[Part]:
    """Cut a file where an event seems to end.

    A compressed one can't be cut, nor one that is a list: its end is its own.
    """
    size = Path(path).stat().st_size
    worth_bytes = FORKED_PART_BYTES if _is_alone() else PART_BYTES
    count = min(usable_cores(), _MOST_PARTS, size // worth_bytes)
    if count < 2 or size > MAX_TRACE_BYTES or is_gzip(path):
        return [WHOLE]
    parts, begin = [], 0
    with Path(path).open("rb") as file:
        if LIST.match(file.read(_SEARCHED_BYTES)):
            return [WHOLE]
        for number in range(1, count):
            at = max(size * number // count, begin)
            file.seek(at)
            cut = BETWEEN.search(file.read(_SEARCHED_BYTES))
            if cut:
                parts.append(Part(begin, at + cut.start()))
                begin = at + cut.end() - 1
    return [*parts, Part(begin)]


def _tell(gathered: Gathered, to: int) -> None:
    with open(to, "wb") as pipe:
        pickle.dump(gathered, pipe, pickle.HIGHEST_PROTOCOL)


def _main() -> None:
    path, begin, end = sys.argv[1:]
    part = Part(int(begin), int(end))
    _tell(_gather(path, part, _ReadBytes(path, 1), 0), sys.stdout.fileno())


if __name__ == "__main__":
    _main()

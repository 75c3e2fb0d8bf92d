"""Reads a trace of whatever recorder wrote it: torch.profiler or Nsight Systems.

`python -m` reads one in a process that is held to its budget.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

from warpbook_monitors.budget import EXCEEDED, TRACES, hold
from warpbook_monitors.python_path import NOWHERE, own_path
from warpbook_profiler.events.columns import Columns
from warpbook_profiler.events.run import Run
from warpbook_profiler.files.chrome import Trace, read_chrome_trace, read_chrome_traces
from warpbook_profiler.files.nsight.database import MAGIC
from warpbook_profiler.files.nsight.nsys import read_nsys
from warpbook_profiler.model.errors import NotATrace, TraceFileError, TraceTooLarge

#: NVIDIA's own formats, which only its tools read
_CLOSED = {
    ".nsys-rep": "nsys export --type sqlite FILE writes one that can be read.",
    ".qdrep": "nsys export --type sqlite FILE writes one that can be read.",
    ".ncu-rep": "ncu --import FILE --csv --page raw writes a table that can be read.",
}


def read_trace(path: str) -> tuple[Columns, Run]:
    """Read a trace file; of several processes the one with most work on a GPU.

    Raises:
        TraceFileError: the file is damaged, too large, or no such trace.
    """
    _check_format(path)
    return read_nsys(path) if _is_sqlite(path) else read_chrome_trace(path)


def read_traces(path: str) -> list[Trace]:
    """Read a trace file, each process of a merged one by itself.

    Raises:
        TraceFileError: the file is damaged, too large, or no such trace.
    """
    _check_format(path)
    if _is_sqlite(path):
        return [Trace("", *read_nsys(path))]
    return read_chrome_traces(path)


def read_apart(path: str) -> list[Trace]:
    """Do it in a process of its own, for one that is not ours to limit.

    Raises:
        TraceFileError: the file is damaged, too large, or no such trace.
    """
    done = subprocess.run(
        [sys.executable, "-m", __name__, os.path.abspath(path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=NOWHERE,
        env={**os.environ, "PYTHONPATH": own_path(), "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )
    if done.returncode:
        raise TraceFileError(path, "the process that read it was ended.")
    # only what this very module has written
    traces, kind, problem = pickle.loads(done.stdout)
    if kind is not None:
        raise kind(path, problem)
    return list(traces)


def _main() -> None:
    hold(TRACES)
    answer: tuple[list[Trace], type[TraceFileError] | None, str]
    try:
        answer = read_traces(sys.argv[1]), None, ""
    except TraceFileError as problem:
        answer = [], type(problem), problem.problem
    except EXCEEDED:
        answer = [], TraceTooLarge, TRACES.words
    pickle.dump(answer, sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)


def _check_format(path: str) -> None:
    remedy = _CLOSED.get(Path(path).suffix)
    if remedy is not None:
        raise NotATrace(path, f"a report in a format of NVIDIA's own: {remedy}")


def _is_sqlite(path: str) -> bool:
    """Tell by its first bytes; what can't be read is told by the reader."""
    try:
        if not os.path.isfile(path):
            return False
        with Path(path).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


if __name__ == "__main__":
    _main()

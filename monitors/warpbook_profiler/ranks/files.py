"""The trace files of a job: several paths, or folders that hold them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from warpbook_profiler.model.errors import TraceFileError

#: of one job that is read at once
MOST_FILES = 256
_ENDINGS = (".json", ".json.gz")


def trace_files(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Give all files, in the order of the paths and of the names within a folder.

    Raises:
        TraceFileError: a folder can't be read or holds no trace, or they are too many.
    """
    files: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            files += _within(path)
        else:
            files.append(path)
        if len(files) > MOST_FILES:
            raise TraceFileError(
                str(path), f"more than {MOST_FILES:,} traces: name those to compare."
            )
    return files


def _within(folder: Path) -> Sequence[Path]:
    try:
        entries = [entry for entry in folder.iterdir() if entry.is_file()]
    except OSError as problem:
        raise TraceFileError(
            str(folder), f"can't be read: {problem.strerror or problem}."
        ) from None
    traces = sorted(entry for entry in entries if entry.name.endswith(_ENDINGS))
    if not traces:
        raise TraceFileError(
            str(folder), "neither a regular file nor a folder with a .json or .json.gz."
        )
    return traces

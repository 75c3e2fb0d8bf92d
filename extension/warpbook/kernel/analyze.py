"""`warpbook.analyze(path)`: the report of a trace file in a notebook."""

from __future__ import annotations

import os
from pathlib import Path

from warpbook.kernel.profile import Profile
from warpbook_monitors.plain_text import bounded
from warpbook_monitors.trace.file_profile import read_profile

_MOST_TITLE = 200


def analyze(path: str | os.PathLike[str]) -> Profile:
    """Read a trace of torch.profiler and give its report, as that of a cell.

    A notebook shows the report; every figure of it is an attribute, and `.diff(other)`
    compares it with another profile or file.

    Args:
        path: the Chrome trace, `.json` or `.json.gz`.

    Raises:
        TraceFileError: `NotATrace`, `TraceDamaged` or `TraceTooLarge`, of
            `warpbook_monitors.trace.errors`; itself where the file can't be read.
    """
    found = read_profile(os.fspath(path))
    return Profile(found.profile, bounded(Path(path).name, _MOST_TITLE))

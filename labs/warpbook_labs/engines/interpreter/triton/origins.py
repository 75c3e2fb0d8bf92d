"""The lines of a Triton source from which what is wrong came, once it was followed.

What is told of a line is what it did in the last program that came there: all programs
run the same Python.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpbook_labs.cases.execution import Memory
from warpbook_labs.engines.interpreter.jobs import Asked, Origin
from warpbook_labs.results.findings import Report
from warpbook_labs.sandbox.following import MOST_LINES, Follower
from warpbook_labs.sandbox.line_distances import in_order


def origin_of(
    asked: Asked,
    follower: Follower,
    held: Sequence[Memory],
    reports: Sequence[Report],
) -> Origin:
    """Give the lines that are asked for.

    Args:
        asked: of what.
        follower: that has watched the run.
        held: what buffers hold in the end, with the lines that wrote there.
        reports: of each launch.
    """
    line, has_written = asked.line, True
    launches: tuple[int, ...] = ()
    if asked.what == "finding":
        found = [finding for report in reports for finding in report.findings]
        line = (found[0].line or 0) if found else 0
    elif asked.what == "nothing":
        launches = tuple(range(len(reports)))
        line, has_written = _writer_beside(asked, held)
    of_line = follower.of_line if asked.what == "value" else follower.of_place
    nearest = in_order(follower.by_statements(of_line(line)))[:MOST_LINES]
    lines = tuple(each for each in nearest if each != line)
    return Origin(lines, line, launches, has_written)


def _writer_beside(asked: Asked, held: Sequence[Memory]) -> tuple[int, bool]:
    """Give the line that wrote the nearest element before, and whether it is another.

    The line is 0 where nobody has written any.
    """
    lines = next((each.writer_lines for each in held if each.name == asked.buffer), b"")
    by_word = np.frombuffer(lines, "<u2")
    written = np.flatnonzero(by_word)
    if not len(written):
        return 0, True
    word = asked.byte // 4
    at = int(written[max(int(np.searchsorted(written, word)) - 1, 0)])
    return int(by_word[at]), at != word

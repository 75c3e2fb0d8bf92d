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
from warpbook_labs.sandbox.lines.following import MOST_LINES, Follower
from warpbook_labs.sandbox.lines.line_distances import in_order


def origin_of(
    question: Asked,
    follower: Follower,
    held: Sequence[Memory],
    reports: Sequence[Report],
) -> Origin:
    """Give the lines that are asked for.

    Args:
        question: of what.
        follower: that has watched the run.
        held: what buffers hold in the end, with the lines that wrote there.
        reports: of each launch.
    """
    line, has_written = question.line, True
    launches: tuple[int, ...] = ()
    if question.what == "finding":
        findings = [finding for report in reports for finding in report.findings]
        line = (findings[0].line or 0) if findings else 0
    elif question.what == "nothing":
        launches = tuple(range(len(reports)))
        line, has_written = _writer_beside(question, held)
    of_line = follower.of_line if question.what == "value" else follower.of_place
    nearest = in_order(follower.by_statements(of_line(line)))[:MOST_LINES]
    lines = tuple(other for other in nearest if other != line)
    return Origin(lines, line, launches, has_written)


def _writer_beside(question: Asked, held: Sequence[Memory]) -> tuple[int, bool]:
    """Give the line that wrote the nearest element before, and whether it is another.

    The line is 0 where nobody has written any.
    """
    lines = next(
        (memory.writer_lines for memory in held if memory.name == question.buffer), b""
    )
    by_word = np.frombuffer(lines, "<u2")
    written = np.flatnonzero(by_word)
    if not len(written):
        return 0, True
    word = question.byte // 4
    at = int(written[max(int(np.searchsorted(written, word)) - 1, 0)])
    return int(by_word[at]), at != word

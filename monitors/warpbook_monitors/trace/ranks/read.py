"""The traces of a job, read one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warpbook_monitors.trace.ranks.collectives import collectives_of
from warpbook_monitors.trace.read_trace import read_trace
from warpbook_monitors.trace.report import JobReport, merge, rank_order, report


def read_job(paths: Sequence[Path]) -> tuple[JobReport, list[str]]:
    """Read and analyse the traces of several ranks.

    Returns:
        the report, and the names of the files in the order of its ranks.

    Raises:
        TraceFileError: one is damaged, too large, or no such trace.
    """
    reports, collectives = [], []
    for path in paths:
        events, run = read_trace(str(path))
        reports.append(report(events, run))
        collectives.append(collectives_of(events))
    job = merge(reports, collectives)
    # in the order in which they are merged
    in_order = sorted(
        zip(reports, paths, strict=True), key=lambda pair: rank_order(pair[0])
    )
    return job, [path.name for _, path in in_order]

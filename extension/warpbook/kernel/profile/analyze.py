"""`warpbook.analyze(path)`: the report of a trace file in a notebook."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Union

from IPython import get_ipython
from IPython.display import display

from warpbook.kernel.link.server_link import ServerLink
from warpbook.kernel.link.timeline_handover import hand_in, timelines
from warpbook.kernel.link.where import kernel_id, notebook_path
from warpbook.kernel.runs.cell import prompt_number
from warpbook.kernel.runs.profile import Notice, Profile
from warpbook.protocol import PROTOCOL_VERSION, CellReport
from warpbook.reports.html import document_html
from warpbook.reports.text import document_text
from warpbook_monitors.plain_text import bounded
from warpbook_profiler.files.file_profile import FileProfile, profile_of
from warpbook_profiler.files.nsight.limiters import (
    KernelLimit,
    kernel_limits,
    limit_table,
    limiter_lines,
)
from warpbook_profiler.files.nsight.limiters import (
    heading as limits_heading,
)
from warpbook_profiler.files.nsight.ncu import looks_like_ncu, read_ncu
from warpbook_profiler.files.read_trace import read_apart
from warpbook_profiler.ranks.files import trace_files
from warpbook_profiler.report.ranks_job_words import heading, job_tables, notes
from warpbook_profiler.report.ranks_read import job_of, read_job, read_ranks
from warpbook_profiler.report.report import JobReport, plain

_MOST_TITLE = 200

_Path = Union[str, "os.PathLike[str]"]


class KernelLimits:
    """The kernels of one file, each with what limits it: `limits.kernels`."""

    def __init__(self, kernels: Sequence[KernelLimit]) -> None:
        self.kernels = tuple(kernels)

    def __repr__(self) -> str:
        lines = limiter_lines(self.kernels)
        return document_text(
            limits_heading(self.kernels), lines, [limit_table(self.kernels)]
        )

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        lines, tables = limiter_lines(self.kernels), [limit_table(self.kernels)]
        said = limits_heading(self.kernels)
        return {
            "text/plain": repr(self),
            "text/html": document_html(said, lines, tables, "Kernels, measured"),
        }


def analyze(path: _Path | Sequence[_Path]) -> Profile | Job | KernelLimits:
    """Read a trace of torch.profiler and give its report, as that of a cell.

    A notebook shows the report, in JupyterLab with its timeline; every figure of it is
    an attribute, and `.diff(other)` compares it with another profile or file.

    An export of Nsight Systems (`nsys export --type sqlite`) gives the same report,
    and a table of Nsight Compute (`ncu --csv`) its kernels with what limits each.

    Several traces, or a folder of them, are the ranks of one job: they are aligned by
    their collectives, and the one that the others wait for is named. So are the
    processes of one file, where somebody merged their traces.

    Args:
        path: the Chrome trace, `.json` or `.json.gz`; a folder of them; or several;
            `.sqlite` of nsys; `.csv`, `.txt` or `.log` of ncu.

    Raises:
        TraceFileError: `NotATrace`, `TraceDamaged` or `TraceTooLarge`, of
            `warpbook_profiler.model.errors`; itself where the file can't be read.
    """
    if not isinstance(path, (str, os.PathLike)):
        return Job(*read_job(trace_files(path)))
    if Path(path).is_dir():
        return Job(*read_job(trace_files([path])))
    if looks_like_ncu(os.fspath(path)):
        return KernelLimits(kernel_limits(read_ncu(os.fspath(path))))
    traces = read_apart(os.fspath(path))
    if len(traces) > 1:
        return Job(*job_of(*read_ranks([Path(path)], lambda _: traces)))
    file_profile = profile_of(traces[0].events, traces[0].run)
    profile = Profile(file_profile.profile, bounded(Path(path).name, _MOST_TITLE))
    shell = get_ipython()
    if shell is not None:
        _hand_in(shell, profile, file_profile)
    return profile


def _hand_in(shell: Any, profile: Profile, file_profile: FileProfile) -> None:
    """Give the report to the server: the dashboard lists it, the page draws it."""
    link, report_id = ServerLink(), str(uuid.uuid4())
    # when it was read: what this machine's GPUs did at the recorded time is not of it
    read_ms = time.time() * 1e3
    timeline_events = timelines.count(file_profile.events, file_profile.run)
    report = CellReport(
        id=report_id,
        protocol=PROTOCOL_VERSION,
        kernel_id=kernel_id(shell),
        notebook=notebook_path(),
        cell_id=None,
        execution_count=prompt_number(shell),
        title=profile.title,
        started_ms=read_ms,
        ended_ms=read_ms,
        status="ok",
        profile=profile.figures,
        timeline_events=timeline_events,
    )
    is_taken, words = hand_in(link, report, file_profile.events, file_profile.run)
    if is_taken:
        profile.report_id = report_id
    if words:
        display(Notice(words))


_MOST_NAME = 60


class Job:
    """The traces of several ranks beside one another.

    Every field of `JobReport` is an attribute: `job.alignment`, `job.times`,
    `job.ranks[0].verdict`, ...
    """

    def __init__(self, figures: JobReport, files: Sequence[str]) -> None:
        """Keep the figures, and each rank's file in the order of the ranks."""
        self.figures = figures
        numbers = [one.rank for one in figures.ranks]
        are_ranks = None not in numbers and len(set(numbers)) == len(numbers)
        self._kind = "rank" if are_ranks else "trace"
        self._names = [
            str(number) if are_ranks else bounded(file, _MOST_NAME)
            for number, file in zip(numbers, files, strict=True)
        ]

    def __getattr__(self, name: str) -> Any:
        if name in JobReport.__struct_fields__:
            return getattr(self.figures, name)
        raise AttributeError(f"A job has no figure {name!r}.")

    def __dir__(self) -> list[str]:
        """List the figures too, so that they complete."""
        return [*super().__dir__(), *JobReport.__struct_fields__]

    def to_dict(self) -> dict[str, Any]:
        """Give plain dictionaries, lists and numbers, as `analyze --json` does."""
        return plain(self.figures)

    def __repr__(self) -> str:
        return document_text(*self._parts())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {
            "text/plain": repr(self),
            "text/html": document_html(*self._parts(), "Ranks of a job"),
        }

    def _parts(self) -> tuple[str, tuple[str, ...], tuple[Any, ...]]:
        verdicts = tuple(
            f"{self._kind.capitalize()} {name}: {one.verdict.kind}: "
            f"{one.verdict.sentence}"
            for name, one in zip(self._names, self.figures.ranks, strict=True)
        )
        tables = job_tables(self.figures, self._names, self._kind)
        return (
            heading(self.figures, self._kind),
            (*notes(self.figures), *verdicts),
            tables,
        )

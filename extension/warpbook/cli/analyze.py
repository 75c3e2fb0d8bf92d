"""`warpbook analyze`: the report of trace files that torch.profiler wrote."""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from warpbook.cli import versus
from warpbook.cli.output import CommandError, progress_line, terminal_width
from warpbook.reports.labs import LABS
from warpbook.reports.page import report_page
from warpbook.reports.text import report_lines
from warpbook_monitors.budget import TRACES, hold
from warpbook_monitors.plain_text import fitted, joined, printable
from warpbook_profiler.advice.code.cell_code import MOST_CHARACTERS
from warpbook_profiler.events.columns import Columns
from warpbook_profiler.events.run import Run
from warpbook_profiler.files.file_profile import FileProfile, profile_of
from warpbook_profiler.files.nsight.limiters import (
    KernelLimit,
    heading,
    kernel_limits,
    limit_table,
    limiter_lines,
)
from warpbook_profiler.files.nsight.ncu import looks_like_ncu, read_ncu
from warpbook_profiler.files.read_trace import read_trace
from warpbook_profiler.model.bare_run import BareTimes
from warpbook_profiler.model.errors import TraceFileError
from warpbook_profiler.ranks.files import trace_files
from warpbook_profiler.report.ranks_job_words import job_lines
from warpbook_profiler.report.ranks_read import job_of, read_ranks
from warpbook_profiler.report.report import (
    SCHEMA_VERSION,
    JobReport,
    TraceReport,
    plain,
    report,
)
from warpbook_profiler.report.tables import as_lines
from warpbook_profiler.report.trace_view import view_of_trace
from warpbook_profiler.techniques.registry import checklist

#: a nanosecond, and a day
_LEAST_MS, _MOST_MS = 1e-6, 86_400_000.0


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "analyze",
        help="say what holds a profiled program back",
        description="Report on the Chrome trace of torch.profiler: what held the "
        "window back, the one change to try, and the figures. Several traces are "
        "taken as the ranks of one job.",
    )
    parser.add_argument(
        "traces",
        nargs="+",
        type=Path,
        metavar="TRACE",
        help=".json or .json.gz, or a folder of them; .sqlite of nsys export; .csv "
        "or .txt of ncu",
    )
    parser.add_argument(
        "--json", action="store_true", help="the whole report as JSON; times in ns"
    )
    parser.add_argument(
        "--bare-ms",
        type=_times_ms,
        metavar="MS[,MS...]",
        help="what the code of the one TRACE takes without the profiler, measured once "
        "or several times",
    )
    parser.add_argument(
        "--source",
        type=Path,
        metavar="FILE",
        help="the code of the one TRACE: changes then have its lines and names",
    )
    parser.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write the report of the one TRACE as one HTML file instead; it takes the "
        "place of a file that is there",
    )
    versus.add_options(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    versus.check_options(options.parser, options)
    options.traces = trace_files(options.traces)
    if options.is_own_process:
        hold(TRACES, inputs=len(options.traces) + 1)
    known = options.bare_ms is not None or options.source is not None
    if known and (len(options.traces) > 1 or options.vs is not None):
        options.parser.error("--bare-ms and --source are of one TRACE alone")
    if options.html is not None and (
        len(options.traces) > 1 or options.vs or options.json
    ):
        options.parser.error("--html is of one TRACE alone, without --vs and --json")
    if options.vs is not None:
        return versus.run(options)
    if len(options.traces) == 1 and looks_like_ncu(str(options.traces[0])):
        return _judge_kernels(options.traces[0], options.json)
    if options.html is not None:
        path = options.traces[0]
        with progress_line():
            read = profile_of(*_read(path, options))
        return _write_page(read, path, options.html)
    with progress_line():
        whole, names = _report(options)
    if options.json:
        sys.stdout.buffer.write(msgspec.json.encode(plain(whole)) + b"\n")
    else:
        width = terminal_width()
        print("\n".join(fitted(map(printable, _text(whole, names, width)), width)))
    return 0


def _report(options: argparse.Namespace) -> tuple[TraceReport | JobReport, list[str]]:
    """Give the report of one trace, or of several with their names in its order."""
    if options.bare_ms is not None or options.source is not None:
        return report(*_read(options.traces[0], options)), []
    ranks, left_out = read_ranks(options.traces)
    if len(ranks) == 1:
        return ranks[0].report, []
    return job_of(ranks, left_out)


def _read(path: Path, options: argparse.Namespace) -> tuple[Columns, Run]:
    """Read a trace, with what the command line tells of its code."""
    events, run = read_trace(str(path))
    source = None
    if options.source is not None:
        try:
            with options.source.open(encoding="utf-8") as file:
                source = file.read(MOST_CHARACTERS)
        except (OSError, UnicodeDecodeError) as error:
            raise TraceFileError(str(options.source), str(error)) from None
    bare = None
    if options.bare_ms is not None:
        times_ns = sorted(round(time_ms * 1e6) for time_ms in options.bare_ms)
        bare = BareTimes(
            runs=len(times_ns),
            median_ns=round(statistics.median(times_ns)),
            least_ns=times_ns[0],
            most_ns=times_ns[-1],
            source="executions",
        )
    return events, replace(run, bare=bare, source=source)


def _times_ms(text: str) -> list[float]:
    """Read times with commas between them.

    Raises:
        argparse.ArgumentTypeError: one is no time.
    """
    try:
        times_ms = [float(part) for part in text.split(",")]
    except ValueError:
        times_ms = []
    if not times_ms or not all(_LEAST_MS <= time_ms < _MOST_MS for time_ms in times_ms):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time in ms: write 2.82, or 2.82,2.79,2.9 for several runs."
        )
    return times_ms


def _text(
    whole: TraceReport | JobReport, files: list[str], width: int | None
) -> Iterator[str]:
    """Write a report; the files are of its ranks, in their order."""
    if isinstance(whole, TraceReport):
        yield from report_lines(view_of_trace(whole, LABS), width=width)
        return
    numbers = {rank.rank for rank in whole.ranks}
    are_ranks = None not in numbers and len(numbers) == len(whole.ranks)
    names = [str(rank.rank) for rank in whole.ranks] if are_ranks else files
    kind = "rank" if are_ranks else "trace"
    yield from job_lines(whole, names, kind)
    for name, rank in zip(names, whole.ranks, strict=True):
        yield ""
        yield f"Rank {name}" if are_ranks else name
        yield from report_lines(view_of_trace(rank, LABS), width=width)


def _write_page(read: FileProfile, trace: Path, target: Path) -> int:
    """Write the file and say where it is.

    Raises:
        CommandError: it can't be written.
    """
    answers = checklist(read.profile, read.run.source)
    page = report_page(read.profile, answers, trace.name, f"Trace file {trace.name}.")
    try:
        target.write_bytes(page.encode("utf-8", "replace"))
    except OSError as error:
        raise CommandError(
            f"The report can't be written to {target}: {error}."
        ) from None
    print(f"The report is in {target}.")
    return 0


def _judge_kernels(path: Path, as_json: bool) -> int:
    """Print what limits each kernel.

    Raises:
        TraceFileError: it is no output of Nsight Compute, or can't be read.
    """
    limits = kernel_limits(read_ncu(str(path)))
    if as_json:
        document = {
            "schema": "warpbook.kernels",
            "version": SCHEMA_VERSION,
            "kernels": limits,
        }
        sys.stdout.buffer.write(msgspec.json.encode(document) + b"\n")
    else:
        print(joined(_lines(limits)))
    return 0


def _lines(limits: Sequence[KernelLimit]) -> Iterator[str]:
    yield heading(limits)
    yield from as_lines([limit_table(limits)])
    yield ""
    yield from limiter_lines(limits)

"""`warpbook analyze`: the report of trace files that torch.profiler wrote."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from warpbook_monitors import units
from warpbook_monitors.plain_text import aligned, joined
from warpbook_monitors.trace.chrome import read_chrome_trace
from warpbook_monitors.trace.figures import Metrics
from warpbook_monitors.trace.report import JobReport, TraceReport, merge, report

_ROWS = 10
_NAME_WIDTH = 60


def add_command(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "analyze",
        help="say what holds a profiled program back",
        description="Report on the Chrome trace of torch.profiler: what held the "
        "window back, the one change to try, and the figures. Several traces are "
        "taken as the ranks of one job.",
    )
    parser.add_argument(
        "traces", nargs="+", type=Path, metavar="TRACE", help=".json or .json.gz"
    )
    parser.add_argument(
        "--json", action="store_true", help="the whole report as JSON; times in ns"
    )
    parser.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """Read, analyse and print."""
    reports = [report(*read_chrome_trace(str(path))) for path in asked.traces]
    whole = reports[0] if len(reports) == 1 else merge(reports)
    if asked.json:
        sys.stdout.buffer.write(msgspec.json.encode(whole) + b"\n")
    else:
        files = [path.name for path in asked.traces]
        names = {id(each): name for each, name in zip(reports, files, strict=True)}
        print(joined(_text(whole, names)))
    return 0


def _text(whole: TraceReport | JobReport, files: dict[int, str]) -> Iterator[str]:
    """Write a report; the files are the traces', by the identity of their reports."""
    if isinstance(whole, TraceReport):
        yield from _one(whole)
        return
    numbers = {each.rank for each in whole.ranks}
    are_ranks = None not in numbers and len(numbers) == len(whole.ranks)
    names = [str(each.rank) if are_ranks else files[id(each)] for each in whole.ranks]
    kind = "rank" if are_ranks else "trace"
    yield f"{len(names)} {kind}s. {whole.communication.sentence}"
    rows = [(kind, "window", "computing", "communicating", "exposed")]
    for name, each in zip(names, whole.ranks, strict=True):
        figures = each.metrics
        rows.append(
            (
                name,
                _ms(figures.window_ns),
                _ms(figures.compute_ns),
                _ms(figures.communication_ns),
                _ms(figures.exposed_communication_ns),
            )
        )
    yield from aligned(rows)
    for name, each in zip(names, whole.ranks, strict=True):
        yield ""
        yield f"Rank {name}" if are_ranks else name
        yield from _one(each)


def _one(found: TraceReport) -> Iterator[str]:
    yield f"{found.verdict.kind}: {found.verdict.sentence}"
    for warning in found.completeness.warnings:
        yield f"! {warning}"
    yield ""
    for each in found.findings:
        best = "" if each.bound_ns is None else f" At best {_ms(each.bound_ns)}."
        yield f"{each.share:4.0%}  {each.kind}: {each.evidence}{best}"
    yield ""
    yield from _figures(found)
    kernels = [
        (_cut(row.name), f"{row.calls:,}", units.duration(row.time_ms))
        for row in found.kernels[:_ROWS]
    ]
    copies = [
        (_cut(row.kind), f"{row.calls:,}", units.duration(row.time_ms))
        for row in found.copies[:_ROWS]
    ]
    for title, rows in (("Kernels", kernels), ("Copies", copies)):
        if rows:
            yield ""
            yield from aligned([(title, "calls", "time"), *rows])


def _figures(found: TraceReport) -> Iterator[str]:
    figures, idle = found.metrics, found.metrics.idle
    whole = found.completeness
    rows = [
        ("GPU", found.gpu or "not known"),
        ("Window", _ms(figures.window_ns)),
        ("  of it the profiler's own", _ms(whole.profiler_ns)),
        ("GPU busy", _ms(figures.gpu_busy_ns)),
        ("GPU idle: waiting for the host", _ms(idle.host_wait_ns)),
        ("GPU idle: between kernels", _ms(idle.kernel_wait_ns)),
        ("GPU idle: other", _ms(idle.other_ns)),
        ("Launches, matched", f"{whole.launches:,}, {whole.matched:,}"),
        ("Tensor cores, of kernel time", _tensor(figures)),
        ("Occupancy, estimated", _share(figures.occupancy_share)),
        ("FLOPs, modelled", _flops(figures)),
        ("Synchronizations", f"{figures.synchronizations:,}"),
    ]
    yield from aligned(rows)


def _tensor(figures: Metrics) -> str:
    told = _share(figures.tensor_core_share)
    if figures.tensor_core_unknown_ns and figures.kernel_time_ns:
        unknown = figures.tensor_core_unknown_ns / figures.kernel_time_ns
        told += f" ({unknown:.0%} not known)"
    return told


def _flops(figures: Metrics) -> str:
    if figures.flops is None:
        return "not known (record_shapes was off)"
    return f"{figures.flops:.3g} in {_share(figures.modelled_share)} of kernel time"


def _share(ratio: float | None) -> str:
    return "not known" if ratio is None else units.share(ratio)


def _ms(nanoseconds: int) -> str:
    return units.duration(nanoseconds / 1e6)


def _cut(name: str) -> str:
    return name if len(name) <= _NAME_WIDTH else name[: _NAME_WIDTH - 1] + "…"

"""What is counted without a GPU, beside a trace of the same case on one.

pytest -m gpu -s tests/gpu/test_labs_host_trace.py

The simulated GPU counts launches, copies and their bytes, and how much of its copies
lies beside computing; the profiler records what a real one did. References and starters
of all labs on the simulated GPU are compared, with a case that the learner sees.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from warpbook_labs.cases.sampling import DrawnCase, public_cases
from warpbook_labs.engines.simulated.checking import check_host
from warpbook_labs.gpu.gpu import find_gpu
from warpbook_labs.gpu.parent import run_child
from warpbook_labs.gpu.tracing import RUNS, Answer, TraceRequest
from warpbook_labs.lab.loaded import LoadedLab, Submission
from warpbook_labs.lab.loader import load_all
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.report.report import TraceReport, report

pytestmark = pytest.mark.gpu

LABS = [
    name
    for name, loaded in load_all().items()
    if loaded.lab.host is not None and loaded.lab.host.without_gpu == "simulated"
]
_MARKS = ("HtoD", "DtoH")


class Compared(NamedTuple):
    """Of one call of `run`."""

    name: str
    counted: float
    traced: float


def traced(loaded: LoadedLab, text: str, case: DrawnCase, folder: Path) -> TraceReport:
    trace = folder / "t.trace.json.gz"
    request = TraceRequest(
        str(loaded.folder), text, case, str(trace), str(folder / "t.jsonl.gz")
    )
    given = msgspec.msgpack.encode(request)
    child = run_child("warpbook_labs.engines.host.tracing", given, find_gpu().uuid, 120)
    answer = msgspec.json.decode(child.stdout, type=Answer)
    assert answer.problem == ""
    return report(*read_chrome_trace(str(trace)))


def compared(loaded: LoadedLab, text: str, folder: Path) -> list[Compared]:
    case = public_cases(loaded.lab)[-1]
    done = check_host(Submission(loaded, text), [case])
    counts = done.cases[0].host_counts if done.cases else None
    assert counts is not None, done.message
    trace = traced(loaded, text, case, folder)
    over_link = [
        copy for copy in trace.copies if any(mark in copy.kind for mark in _MARKS)
    ]
    kernels = sum(kernel.calls for kernel in trace.kernels)
    size_bytes = sum(copy.size_bytes or 0 for copy in over_link)
    simulated_busy_ns = counts.copy_ns + counts.compute_ns
    metrics = trace.metrics
    beside = 0.0
    if metrics.copy_ns:
        beside = metrics.copy_compute_overlap_ns / metrics.copy_ns
    return [
        Compared("kernels, without a graph's", counts.launches, kernels / RUNS),
        Compared("copies", counts.copies, sum(e.calls for e in over_link) / RUNS),
        Compared("bytes", counts.h2d_bytes + counts.d2h_bytes, size_bytes / RUNS),
        Compared(
            "all engines' time over the whole, percent",
            100 * simulated_busy_ns / max(counts.total_ns, 1),
            100 * (metrics.copy_ns + metrics.compute_ns) / metrics.window_ns,
        ),
        Compared("copies beside kernels, percent (traced only)", 0, 100 * beside),
    ]


@pytest.mark.parametrize("lab", LABS)
def test_counts_agree_with_a_trace(lab: str, tmp_path: Path) -> None:
    loaded = load_all()[lab]
    print("\n| source | of one call | counted | traced |")
    print("|---|---|---|---|")
    apart = []
    for name, text in loaded.correct.items():
        folder = tmp_path / name
        folder.mkdir()
        rows = compared(loaded, text, folder)
        for row in rows:
            print(f"| {name} | {row.name} | {row.counted:,.0f} | {row.traced:,.1f} |")
        by_name = {row.name: row for row in rows}
        size = by_name["bytes"]
        # what kernels themselves read over the link, no trace tells
        if by_name["copies"].counted and abs(size.counted - size.traced) > 0.01 * max(
            size.counted, 1
        ):
            apart.append((name, size))
        copies = by_name["copies"]
        if copies.counted != copies.traced:
            apart.append((name, copies))
    assert apart == []

"""How far a trace is believed: simulated programs whose trace was damaged afterwards.

The profiler's own doing (its buffer requests, its last wait for the GPU, the slow first
launch) is in every trace, and is never what held a program back.
"""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.profiler.trace.simulated import GPU, THREAD, Program
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.report.report import report
from warpbook_profiler.verdict.analysis import analyse

Event = dict[str, Any]
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
#: nothing waits and nothing is copied: an expert would call it compute-bound
CLEAR = {"sync_every": 0, "communication": 0.0, "copy_bytes": 4096}


def damaged(tmp_path: Path, change: Callable[[list[Event]], None]) -> str:
    program = Program(seed=3, **CLEAR)
    change(program.events)
    return program.write(tmp_path / "t.json")


def on_gpu(events: list[Event]) -> list[Event]:
    work = [event for event in events if event["cat"] in ON_GPU]
    return sorted(work, key=lambda event: event["ts"])


def drop(events: list[Event], lost: list[Event]) -> None:
    gone = {id(event) for event in lost}
    events[:] = [event for event in events if id(event) not in gone]


def overhead(
    at_us: float, dur_us: float, name: str = "Activity Buffer Request"
) -> Event:
    return {
        **{"ph": "X", "cat": "overhead", "name": name, "pid": -1, "tid": 0},
        **{"ts": at_us, "dur": dur_us},
    }


@pytest.mark.parametrize("of", [0.0, 0.01, 0.04])
def test_a_few_lost_launches_change_no_verdict(of: float, tmp_path: Path) -> None:
    whole = report(*read_chrome_trace(damaged(tmp_path, lambda _: None)))
    rng = random.Random(1)

    def lose(events: list[Event]) -> None:
        mine = on_gpu(events)
        drop(events, rng.sample(mine, int(of * len(mine))))

    trace_report = report(*read_chrome_trace(damaged(tmp_path, lose)))
    assert trace_report.verdict.kind == whole.verdict.kind == "compute-bound"
    lost = trace_report.completeness.lost
    assert lost == int(of * whole.completeness.launches)
    warnings = [
        warning
        for warning in trace_report.completeness.warnings
        if "is missing" in warning
    ]
    assert bool(warnings) == (of > 0.01)


@pytest.mark.parametrize(
    ("which", "said"),
    [
        (slice(None, None, 10), "Profile again"),
        (slice(0, 40), "after the GPU was idle"),
        (slice(-40, None), "buffer was probably full"),
    ],
)
def test_lost_launches_conclude_nothing_and_say_why(
    which: slice, said: str, tmp_path: Path
) -> None:
    path = damaged(tmp_path, lambda events: drop(events, on_gpu(events)[which]))
    trace_report = report(*read_chrome_trace(path))
    assert trace_report.verdict.kind == "unknown"
    assert "nothing can be concluded" in trace_report.verdict.sentence
    assert said in trace_report.verdict.sentence
    assert trace_report.findings == ()
    assert (
        trace_report.completeness.lost == len(range(400)[which])
        or trace_report.completeness.lost
    )
    # the same in the notebook and in the dashboard
    cell = analyse(*read_chrome_trace(path))
    assert cell.verdict == trace_report.verdict
    assert cell.completeness.refusal == trace_report.verdict.sentence


@pytest.mark.parametrize(
    ("kind", "is_refused"), [("cudaMemsetAsync", False), ("cudaLaunchKernel", True)]
)
def test_fills_that_were_not_recorded_cost_no_verdict(
    kind: str, is_refused: bool, tmp_path: Path
) -> None:
    """As CUPTI of CUDA 12.4 does with torch 2.6."""

    def spoil(events: list[Event]) -> None:
        last = max(
            event["args"].get("correlation", 0) for event in events if "args" in event
        )
        begin = min(event["ts"] for event in events if event["cat"] == "cuda_runtime")
        for at in range(60):
            events.append(
                {
                    **{"ph": "X", "cat": "cuda_runtime", "name": kind, "pid": 1},
                    **{"tid": THREAD, "ts": begin + 60.0 * at, "dur": 1.0},
                    "args": {"correlation": last + at + 1},
                }
            )

    trace_report = report(*read_chrome_trace(damaged(tmp_path, spoil)))
    assert trace_report.completeness.lost == 60
    assert (trace_report.verdict.kind == "unknown") == is_refused
    text = " ".join(trace_report.completeness.warnings)
    assert ("fills of memory" in text) != is_refused


@pytest.mark.parametrize(("wrong", "kind"), [(5, "compute-bound"), (60, "unknown")])
def test_times_that_cannot_be_conclude_nothing(
    wrong: int, kind: str, tmp_path: Path
) -> None:
    """What Kineto's clock does to a recording that is older than the newest one."""

    def spoil(events: list[Event]) -> None:
        calls = {
            event["args"]["correlation"]: event
            for event in events
            if event["cat"] == "cuda_runtime"
        }
        for event in on_gpu(events)[100 : 100 + wrong]:
            event["ts"] = calls[event["args"]["correlation"]]["ts"] - 50.0

    trace_report = report(*read_chrome_trace(damaged(tmp_path, spoil)))
    assert trace_report.completeness.corrupt == wrong
    assert trace_report.verdict.kind == kind
    assert any(
        "their times are wrong" in warning
        for warning in trace_report.completeness.warnings
    )


def test_a_window_that_is_mostly_the_profilers_concludes_nothing(
    tmp_path: Path,
) -> None:
    def slow_down(events: list[Event]) -> None:
        last = max(event["ts"] + event["dur"] for event in events)
        for event in events:
            if event["cat"] != "Trace" and event["ts"] > 1000:
                event["ts"] += 5 * last
            if event["cat"] == "Trace":
                event["dur"] += 5 * last
        events.append(overhead(1000, 5 * last))

    trace_report = report(*read_chrome_trace(damaged(tmp_path, slow_down)))
    assert trace_report.verdict.kind == "unknown"
    assert "was the profiler's own work" in trace_report.verdict.sentence


def test_the_profilers_own_doing_is_never_the_verdict(tmp_path: Path) -> None:
    """Together a third of the window."""
    program = Program(seed=3, **CLEAR)
    share_us = program.window_ns / 1000 / 6
    for event in program.events:
        if event["cat"] != "Trace":
            # it begins with a slow launch: the profiler asks for its first buffer
            event["ts"] += share_us
    end = max(event["ts"] + event["dur"] for event in program.events)
    program.events += [
        overhead(60.0, share_us - 20),
        # and ends with a wait: it asks the GPU for what it has recorded
        {
            **{"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize"},
            **{"pid": 1, "tid": THREAD, "ts": end + 10, "dur": share_us - 20},
            "args": {"correlation": 9_999_999},
        },
    ]
    (trace,) = [event for event in program.events if event["cat"] == "Trace"]
    trace["dur"] += 2 * share_us
    trace_report = report(*read_chrome_trace(program.write(tmp_path / "t.json")))
    assert trace_report.verdict.kind == "compute-bound"
    assert trace_report.metrics.idle.profiler_ns > 0.9 * 2 * share_us * 1000
    assert (
        sum(
            finding.share
            for finding in trace_report.findings
            if finding.kind == "sync-bound"
        )
        == 0
    )
    assert any(
        "profiler's own work" in warning
        for warning in trace_report.completeness.warnings
    )


def test_counts_are_told_of_every_rank(tmp_path: Path) -> None:
    path = damaged(tmp_path, lambda events: drop(events, on_gpu(events)[:7]))
    completeness = report(*read_chrome_trace(path)).completeness
    assert completeness.launches == completeness.matched + completeness.lost
    assert completeness.lost == 7
    assert json.loads(Path(path).read_text())["traceEvents"]


def test_the_first_launch_under_the_profiler_is_no_fault_of_the_code(
    tmp_path: Path,
) -> None:
    """A kernel of 250 µs, and CUPTI sets itself up in its launch, as on an H200."""

    def event(category: str, name: str, at: float, dur: float, **args: int) -> Event:
        fields = {"ph": "X", "cat": category, "name": name, "ts": at, "dur": dur}
        return {**fields, "pid": 1, "tid": THREAD, "args": args}

    def profiler_and_host_ns(first_launch_us: float) -> tuple[int, int]:
        end = 1510 + first_launch_us
        call, gpu = "cudaLaunchKernel", {"device": 0, "stream": 7}
        events = [
            event("cpu_op", "aten::add", 0.0, end),
            overhead(0.0, 1500.0),
            event("cuda_runtime", call, 1510, first_launch_us, correlation=1),
            event("kernel", "k", end, 250, correlation=1, **gpu),
            event("cuda_runtime", call, end + 10, 5, correlation=2),
            event("kernel", "k", end + 250, 250, correlation=2, **gpu),
        ]
        path = tmp_path / "t.json"
        trace = {"deviceProperties": [GPU], "traceEvents": events}
        path.write_text(json.dumps(trace))
        trace_report = report(*read_chrome_trace(str(path)))
        return (
            trace_report.metrics.idle.profiler_ns,
            trace_report.metrics.idle.host_wait_ns,
        )

    # what is left is a launch's usual time, and the way there
    assert profiler_and_host_ns(first_launch_us=330.0) == (1500_000 + 325_000, 15_000)
    # no more than CUPTI is known to take; the rest is the code's, as loading a kernel
    assert profiler_and_host_ns(first_launch_us=5000.0) == (
        1500_000 + 400_000,
        4_610_000,
    )

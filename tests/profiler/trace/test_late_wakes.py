"""A busy host lets a thread that waits for the GPU wake up late: no work is missing."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.profiler.trace.written import call, kernel, report_of, trace

Event = dict[str, Any]
EXAM = Path(__file__).parents[2] / "data" / "exam" / "h100"
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
WAIT = re.compile("cuda(Device|Stream)Synchronize")
LATE_US = 4000.0
MS = 1_000_000


def recorded(cell: str) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(
        gzip.decompress((EXAM / f"{cell}.json.gz").read_bytes())
    )
    return whole


def wake_late(whole: dict[str, Any]) -> None:
    """Let the longest wait return later, and with it all that the host did then."""
    events = [event for event in whole["traceEvents"] if "ts" in event]
    waits = (event for event in events if WAIT.match(event["name"]))
    wait = max(waits, key=lambda event: event["dur"])
    woke_us = wait["ts"] + wait["dur"]
    for event in events:
        ends_us = event["ts"] + event.get("dur", 0.0)
        if event["ts"] >= woke_us:
            event["ts"] += LATE_US
        elif event.get("cat") not in ON_GPU and ends_us >= woke_us:
            event["dur"] = event.get("dur", 0.0) + LATE_US


@pytest.mark.parametrize(
    "cell",
    [
        "attention_by_hand",
        "fp32_linear_stack",
        "item_before_work_of_the_host",
        "loader_in_the_main_process",
        "round_trip_by_the_cpu",
        "small_mlp",
    ],
)
def test_a_verdict_does_not_depend_on_a_late_wake(cell: str, tmp_path: Path) -> None:
    whole = recorded(cell)
    before = report_of(tmp_path, json.dumps(whole).encode())
    wake_late(whole)
    after = report_of(tmp_path, json.dumps(whole).encode())
    assert before.bare and after.bare
    assert after.verdict.kind == before.verdict.kind != "unknown"
    assert after.completeness.warnings == before.completeness.warnings
    assert abs(after.bare.time_ns - before.bare.time_ns) < MS / 4


@pytest.mark.parametrize("late", [False, True])
def test_a_kernel_without_a_record_concludes_nothing(
    late: bool, tmp_path: Path
) -> None:
    whole = recorded("fp32_linear_stack")
    kernels = (one for one in whole["traceEvents"] if one.get("cat") == "kernel")
    whole["traceEvents"].remove(max(kernels, key=lambda one: float(one["ts"])))
    if late:
        wake_late(whole)
    one = report_of(tmp_path, json.dumps(whole).encode())
    assert one.verdict.kind == "unknown"
    assert "1 of 4 launches was not recorded" in one.verdict.sentence


def test_one_lost_launch_of_many_may_be_what_is_waited_for(tmp_path: Path) -> None:
    launches = [call(at, 10.0 * at) for at in range(1, 101)]
    kernels = [kernel(at, 10.0 * at + 6) for at in range(1, 100)]
    wait = call(900, 1020.0, name="cudaDeviceSynchronize", dur=8000.0)
    lost = report_of(tmp_path, trace(*launches, *kernels, wait))
    assert "work is missing" in lost.verdict.sentence
    whole = trace(*launches, *kernels, kernel(100, 1006.0), wait)
    assert "work is missing" not in report_of(tmp_path, whole).verdict.sentence


def waited_late(name: str, *others: Event) -> bytes:
    """Give a graph of ten pieces, and a wait that returns 8 ms after the last."""
    events = [call(1, 0.0, name=name), *others]
    events += [kernel(1, 20.0 + 10 * at, dur=8.0) for at in range(10)]
    return trace(*events, call(9, 30.0, name="cudaStreamSynchronize", dur=8000.0))


def test_a_graph_that_other_work_of_its_stream_follows_hides_nothing(
    tmp_path: Path,
) -> None:
    """The work behind it would have begun later."""
    alone = report_of(tmp_path, waited_late("cudaGraphLaunch"))
    behind = call(2, 5.0), kernel(2, 122.0, dur=8.0)
    followed = report_of(tmp_path, waited_late("cudaGraphLaunch", *behind))
    again = [call(2, 5.0, name="cudaGraphLaunch")]
    again += [kernel(2, 122.0 + 10 * at, dur=8.0) for at in range(10)]
    repeated = report_of(tmp_path, waited_late("cudaGraphLaunch", *again))
    assert "work is missing" in alone.verdict.sentence
    assert "work is missing" not in followed.verdict.sentence
    assert "work is missing" not in repeated.verdict.sentence


def test_waits_that_all_return_late_are_the_machines(tmp_path: Path) -> None:
    """Where each takes as long, so do those of the next run."""
    events = []
    for at in range(20):
        begin = 1000.0 * at
        events += [call(2 * at + 1, begin), kernel(2 * at + 1, begin + 8, dur=20.0)]
        wait = {"name": "cudaStreamSynchronize", "dur": 600.0}
        events.append(call(2 * at + 2, begin + 10, **wait))
    one = report_of(tmp_path, trace(*events), untaxed=True)
    assert one.verdict.kind == "sync-bound"

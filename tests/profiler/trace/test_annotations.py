"""Parts of a program that it names itself: rows of the timeline, times in a table."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.profiler.trace.written import call, kernel, report_of, trace
from warpbook_profiler.events.columns import Category
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.report.report import report
from warpbook_profiler.timeline.timeline import Timeline
from warpbook_profiler.timeline.timeline_body import pack, unpack

DDP = Path(__file__).parents[2] / "data" / "traces" / "ddp_rank0.json.gz"


def part(name: str, at: float, duration: float, **more: Any) -> dict[str, Any]:
    return {
        **{"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 1},
        **{"ts": at, "dur": duration, "args": {"External id": 5}},
        **more,
    }


def test_parts_of_a_real_trace_have_lanes_with_their_names() -> None:
    timeline = Timeline(unpack(pack(*read_chrome_trace(str(DDP)))))
    parts = [
        (row.label, columns)
        for row, columns in zip(timeline.rows, timeline.columns, strict=True)
        if row.kind == "annotation"
    ]
    names = {
        label: {timeline.names[at] for at in columns.name} for label, columns in parts
    }
    # above their stream; of the host above its operators
    labels = [row.label for row in timeline.rows]
    at = labels.index("Annotations, Stream 17")
    assert labels[at + 1] == "Stream 17"
    assert names["Annotations, Stream 17"] == {"nccl:all_reduce"}
    assert "DistributedDataParallel.forward" in names["Annotations, Stream 7"]
    assert any("Annotations" == label.split(",")[0] for label in labels)


def test_a_gpu_is_not_busy_with_a_part_of_a_program() -> None:
    events, run = read_chrome_trace(str(DDP))
    trace_report = report(events, run)
    without = events.where(~events.is_in(Category.GPU_ANNOTATION))
    assert report(without, run).metrics == trace_report.metrics


def test_host_and_gpu_time_of_a_real_part() -> None:
    trace_report = report(*read_chrome_trace(str(DDP)))
    rows = {row.name: row for row in trace_report.annotations}
    optimizer = rows["Optimizer.step#SGD.step"]
    assert optimizer.times == 1
    assert optimizer.host_ns > 0
    # Kineto's own span of it on the GPU is 0.429 ms, gaps included
    assert optimizer.gpu_ns == pytest.approx(420_000, abs=20_000)
    assert optimizer.work is not None and optimizer.work > 0


def test_nested_parts_count_once_and_steps_are_one(tmp_path: Path) -> None:
    content = trace(
        part("train", 0.0, 100.0),
        part("train", 10.0, 20.0),
        part("ProfilerStep#1", 0.0, 50.0),
        part("ProfilerStep#2", 50.0, 50.0),
        call(1, 12.0),
        kernel(1, 40.0),
        # of another part's thread
        part("other", 0.0, 90.0, tid=2),
        call(2, 60.0, tid=2),
        kernel(2, 70.0),
        # of a thread that names nothing, as autograd's
        call(3, 80.0, tid=3),
        kernel(3, 90.0),
    )
    rows = {row.name: row for row in report_of(tmp_path, content).annotations}
    assert rows["train"].times == 2
    assert rows["train"].host_ns == 100_000
    assert rows["train"].work == 2
    assert rows["train"].gpu_ns == 4000
    assert rows["ProfilerStep#"].times == 2
    assert rows["other"].work == 2


def test_gpu_time_is_not_known_without_a_gpu(tmp_path: Path) -> None:
    content = json.dumps({"traceEvents": [part("load", 0.0, 1000.0)]}).encode()
    (row,) = report_of(tmp_path, content).annotations
    assert row.gpu_ns is None and row.work is None


@pytest.mark.parametrize("pid", ["GPU", 2**62, -7, None])
def test_a_part_on_a_gpu_that_there_is_not_costs_no_trace(
    tmp_path: Path, pid: object
) -> None:
    lie = part("x", 30.0, 10.0, cat="gpu_user_annotation", pid=pid, tid=7)
    path = tmp_path / "t.json"
    path.write_bytes(trace(call(1, 10.0), kernel(1, 40.0), lie))
    events, run = read_chrome_trace(str(path))
    assert unpack(pack(events, run)).tracks
    assert report(events, run).metrics.kernels == 1

"""Traces of other versions of torch, of other vendors' GPUs, and of other tools."""

from pathlib import Path

import pytest

from tests.profiler.trace.simulated import GPU
from tests.profiler.trace.written import call, kernel, program, report_of, trace
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.errors import TraceFileError
from warpbook_profiler.report.report import report
from warpbook_profiler.verdict.analysis import analyse


def test_an_older_versions_words_and_strings_are_understood(tmp_path: Path) -> None:
    """Categories were other words, and numbers were strings."""
    launch = call(1, 0.0, cat="Runtime", tid="31337")
    launch["args"] = {"correlation": "1", "cbid": "211"}
    work = kernel(1, 6.0, cat="Kernel", tid="stream 7", ts="6.0")
    work["args"] = {"device": "0", "stream": "7", "correlation": "1"}
    operator = call(0, 0.0, cat="Operator", name="aten::add")
    del operator["args"]
    trace_report = report_of(tmp_path, trace(launch, work, operator))
    assert trace_report.completeness.matched == 1
    assert trace_report.metrics.streams[0].stream == 7
    assert trace_report.metrics.gpu_busy_ns == 2000


def test_what_a_newer_version_adds_is_passed_over(tmp_path: Path) -> None:
    more = {"occupancy": {"limits": [{}, {}]}, "graph": [1, [2]], "new": None}
    work = kernel(1, 6.0, args=more, id=4, tts=1.0)
    sync = call(9, 0.0, cat="cuda_sync", name="Stream Sync")
    trace_report = report_of(tmp_path, trace(call(1, 0.0), work, sync, schemaVersion=9))
    assert trace_report.metrics.kernels == 1


def test_times_since_1970_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    """Before torch 2.3 a file had no base, and whole microseconds."""
    begin = 1_790_857_026_000_001
    events = [
        {**event, "ts": begin + int(event["ts"]), "dur": int(event["dur"])}
        for event in program()
    ]
    path = tmp_path / "t.json"
    path.write_bytes(trace(*events, baseTimeNanoseconds=0))
    columns, _ = read_chrome_trace(str(path))
    assert columns.start_ns.tolist() == [int(event["ts"]) * 1000 for event in events]
    since = report_of(tmp_path, trace(*program())).metrics
    assert report(*read_chrome_trace(str(path))).metrics == since


def test_threads_named_by_words_stay_apart(tmp_path: Path) -> None:
    """An operator that encloses another's launch in time, on another thread."""
    events = [
        call(0, 0.0, cat="cpu_op", name="aten::mm", tid="main", dur=100.0),
        call(0, 10.0, cat="cpu_op", name="aten::item", tid="autograd", dur=50.0),
        call(1, 20.0, tid="main"),
        kernel(1, 30.0),
    ]
    path = tmp_path / "t.json"
    path.write_bytes(trace(*events))
    (row,) = analyse(*read_chrome_trace(str(path))).paths
    assert row.path == "aten::mm"


def test_a_threads_number_may_be_a_text(tmp_path: Path) -> None:
    """In torch 1.9 it was for operators and calls."""
    operator = call(0, 0.0, cat="Operator", name="aten::mm", tid="24572", dur=100.0)
    launch = call(1, 20.0, cat="Runtime", tid=24572)
    path = tmp_path / "t.json"
    path.write_bytes(trace(operator, launch, kernel(1, 30.0, tid="stream 7")))
    (row,) = analyse(*read_chrome_trace(str(path))).paths
    assert row.path == "aten::mm"


def test_calls_of_hip_are_understood(tmp_path: Path) -> None:
    """torch writes them on AMD's GPUs, whose occupancy goes by other rules."""
    gpu = {**GPU, "name": "AMD Instinct MI300X", "warpSize": 64}
    launches = {"name": "hipExtModuleLaunchKernel"}
    shape = {"grid": [304, 1, 1], "block": [256, 1, 1], "registers per thread": 32}
    copy = kernel(99, 1210.0, cat="gpu_memcpy", name="CopyDeviceToHost")
    trace_report = report_of(
        tmp_path,
        trace(
            *program(**launches),
            call(50, 1000.0, **launches),
            kernel(50, 1006.0, args=shape),
            call(99, 1200.0, name="hipMemcpyWithStream", dur=20.0),
            copy,
            call(100, 1300.0, name="hipDeviceSynchronize", dur=9.0),
            deviceProperties=[gpu],
        ),
        untaxed=True,
    )
    assert trace_report.verdict.kind == "launch-bound"
    assert (trace_report.completeness.launches, trace_report.completeness.lost) == (
        51,
        0,
    )
    # the last wait is the profiler's own
    assert trace_report.metrics.synchronizations == 1
    assert [one.direction for one in trace_report.metrics.copies] == ["DtoH"]
    assert trace_report.metrics.occupancy_share is None


def test_work_without_any_call_leaves_the_idle_time_unexplained(
    tmp_path: Path,
) -> None:
    """As of a profiler that records the GPU alone."""
    kernels = [event for event in program() if event["cat"] == "kernel"]
    idle = {**call(0, 0.0), "cat": "cpu_op", "name": "aten::ones", "args": {}}
    trace_report = report_of(tmp_path, trace(idle, *kernels))
    assert trace_report.verdict.kind == "unknown"
    assert "no call that launched it" in trace_report.verdict.sentence
    assert trace_report.metrics.gpu_busy_ns == 49 * 2000


def test_calls_and_work_without_correlation_are_not_taken_for_each_other(
    tmp_path: Path,
) -> None:
    events = [
        {
            **event,
            "args": {"device": 0, "stream": 7} if event["cat"] == "kernel" else {},
        }
        for event in program()
    ]
    copy = {**kernel(0, 2000.0), "cat": "gpu_memcpy", "args": {"stream": 7}}
    copy["name"] = "Memcpy DtoH (Device -> Pageable)"
    trace_report = report_of(tmp_path, trace(*events, copy))
    assert (trace_report.completeness.launches, trace_report.completeness.matched) == (
        49,
        0,
    )
    assert trace_report.metrics.synchronizations == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'[{"ph": "X", "name": "f", "ts": 0, "dur": 1}]', "another tool"),
        # VizTracer, XLA
        (
            b'{"traceEvents": [{"ph": "X", "cat": "FEE", "ts": 0, "dur": 1}]}',
            "another tool",
        ),
        (
            b'{"traceEvents": [{"ph": "X", "name": "fusion.1", "ts": 0, "dur": 1}]}',
            "another tool",
        ),
        # pyinstrument, a notebook
        (b'{"cells": [], "metadata": {}}', "no list of events"),
        # Nsight Systems, Perfetto, SQLite
        (b"SQLite format 3\0" + bytes(range(256)) * 40, "malformed"),
        (b"\x0a\x94\x01\x12" * 1000, "malformed"),
    ],
)
def test_a_file_of_another_tool_is_told_in_words(
    content: bytes, said: str, tmp_path: Path
) -> None:
    with pytest.raises(TraceFileError, match=said):
        report_of(tmp_path, content)


@pytest.mark.parametrize(
    "change",
    [
        {},
        # as torch 1.8 to 1.12 wrote it
        {b"External id": b"external id"},
        # ids of 64 bits without a sign, and "none" of other tools
        {b'"External id": 4': b'"External id": 18446744073709551612'},
        {b'"External id": 4': b'"External id": null'},
        {b'"stream": 7': b'"stream": null'},
        {b"{": b"\xef\xbb\xbf{"},
    ],
    ids=["as ever", "older", "unsigned", "null", "no stream", "byte order mark"],
)
def test_what_other_versions_and_tools_write_is_read(
    change: dict[bytes, bytes], tmp_path: Path
) -> None:
    operator = call(0, 100.0, cat="cpu_op", name="aten::mm", dur=50.0)
    operator["args"] = {"External id": 4}
    operator["args"] |= {"Input Dims": [[8, 8], [8, 8]], "Input type": ["float"] * 2}
    launch = call(9, 110.0)
    launch["args"]["External id"] = 4
    work = kernel(9, 120.0, args={"External id": 4})
    content = trace(operator, launch, work)
    for old, new in change.items():
        # the operator's key is the newer one in all versions
        head, sep, rest = content.partition(b"cuda_runtime")
        content = (
            head + sep + rest.replace(old, new)
            if old == b"External id"
            else content.replace(old, new, 1 if old == b"{" else -1)
        )
    trace_report = report_of(tmp_path, content)
    assert (trace_report.completeness.launches, trace_report.completeness.matched) == (
        1,
        1,
    )
    assert trace_report.metrics.flops == 2 * 8**3

"""Traces unlike the samples: other orders, versions, tools, names, and sizes."""

import gzip
import json
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.monitors.trace.simulated import BASE_NS, GPU, Program
from warpbook_monitors.trace import chrome_events, chrome_file
from warpbook_monitors.trace.analysis import analyse
from warpbook_monitors.trace.chrome import read_chrome_trace
from warpbook_monitors.trace.errors import TraceFileError
from warpbook_monitors.trace.report import TraceReport, report

TRACES = Path(__file__).parents[2] / "data" / "traces"
SAMPLES = sorted(path.name for path in TRACES.iterdir())


def call(correlation: int, at: float, **more: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "cudaLaunchKernel",
        "pid": 1,
        "tid": 1,
        "ts": at,
        "dur": 4.0,
        "args": {"correlation": correlation},
        **more,
    }


def kernel(correlation: int, at: float, **more: Any) -> dict[str, Any]:
    args = {"device": 0, "stream": 7, "correlation": correlation}
    return {
        "ph": "X",
        "cat": "kernel",
        "name": "k",
        "pid": 0,
        "tid": 7,
        "ts": at,
        "dur": 2.0,
        **more,
        "args": args | more.get("args", {}),
    }


def trace(*events: dict[str, Any], **more: Any) -> bytes:
    head = {"deviceProperties": [GPU], "baseTimeNanoseconds": BASE_NS}
    return json.dumps({**head, "traceEvents": events, **more}).encode()


def told(tmp_path: Path, content: bytes) -> TraceReport:
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    return report(*read_chrome_trace(str(path)))


def everything(path: Path) -> bytes:
    """The whole report with its timeline, to be compared."""
    columns, run = read_chrome_trace(str(path))
    both = (analyse(columns, run), report(columns, run))
    return msgspec.json.encode(both)


@pytest.fixture
def tiny_pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(chrome_file, "PIECE_BYTES", 700)
    return None


@pytest.mark.parametrize("name", SAMPLES)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
    max_examples=3,
)
@given(seed=st.integers(0, 2**32))
def test_the_order_of_the_events_changes_nothing(
    name: str, seed: int, tmp_path: Path
) -> None:
    content = json.loads(gzip.decompress((TRACES / name).read_bytes()))
    random.Random(seed).shuffle(content["traceEvents"])
    (tmp_path / "t.json").write_text(json.dumps(content))
    assert everything(tmp_path / "t.json") == everything(TRACES / name)


@pytest.mark.usefixtures("tiny_pieces")
@pytest.mark.parametrize("layout", [{}, {"indent": 1}, {"separators": (",", ":")}])
def test_where_a_file_is_cut_into_pieces_changes_nothing(
    layout: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = json.loads(gzip.decompress((TRACES / SAMPLES[0]).read_bytes()))
    for number, event in enumerate(content["traceEvents"]):
        if number % 3 == 0 and "args" in event:
            # what looks like the end of an event, and is none
            event["args"]["note"] = '}, {"ph": "X"}, {'
            event["args"]["list"] = [{"a": 1}, {"b": [{}, {}]}, {"traceEvents": []}]
        if number % 5 == 0:
            event["name"] += '},{"traceEvents":[{},{'
    # and what stands beside the events may stand after them
    content["deviceProperties"] = content.pop("deviceProperties") * 30
    content["more"] = [{"traceEvents": [{}, {}]}, {}] * 30
    path = tmp_path / "t.json"
    path.write_text(json.dumps(content, **layout))
    in_pieces = everything(path)
    monkeypatch.setattr(chrome_file, "PIECE_BYTES", 10**9)
    assert in_pieces == everything(path)


@pytest.mark.usefixtures("tiny_pieces")
@pytest.mark.parametrize("kept", [0.01, 0.3, 0.5, 0.9, 0.999])
def test_a_plain_file_cut_off_is_refused(kept: float, tmp_path: Path) -> None:
    whole = gzip.decompress((TRACES / "train_fp32.json.gz").read_bytes())
    with pytest.raises(TraceFileError, match=r"no trace of torch\.profiler: "):
        told(tmp_path, whole[: int(kept * len(whole))])


@pytest.mark.parametrize(
    "name",
    [
        b"<script>alert(1)</script>",
        b'say \\"hello\\" \\\\ C:\\\\temp',
        b"line\nbreak\tand\x1b[2J",
        b"not \xff\xfe UTF-8",
        b"half a pair \\ud83d.",
        "名前 🚀".encode(),
        b"x" * 100_000,
        b"",
    ],
)
def test_any_name_is_read(name: bytes, tmp_path: Path) -> None:
    content = trace(call(1, 0.0), kernel(1, 9.0)).replace(b'"k"', b'"' + name + b'"')
    try:
        found = told(tmp_path, content)
    except TraceFileError as refusal:
        # the JSON itself is broken
        assert b"\\ud83d" in name, refusal
        return
    (row,) = found.kernels
    assert len(row.name) <= 300
    assert msgspec.json.decode(msgspec.json.encode(found))["kernels"][0]["calls"] == 1


def test_a_graphs_many_kernels_have_one_launch(tmp_path: Path) -> None:
    graph = call(5, 0.0, name="cudaGraphLaunch")
    kernels = [kernel(5, 10.0 + 3 * at) for at in range(800)]
    found = told(tmp_path, trace(graph, *kernels))
    whole = found.completeness
    assert (whole.launches, whole.matched, whole.lost) == (1, 1, 0)
    assert found.metrics.kernels == 800
    assert found.metrics.gpu_busy_ns == 800 * 2000
    # only the first was waited for
    assert found.metrics.launch.latency_ns == 6000
    assert found.metrics.idle.kernel_wait_ns == 10_000 + 799 * 1000


def test_kernels_of_a_microsecond_are_added_up_to_the_nanosecond(
    tmp_path: Path,
) -> None:
    events = []
    for at in range(1000):
        events += [
            call(at + 1, 10.0 * at),
            kernel(at + 1, 10.0 * at + 6.001, dur=1.003),
        ]
    found = told(tmp_path, trace(*events))
    assert found.metrics.gpu_busy_ns == 1000 * 1003
    assert found.kernels[0].time_ms == pytest.approx(1.003, abs=1e-12)


def test_one_kernel_makes_a_report(tmp_path: Path) -> None:
    found = told(tmp_path, trace(call(1, 0.0), kernel(1, 6.0)))
    assert found.metrics.gpu_busy_ns == found.metrics.gpu_span_ns == 2000
    assert found.verdict.kind in ("host-bound", "launch-bound", "mixed")


def test_kernels_of_somebodys_own_that_fill_the_gpu_are_not_judged(
    tmp_path: Path,
) -> None:
    """Full grids back to back, in CUDA C++ or Triton: their limit is in no trace."""
    launch = {"grid": [4096, 1, 1], "block": [256, 1, 1], "registers per thread": 32}
    launch["shared memory"] = 0
    events = []
    for at in range(10):
        events.append(call(at, 10.0 * at))
        events.append(kernel(at, 10.0 + 500 * at, dur=499.0, args=launch))
    found = told(tmp_path, trace(*events))
    assert found.verdict.kind == "unknown"
    assert "what limits them" in found.verdict.sentence


@pytest.mark.parametrize(
    "events",
    [
        [],
        [call(1, 0.0, name="cudaDeviceSynchronize")],
        [call(1, 0.0, name="aten::add", cat="cpu_op")],
    ],
)
def test_without_work_on_the_gpu_nothing_is_concluded(
    events: list[dict[str, Any]], tmp_path: Path
) -> None:
    idle = {**call(0, 0.0), "cat": "cpu_op", "name": "aten::ones", "args": {}}
    found = told(tmp_path, trace(idle, *events))
    assert found.verdict.kind == "unknown"
    assert found.metrics.gpu_busy_ns == found.metrics.kernels == 0
    assert found.metrics.tensor_core_share is None


def test_launches_without_their_work_are_lost_and_conclude_nothing(
    tmp_path: Path,
) -> None:
    events = [call(at, 10.0 * at) for at in range(1, 101)]
    found = told(tmp_path, trace(*events, kernel(1, 16.0)))
    assert (found.completeness.launches, found.completeness.lost) == (100, 99)
    assert found.verdict.kind == "unknown"
    assert any("99 of 100 launches" in text for text in found.completeness.warnings)


def test_equal_streams_of_two_gpus_are_two_streams(tmp_path: Path) -> None:
    events = []
    for at in range(50):
        for gpu in (0, 1):
            number = 2 * at + gpu + 1
            begin = 20.0 * at + 10 * gpu
            events += [
                call(number, begin),
                kernel(number, begin + 6.0, args={"device": gpu}),
            ]
    found = told(tmp_path, trace(*events, deviceProperties=[GPU, GPU | {"id": 1}]))
    assert found.gpu == "NVIDIA H200, NVIDIA H200"
    assert [(each.device, each.stream) for each in found.metrics.streams] == [
        (0, 7),
        (1, 7),
    ]
    for each in found.metrics.streams:
        # each waits 20 - 2 µs for its next launch
        assert each.host_wait_ns == 49 * 18_000
    assert found.metrics.launch.latency_ns == 100 * 2000


def test_launches_of_another_thread_count_as_the_first_ones(tmp_path: Path) -> None:
    """Backward passes launch from autograd's thread, while the first one waits."""
    events = []
    for at in range(100):
        thread = 1 if at < 50 else 2
        events += [call(at + 1, 10.0 * at, tid=thread), kernel(at + 1, 10.0 * at + 6)]
    found = told(tmp_path, trace(*events))
    idle = found.metrics.idle
    assert found.completeness.matched == 100
    assert found.verdict.kind == "launch-bound"
    assert idle.host_launching_ns > 0.9 * idle.host_wait_ns


def test_times_that_make_no_sense_are_left_out_and_told(tmp_path: Path) -> None:
    good = [call(1, 0.0), kernel(1, 6.0)]
    bad = [
        kernel(2, 9.0, dur=-1.0),
        kernel(3, 9.0, dur=1e300),
        kernel(4, 1e300),
        kernel(5, -1e18),
        kernel(6, 9.0, dur="nan"),
    ]
    found = told(tmp_path, trace(*bad, *good))
    assert found.metrics.kernels == 1
    assert any(
        text.startswith("5 events of the file") for text in found.completeness.warnings
    )
    assert told(tmp_path, trace(*good)).metrics == found.metrics


def test_nothing_but_senseless_times_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceFileError, match="no events"):
        told(tmp_path, trace(kernel(1, 0.0, dur=-1)))


def test_an_older_versions_words_and_strings_are_understood(tmp_path: Path) -> None:
    """Categories were other words, and numbers were strings."""
    launch = call(1, 0.0, cat="Runtime", tid="31337")
    launch["args"] = {"correlation": "1", "cbid": "211"}
    work = kernel(1, 6.0, cat="Kernel", tid="stream 7", ts="6.0")
    work["args"] = {"device": "0", "stream": "7", "correlation": "1"}
    operator = call(0, 0.0, cat="Operator", name="aten::add")
    del operator["args"]
    found = told(tmp_path, trace(launch, work, operator))
    assert found.completeness.matched == 1
    assert found.metrics.streams[0].stream == 7
    assert found.metrics.gpu_busy_ns == 2000


def test_what_a_newer_version_adds_is_passed_over(tmp_path: Path) -> None:
    more = {"occupancy": {"limits": [{}, {}]}, "graph": [1, [2]], "new": None}
    work = kernel(1, 6.0, args=more, id=4, tts=1.0)
    sync = call(9, 0.0, cat="cuda_sync", name="Stream Sync")
    found = told(tmp_path, trace(call(1, 0.0), work, sync, schemaVersion=9))
    assert found.metrics.kernels == 1


def program(**more: Any) -> list[dict[str, Any]]:
    """Launches of 49 kernels of 2 µs, one each 20 µs."""
    events = []
    for at in range(1, 50):
        events += [call(at, 20.0 * at, **more), kernel(at, 20.0 * at + 6)]
    return events


def test_times_since_1970_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    """Before torch 2.3 a file had no base, and whole microseconds."""
    begin = 1_790_857_026_000_001
    events = [
        {**each, "ts": begin + int(each["ts"]), "dur": int(each["dur"])}
        for each in program()
    ]
    path = tmp_path / "t.json"
    path.write_bytes(trace(*events, baseTimeNanoseconds=0))
    columns, _ = read_chrome_trace(str(path))
    assert columns.start_ns.tolist() == [int(each["ts"]) * 1000 for each in events]
    since = told(tmp_path, trace(*program())).metrics
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
    found = told(
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
    )
    assert found.verdict.kind == "launch-bound"
    assert (found.completeness.launches, found.completeness.lost) == (51, 0)
    # the last wait is the profiler's own
    assert found.metrics.synchronizations == 1
    assert [each.direction for each in found.metrics.copies] == ["DtoH"]
    assert found.metrics.occupancy_share is None


def test_python_within_an_annotation_is_python(tmp_path: Path) -> None:
    """A profiler's schedule puts one around everything, and operators none."""
    step = {"cat": "user_annotation", "name": "ProfilerStep#3", "args": {}}
    events = [
        call(0, 0.0, **step, dur=11_000.0),
        call(1, 5.0),
        kernel(1, 12.0),
        call(0, 4000.0, cat="cpu_op", name="aten::sort", dur=1000.0),
        call(2, 10_000.0),
        kernel(2, 10_006.0),
    ]
    idle = told(tmp_path, trace(*events)).metrics.idle
    assert idle.host_operator_ns == 1_000_000
    assert idle.host_python_ns > 8_000_000


def test_calls_of_another_thread_after_the_end_hide_no_wait_of_the_profiler(
    tmp_path: Path,
) -> None:
    events = [
        *program(),
        call(200, 1100.0, name="cudaDeviceSynchronize", dur=5.0),
        call(201, 1110.0, name="cudaDeviceSynchronize", dur=5.0),
        # NCCL's watchdog goes on
        call(202, 1120.0, name="cudaEventQuery", tid=2),
    ]
    assert told(tmp_path, trace(*events)).metrics.synchronizations == 0


def test_work_without_any_call_leaves_the_idle_time_unexplained(
    tmp_path: Path,
) -> None:
    """Other vendors' calls are of categories of their own."""
    found = told(tmp_path, trace(*program(cat="xpu_runtime", name="urEnqueue")))
    assert found.verdict.kind == "unknown"
    assert "no call that put it there" in found.verdict.sentence
    assert found.metrics.gpu_busy_ns == 49 * 2000


def test_calls_and_work_without_correlation_are_not_taken_for_each_other(
    tmp_path: Path,
) -> None:
    events = [
        {**each, "args": {"device": 0, "stream": 7} if each["cat"] == "kernel" else {}}
        for each in program()
    ]
    copy = {**kernel(0, 2000.0), "cat": "gpu_memcpy", "args": {"stream": 7}}
    copy["name"] = "Memcpy DtoH (Device -> Pageable)"
    found = told(tmp_path, trace(*events, copy))
    assert (found.completeness.launches, found.completeness.matched) == (49, 0)
    assert found.metrics.synchronizations == 0


def test_a_gpu_is_found_by_its_number(tmp_path: Path) -> None:
    shape = {"grid": [1, 1, 1], "block": [1024, 1, 1], "registers per thread": 16}
    events = [call(1, 0.0), kernel(1, 9.0, args={"device": 3, **shape})]
    third = {**GPU, "id": 3, "name": "NVIDIA L4", "numSms": 1}
    found = told(tmp_path, trace(*events, deviceProperties=[GPU, third]))
    assert found.gpu == "NVIDIA L4"
    # one block of 1,024 threads on its one multiprocessor, which holds 2,048
    assert found.metrics.occupancy_share == 0.5


def test_a_gpu_without_properties_is_judged_by_its_work(tmp_path: Path) -> None:
    found = told(tmp_path, trace(*program(), deviceProperties=[]))
    assert found.gpu == "unnamed GPU"
    assert found.verdict.kind == "launch-bound"


def test_work_of_several_gpus_is_told_to_be_added_up(tmp_path: Path) -> None:
    events = [*program(), call(60, 3000.0), kernel(60, 3006.0, args={"device": 1})]
    found = told(tmp_path, trace(*events, deviceProperties=[GPU, GPU | {"id": 1}]))
    assert any("Work of 2 GPUs" in text for text in found.completeness.warnings)


def test_steps_of_a_schedule_are_added_up(tmp_path: Path) -> None:
    """The profiler numbers its annotations, so each step has another name."""
    events: list[dict[str, Any]] = []
    for step in range(60):
        begin = 200.0 * step
        around = {"cat": "user_annotation", "name": f"ProfilerStep#{step}"}
        within = {"cat": "cpu_op", "name": "aten::item"}
        events += [
            call(0, begin, **around, dur=190.0, args={}),
            call(step, begin + 1),
            kernel(step, begin + 8, dur=50.0),
            call(0, begin + 20, **within, dur=60.0, args={}),
            call(1000 + step, begin + 21, name="cudaStreamSynchronize", dur=40.0),
        ]
    path = tmp_path / "t.json"
    path.write_bytes(trace(*events))
    found = analyse(*read_chrome_trace(str(path)))
    assert found.metrics is not None
    (sync,) = found.metrics.sync_points
    assert (sync.operator, sync.calls) == ("aten::item", 60)
    assert [(row.path, row.calls) for row in found.paths] == [("ProfilerStep#", 60)]
    assert {row.name: row.calls for row in found.operators} == {
        "ProfilerStep#": 60,
        "aten::item": 60,
    }


def test_copies_between_gpus_are_communication(tmp_path: Path) -> None:
    """As of a model whose layers are on two GPUs."""
    peer = {"cat": "gpu_memcpy", "name": "Memcpy PtoP (Device -> Device)", "dur": 900.0}
    host = {"cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)"}
    events = []
    for at in range(1, 20):
        begin = 1000.0 * at
        events += [
            call(3 * at, begin),
            kernel(3 * at, begin + 6, **host),
            call(3 * at + 1, begin + 10),
            kernel(3 * at + 1, begin + 20, **peer),
        ]
    found = told(tmp_path, trace(*events))
    assert found.verdict.kind == "communication-bound"
    assert found.metrics.exposed_communication_ns == 19 * 900_000
    assert found.metrics.copy_ns == found.metrics.exposed_copy_ns == 19 * 2000
    assert {each.direction for each in found.metrics.copies} == {"PtoP", "HtoD"}
    explained = {each.kind: each.explains_ns for each in found.findings}
    assert "memory-bound" not in explained


def test_numbers_that_json_does_not_know_are_passed_over(tmp_path: Path) -> None:
    rate = {"memory bandwidth (GB/s)": 1, "name": ": inf, "}
    events = [*program(), kernel(60, 2000.0, args=rate)]
    plain = trace(*events)
    for word in (b"NaN", b"-nan", b"inf", b"-Infinity"):
        odd = plain.replace(b'(GB/s)": 1', b'(GB/s)": ' + word)
        assert odd != plain
        assert told(tmp_path, odd) == told(tmp_path, plain)


def test_many_streams_and_copies_take_no_longer_than_few(tmp_path: Path) -> None:
    events = []
    for at in range(3000):
        events.append(call(at, 10.0 * at))
        events.append(kernel(at, 10.0 * at + 6, args={"stream": at}))
        events[-1] |= {"cat": "gpu_memcpy", "name": f"copy {at}"}
    found = told(tmp_path, trace(*events))
    assert len(found.metrics.streams) == len(found.metrics.copies) == 3000


@pytest.mark.parametrize(
    ("content", "said"),
    [
        # the format's other form: only a list
        (b'[{"ph": "X", "name": "f", "ts": 0, "dur": 1}]', "array"),
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
        told(tmp_path, content)


def peak_bytes(path: Path) -> int:
    tracemalloc.start()
    read_chrome_trace(str(path))
    peak: int = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_memory_holds_a_piece_and_not_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.json"
    Program(seed=1, steps=20_000).write(path)
    in_pieces = peak_bytes(path)
    monkeypatch.setattr(chrome_file, "PIECE_BYTES", 10**9)
    monkeypatch.setattr(chrome_file, "MAX_PIECE_BYTES", 10**9)
    assert in_pieces < peak_bytes(path) / 2
    # some hundred bytes an event, of which a file has 40,000
    assert in_pieces < 40_000 * 450


@pytest.mark.parametrize("within", [b'{"traceEvents": [{"name": "', b"{", b""])
def test_a_bomb_is_refused_before_it_fills_memory(
    within: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chrome_file, "MAX_PIECE_BYTES", 4_000_000)
    path = tmp_path / "bomb.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(within)
        for _ in range(100):
            file.write(b" " * 1_000_000)
    tracemalloc.start()
    with pytest.raises(TraceFileError, match="no end of an event"):
        read_chrome_trace(str(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50_000_000


def test_too_many_events_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warpbook_monitors.trace.chrome_events.MAX_EVENTS", 1000)
    events = [kernel(at, 1.0 * at) for at in range(2000)]
    with pytest.raises(TraceFileError, match="more than 1,000 events"):
        told(tmp_path, trace(*events))
    monkeypatch.setattr("warpbook_monitors.trace.chrome_events.MAX_EVENTS", 10_000)
    monkeypatch.setattr("warpbook_monitors.trace.chrome_events.MAX_TEXT", 100_000)
    events = [kernel(at, 1.0 * at, name=f"{at:0200}") for at in range(2000)]
    with pytest.raises(TraceFileError, match="more than 100,000 letters"):
        told(tmp_path, trace(*events))
    monkeypatch.setattr(chrome_file, "MAX_TRACE_BYTES", 10_000)
    with pytest.raises(TraceFileError, match="larger than 10,000 bytes"):
        told(tmp_path, trace(*events))


@pytest.mark.parametrize(
    "event",
    [
        # of another tool, of the profiler itself, of a program with endless names
        {"ph": "X", "cat": "FEE", "name": "f", "ts": 0, "dur": 1},
        {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler", "ts": 0, "dur": 1},
        kernel(1, 0.0, name="%09d"),
        kernel(1, 0.0, tid="%09d"),
    ],
)
def test_events_without_end_are_refused_in_bounded_memory(
    event: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a bomb of 3 GB that a file of 3 MB holds, with all limits a hundredth."""
    for module, name in (
        (chrome_file, "MAX_TRACE_BYTES"),
        (chrome_file, "MAX_PIECE_BYTES"),
        (chrome_events, "MAX_EVENTS"),
        (chrome_events, "MAX_TEXT"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name) // 100)
    path = tmp_path / "bomb.json.gz"
    text = json.dumps(event) + ",\n"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'{"traceEvents": [')
        for block in range(40_000_000 // len(text) // 1000 + 1):
            lines = (
                text % (1000 * block + at) if "%" in text else text
                for at in range(1000)
            )
            file.write("".join(lines).encode())
    tracemalloc.start()
    with pytest.raises(TraceFileError):
        read_chrome_trace(str(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # some 2 GB at the real limits
    assert peak < 30_000_000

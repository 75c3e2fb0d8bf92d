"""Trace files come from anyone: damaged ones are refused in words."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.errors import TraceFileError
from warpbook_profiler.report.report import report

TRACE = Path(__file__).parents[2] / "data" / "traces" / "matmul_bf16.json.gz"
KERNEL = {
    "ph": "X",
    "cat": "kernel",
    "name": "k",
    "ts": 1.0,
    "dur": 2.5,
    "pid": 0,
    "tid": 7,
    "args": {"device": 0, "stream": 7, "correlation": 1},
}


def written(path: Path, *events: dict[str, Any], **more: Any) -> str:
    path.write_text(json.dumps({"traceEvents": events, **more}))
    return str(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        b'{"traceEvents": 3}',
        b'{"traceEvents": []}',
        b'{"traceEvents": [' + b"[" * 100_000,
        b"\x1f\x8b",
        b"\x1f\x8b\x08\x00garbage",
        gzip.compress(b'{"traceEvents": [{"ph"', mtime=0),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(TraceFileError, match=r"trace\.json: "):
        read_chrome_trace(str(path))


@pytest.mark.parametrize("kept", [10, 100, 1000, 2000])
def test_a_truncated_file_is_refused(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "cut.json.gz"
    path.write_bytes(TRACE.read_bytes()[:kept])
    with pytest.raises(TraceFileError):
        read_chrome_trace(str(path))


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(TraceFileError, match="can't be read"):
        read_chrome_trace(str(tmp_path / "none.json"))


@pytest.mark.parametrize(
    ("change", "stream", "lost"),
    [
        # the number of its stream is its row's then
        ({"name": 3}, 7, 1),
        ({"args": {"stream": "seven", "correlation": 1, "device": 0}}, 9, 1),
        ({"args": {"stream": 7, "correlation": 2**70, "device": 0}}, 7, 1),
        ({"args": {"stream": [], "correlation": {}, "device": "cuda"}}, 9, 3),
        ({"args": 5}, 9, 1),
        # as HIP's profiler wrote it, and what nobody reads
        ({"args": {"stream": "0x1f", "correlation": 1, "device": 0}}, 31, 0),
        ({"pid": "Spans", "args": {"stream": "7", "grid": "none"}}, 7, 0),
    ],
)
def test_a_field_that_makes_no_sense_costs_that_field(
    tmp_path: Path, change: dict[str, Any], stream: int, lost: int
) -> None:
    path = written(
        tmp_path / "t.json", KERNEL, {**KERNEL, "tid": 9, "ts": 9.0, **change}
    )
    columns, run = read_chrome_trace(path)
    assert columns.start_ns.tolist() == [1000, 9000]
    assert columns.track.tolist() == [7, stream]
    assert run.odd_fields == lost
    warned = report(columns, run).completeness.warnings
    assert any("treated as not known" in text for text in warned) == bool(lost)


@pytest.mark.parametrize(
    "head",
    [
        {"deviceProperties": [{"id": 0, "name": "NVIDIA L4", "numSms": "many"}]},
        {"deviceProperties": 3, "distributedInfo": "none"},
        {"baseTimeNanoseconds": -5, "distributedInfo": {"rank": "first"}},
    ],
)
def test_what_stands_beside_the_events_ruins_no_file(
    head: dict[str, Any], tmp_path: Path
) -> None:
    columns, run = read_chrome_trace(written(tmp_path / "t.json", KERNEL, **head))
    assert len(columns) == 1
    assert run.odd_fields >= 1
    if isinstance(head.get("deviceProperties"), list):
        assert run.gpu_name == "NVIDIA L4"


@pytest.mark.parametrize("cat", ["kernel", "cpu_op"])
@pytest.mark.parametrize("field", ["ts", "dur"])
@pytest.mark.parametrize("odd", ["soon", "", True, [], {}, None])
def test_an_event_without_a_time_is_left_out_and_counted(
    odd: Any, field: str, cat: str, tmp_path: Path
) -> None:
    timeless = {**KERNEL, "cat": cat, field: odd}
    path = written(tmp_path / "t.json", KERNEL, timeless, {**KERNEL, "ts": 9.0})
    columns, run = read_chrome_trace(path)
    assert columns.start_ns.tolist() == [1000, 9000]
    assert run.senseless_events == 1


@pytest.mark.parametrize("args", [[1, 2], "of words", {"device": "cuda:0"}])
@pytest.mark.parametrize("cat", ["user_annotation", "of another tool"])
def test_what_an_annotation_tells_beside_its_time_ruins_no_file(
    cat: str, args: Any, tmp_path: Path
) -> None:
    note = {**KERNEL, "cat": cat, "name": "mine", "args": args}
    columns, _ = read_chrome_trace(written(tmp_path / "t.json", KERNEL, note))
    names = [columns.names[number] for number in columns.name]
    assert names == (["k", "mine"] if cat == "user_annotation" else ["k"])


def test_times_are_unix_time_to_the_nanosecond(tmp_path: Path) -> None:
    base_ns = 1_790_857_026_000_000_000
    kernel = {**KERNEL, "ts": 4395995874726.574, "dur": 1.281}
    path = written(tmp_path / "t.json", kernel, baseTimeNanoseconds=base_ns)
    columns, _ = read_chrome_trace(path)
    assert columns.start_ns.tolist() == [base_ns + 4395995874726574]
    assert columns.duration_ns.tolist() == [1281]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, TRACE.stat().st_size - 1), value=st.integers(0, 255))
def test_a_flipped_byte_gives_figures_or_a_typed_error(
    tmp_path: Path, at: int, value: int
) -> None:
    content = bytearray(gzip.decompress(TRACE.read_bytes()))
    content[at * len(content) // TRACE.stat().st_size] = value
    path = tmp_path / "flipped.json"
    path.write_bytes(content)
    try:
        report(*read_chrome_trace(str(path)))
    except TraceFileError:
        pass

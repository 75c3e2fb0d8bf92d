"""Malformed and endless traces: left out or refused, in bounded memory."""

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from tests.profiler.trace.simulated import Program
from tests.profiler.trace.written import call, kernel, program, report_of, trace
from warpbook_profiler.files import chrome_events, chrome_file
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.errors import TraceFileError


def test_times_that_make_no_sense_are_left_out_and_told(tmp_path: Path) -> None:
    good = [call(1, 0.0), kernel(1, 6.0)]
    bad = [
        kernel(2, 9.0, dur=-1.0),
        kernel(3, 9.0, dur=1e300),
        kernel(4, 1e300),
        kernel(5, -1e18),
        kernel(6, 9.0, dur="nan"),
    ]
    trace_report = report_of(tmp_path, trace(*bad, *good))
    assert trace_report.metrics.kernels == 1
    assert any(
        text.startswith("Events of the file") and text.endswith(" 5.")
        for text in trace_report.completeness.warnings
    )
    assert report_of(tmp_path, trace(*good)).metrics == trace_report.metrics


def test_a_number_that_is_none_costs_its_event_only(tmp_path: Path) -> None:
    events = program()
    whole = report_of(tmp_path, trace(*events))
    bad = [kernel(90, 9.0, dur=float("nan")), kernel(91, float("inf"))]
    # and beside another one of another kind
    bad.append(call(0, 1.0, cat="mine", args=["not", "an", "object"]))
    trace_report = report_of(tmp_path, trace(*bad, *events))
    assert trace_report.metrics == whole.metrics
    assert trace_report.completeness.corrupt == 2


@pytest.mark.parametrize("at_us", [-9e11, -120e6, 120e6, 3e15])
def test_an_event_far_from_all_others_is_left_out_and_told(
    at_us: float, tmp_path: Path
) -> None:
    events = program()
    whole = report_of(tmp_path, trace(*events))
    trace_report = report_of(tmp_path, trace(*events, kernel(90, at_us)))
    assert trace_report.metrics == whole.metrics
    assert trace_report.completeness.warnings[0].endswith("are left out: 1.")


def test_what_lies_apart_for_a_reason_stays(tmp_path: Path) -> None:
    """While the profiler recorded; as much as what it is far from; not so far."""
    events = program()
    late = [call(90, 200e6), kernel(90, 200e6 + 6)]
    recorded = {"ph": "X", "cat": "Trace", "name": "", "ts": 0.0, "dur": 201e6}
    assert report_of(tmp_path, trace(recorded, *events, *late)).metrics.kernels == 50
    again = [{**event, "ts": event["ts"] + 200e6} for event in events]
    assert report_of(tmp_path, trace(*events, *again)).metrics.kernels == 98
    soon = [call(90, 50e6), kernel(90, 50e6 + 6)]
    assert report_of(tmp_path, trace(*events, *soon)).metrics.kernels == 50


def test_nothing_but_senseless_times_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceFileError, match="no events"):
        report_of(tmp_path, trace(kernel(1, 0.0, dur=-1)))


def test_many_streams_and_copies_take_no_longer_than_few(tmp_path: Path) -> None:
    events = []
    for at in range(3000):
        events.append(call(at, 10.0 * at))
        events.append(kernel(at, 10.0 * at + 6, args={"stream": at}))
        events[-1] |= {"cat": "gpu_memcpy", "name": f"copy {at}"}
    trace_report = report_of(tmp_path, trace(*events))
    assert len(trace_report.metrics.streams) == len(trace_report.metrics.copies) == 3000


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
    monkeypatch.setattr("warpbook_profiler.files.chrome_events.MAX_EVENTS", 1000)
    events = [kernel(at, 1.0 * at) for at in range(2000)]
    with pytest.raises(TraceFileError, match="more than 1,000 events"):
        report_of(tmp_path, trace(*events))
    monkeypatch.setattr("warpbook_profiler.files.chrome_events.MAX_EVENTS", 10_000)
    monkeypatch.setattr("warpbook_profiler.files.chrome_events.MAX_TEXT", 100_000)
    events = [kernel(at, 1.0 * at, name=f"{at:0200}") for at in range(2000)]
    with pytest.raises(TraceFileError, match="more than 100,000 letters"):
        report_of(tmp_path, trace(*events))
    monkeypatch.setattr(chrome_file, "MAX_TRACE_BYTES", 10_000)
    with pytest.raises(TraceFileError, match="larger than 10,000 bytes"):
        report_of(tmp_path, trace(*events))


@pytest.mark.parametrize(
    "event",
    [
        # of another tool, of the profiler itself, of a program with endless names
        {"ph": "X", "cat": "FEE", "name": "f", "ts": 0, "dur": 1},
        {"ph": "X", "name": "f", "ts": 0, "dur": 1},
        {"ph": "M", "name": "thread_name", "pid": "%09d", "args": {"name": "Stream"}},
        {"ph": "s", "cat": "ac2g", "id": "%09d", "ts": 0},
        {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler", "ts": 0, "dur": 1},
        kernel(1, 0.0, name="%09d"),
        kernel(1, 0.0, tid="%09d"),
    ],
)
def test_events_without_end_are_refused_in_bounded_memory(
    event: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a bomb of 3 GB that a file of 3 MB holds, with limits a 400th of ours."""
    for module, name in (
        (chrome_file, "MAX_TRACE_BYTES"),
        (chrome_file, "MAX_PIECE_BYTES"),
        (chrome_events, "MAX_EVENTS"),
        (chrome_events, "MAX_TEXT"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name) // 400)
    path = tmp_path / "bomb.json.gz"
    text = json.dumps(event) + ",\n"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b'{"traceEvents": [')
        for block in range(10_000_000 // len(text) // 1000 + 1):
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
    assert peak < 8_000_000

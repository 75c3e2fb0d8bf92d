"""However a trace is written: in any order, layout and words, and cut off."""

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.profiler.trace.written import call, kernel, program, report_of, trace
from warpbook_profiler.files import chrome_file
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.model.errors import TraceDamaged
from warpbook_profiler.report.report import report
from warpbook_profiler.verdict.analysis import analyse

TRACES = Path(__file__).parents[2] / "data" / "traces"
SAMPLES = sorted(path.name for path in TRACES.iterdir())


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
    with pytest.raises(TraceDamaged, match="a damaged trace: "):
        report_of(tmp_path, whole[: int(kept * len(whole))])


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
        trace_report = report_of(tmp_path, content)
    except TraceDamaged as refusal:
        # the JSON itself is broken
        assert b"\\ud83d" in name, refusal
        return
    (row,) = trace_report.kernels
    assert len(row.name) <= 1000
    assert (
        msgspec.json.decode(msgspec.json.encode(trace_report))["kernels"][0]["calls"]
        == 1
    )


def test_numbers_that_json_does_not_know_are_passed_over(tmp_path: Path) -> None:
    rate = {"memory bandwidth (GB/s)": 1, "name": ": inf, "}
    events = [*program(), kernel(60, 2000.0, args=rate)]
    plain = trace(*events)
    for word in (b"NaN", b"-nan", b"inf", b"-Infinity"):
        odd = plain.replace(b'(GB/s)": 1', b'(GB/s)": ' + word)
        assert odd != plain
        assert report_of(tmp_path, odd) == report_of(tmp_path, plain)

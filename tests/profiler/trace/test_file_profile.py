"""A trace file as a profile, in a process of its own: what it says, and why not."""

import gzip
import json
import resource
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.profiler.trace.written import program, trace
from tests.programs import ROOT
from warpbook_labs.sandbox.linux import drop_capabilities
from warpbook_monitors.python_path import own_path
from warpbook_profiler.files import chrome_file, file_profile
from warpbook_profiler.files.file_answer import Told
from warpbook_profiler.files.file_profile import read_profile, tell
from warpbook_profiler.model.errors import (
    NotATrace,
    TraceDamaged,
    TraceFileError,
    TraceTooLarge,
)
from warpbook_profiler.model.progress import TraceProgress, heard_by
from warpbook_profiler.timeline.timeline_body import unpack

TRACE = ROOT / "tests" / "data" / "traces" / "tiny_kernels.json.gz"


def told_apart(path: Path, memory_bytes: int = 64 << 30, cpu_s: int = 3600) -> Told:
    """Ask the process, which may have so much address space and CPU time."""

    def give_up_more() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))
        # root could raise it again
        drop_capabilities()

    done = subprocess.run(
        [sys.executable, "-m", file_profile.__name__, str(path)],
        capture_output=True,
        check=True,
        preexec_fn=give_up_more,
        env={"PYTHONPATH": own_path()},
    )
    return msgspec.msgpack.decode(done.stdout, type=Told)


def test_the_process_tells_the_profile_and_all_events() -> None:
    answer = told_apart(TRACE)
    assert answer.profile == read_profile(str(TRACE)).profile
    assert answer.profile.verdict is not None
    assert answer.profile.verdict.kind == "launch-bound"
    assert answer.timeline is not None
    assert len(unpack(answer.timeline).start_ns) == answer.timeline_events


def test_it_tells_how_far_it_is(tmp_path: Path) -> None:
    path, said = tmp_path / "trace.json", list[TraceProgress]()
    path.write_bytes(gzip.decompress(TRACE.read_bytes()) + b" " * 2_000_000)
    with heard_by(said.append):
        tell(str(path))
    tell(str(path))
    assert list(dict.fromkeys(one.stage for one in said)) == [
        "Reading the trace",
        "Computing causes",
        "Predicting changes",
        "Preparing the timeline",
    ]
    assert [one.words for one in said[:3]] == [
        "Reading the trace: 1 of 3 MB, 33 %",
        "Reading the trace: 2 of 3 MB, 67 %",
        "Reading the trace: 3 of 3 MB, 100 %",
    ]


def test_a_process_that_may_have_less_reads_with_that() -> None:
    """A container or a batch system often sets a hard limit."""
    assert told_apart(TRACE, 3 << 30).profile == read_profile(str(TRACE)).profile


def test_a_file_that_takes_more_cpu_time_than_there_is_says_so(tmp_path: Path) -> None:
    event = b'{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1},'
    block = gzip.compress(event * 100_000)
    path = tmp_path / "long.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents": [') + block * 99)
    answer = told_apart(path, cpu_s=3)
    assert (answer.fault, "s of CPU" in answer.problem) == ("too_large", True)


@pytest.mark.parametrize(
    ("content", "kind", "fault"),
    [
        (b"# A title", NotATrace, "not_a_trace"),
        (b"", NotATrace, "not_a_trace"),
        (b'{"name": "warpbook"}', NotATrace, "not_a_trace"),
        (b'{"traceEvents": []}', NotATrace, "not_a_trace"),
        (trace(*program())[:-40], TraceDamaged, "damaged"),
        (gzip.compress(trace(*program()))[:-40], TraceDamaged, "damaged"),
        (b"\x1f\x8b\x08\x00garbage", TraceDamaged, "damaged"),
    ],
)
def test_what_is_wrong_with_a_file_has_a_kind(
    tmp_path: Path, content: bytes, kind: type[TraceFileError], fault: str
) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(kind):
        read_profile(str(path))
    answer = told_apart(path)
    assert (answer.fault, answer.profile, answer.timeline) == (fault, None, None)
    assert answer.problem and str(tmp_path) not in answer.problem


def test_a_file_that_is_too_large_or_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.json"
    assert tell(str(path)).fault == "unreadable"
    path.write_bytes(trace(*program()))
    monkeypatch.setattr(chrome_file, "MAX_TRACE_BYTES", 1000)
    with pytest.raises(TraceTooLarge):
        read_profile(str(path))
    assert tell(str(path)).fault == "too_large"


def test_more_events_than_a_timeline_takes_leave_the_profile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("warpbook_profiler.timeline.timeline_body.MAX_EVENTS", 10)
    answer = tell(str(TRACE))
    assert answer.profile is not None
    assert (answer.timeline, answer.timeline_events, answer.fault) == (None, None, None)


def test_set_up_that_is_left_out_is_a_warning(tmp_path: Path) -> None:
    events = program()
    first = {**events[0], "name": "cudaFree", "ts": 0.0, "dur": 90_000.0}
    later = [{**event, "ts": event["ts"] + 100_000} for event in events]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(json.loads(trace(first, *later))))
    profile = read_profile(str(path)).profile
    assert profile.completeness.warnings[0].startswith("Set-up took 90")
    assert profile.wall_ns < 20_000_000

"""A large file is read in parts side by side: nobody can tell from the report."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from warpbook_profiler.files import chrome_parts
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.files.chrome_events import Gathered
from warpbook_profiler.model.errors import TraceDamaged
from warpbook_profiler.report.report import report

TRACES = Path(__file__).parents[2] / "data" / "traces"


@pytest.fixture
def content() -> dict[str, Any]:
    packed = (TRACES / "ddp_rank0.json.gz").read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(packed))
    for number, event in enumerate(document["traceEvents"]):
        # threads by words must be the same ones in all parts
        if number % 7 == 0:
            event["tid"] = f"worker {number % 3}"
    # what stands beside the events may stand after them
    document["deviceProperties"] = document.pop("deviceProperties")
    document["distributedInfo"] = document.pop("distributedInfo")
    return document


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[Gathered]:
    """Cut files of any size for three cores, and list the parts that came back."""
    monkeypatch.setattr(chrome_parts, "PART_BYTES", 10_000)
    # a test that forked has ended OpenBLAS's threads, and left this one alone
    monkeypatch.setattr(chrome_parts, "_is_alone", lambda: False)
    monkeypatch.setattr(chrome_parts, "usable_cores", lambda: 3)
    parts: list[Gathered] = []
    join = Gathered.join

    def listed(whole: Gathered, later: Gathered) -> None:
        parts.append(later)
        join(whole, later)

    monkeypatch.setattr(Gathered, "join", listed)
    return parts


def whole_report(path: Path) -> bytes:
    return msgspec.json.encode(report(*read_chrome_trace(str(path))))


def test_parts_make_the_same_report_as_the_whole(
    content: dict[str, Any], joined: list[Gathered], tmp_path: Path
) -> None:
    plain, packed = tmp_path / "t.json", tmp_path / "t.json.gz"
    plain.write_text(json.dumps(content))
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    in_parts = whole_report(plain)
    assert len(joined) == 2
    assert all(len(part.operators) or len(part.calls) for part in joined)
    # a compressed file can't be cut
    assert whole_report(packed) == in_parts
    assert len(joined) == 2


def test_what_only_looks_like_the_end_of_an_event_cuts_nothing(
    content: dict[str, Any], joined: list[Gathered], tmp_path: Path
) -> None:
    for event in content["traceEvents"]:
        event["name"] += '"}, {"ph": "X", "cat": "kernel", "name": "k'
        event["args"] = {**event.get("args", {}), "list": [{}, {}, {"a": {}}]}
    path = tmp_path / "t.json"
    path.write_text(json.dumps(content))
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert whole_report(path) == whole_report(tmp_path / "t.json.gz")
    assert not joined


def test_without_the_other_processes_a_file_is_read_all_the_same(
    content: dict[str, Any],
    joined: list[Gathered],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(content))
    for program in ("/bin/false", "/no/such/program"):
        monkeypatch.setattr(sys, "executable", program)
        assert report(*read_chrome_trace(str(path))).rank == 0
    assert not joined


@pytest.mark.usefixtures("joined")
def test_a_damaged_part_is_a_damaged_file(
    content: dict[str, Any], tmp_path: Path
) -> None:
    text = json.dumps(content)
    path = tmp_path / "t.json"
    path.write_text(text[: len(text) * 9 // 10])
    with pytest.raises(TraceDamaged, match="a damaged trace: "):
        read_chrome_trace(str(path))


ALONE = """
import json, os, sys
import msgspec
from warpbook_profiler.files import chrome_parts
from warpbook_profiler.files.chrome import read_chrome_trace
from warpbook_profiler.report.report import report

chrome_parts.FORKED_PART_BYTES, chrome_parts.usable_cores = 10_000, lambda: 3
forks = []
sys.addaudithook(lambda event, _: forks.append(event) if event == "os.fork" else None)
found = msgspec.json.encode(report(*read_chrome_trace(sys.argv[1])))
try:
    os.waitpid(-1, os.WNOHANG)
    left = 1
except ChildProcessError:
    left = 0
print(len(forks), left)
sys.stdout.flush()
sys.stdout.buffer.write(found)
"""


def test_a_process_with_one_thread_reads_parts_in_copies_of_itself(
    content: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(content))
    command = [sys.executable, "-c", ALONE, path]
    done = subprocess.run(
        command,
        check=True,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": ":".join(sys.path), "OPENBLAS_NUM_THREADS": "1"},
    )
    counts, report_bytes = done.stdout.split(b"\n", 1)
    assert counts == b"2 0", "two copies, and none is left"
    assert report_bytes == whole_report(path)

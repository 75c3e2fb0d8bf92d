"""A trace of host code, which the learner's process writes, and nothing else."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec

from tests.labs.host.small_lab import RIGHT, write_lab
from warpbook_labs.gpu.parent import run_child
from warpbook_labs.gpu.tracing import TraceRequest, case_of
from warpbook_labs.lab.loaded import LoadedLab

LEAVES_A_LINK = """
import os, sys

def prepare(n):
    child = sys.modules["__main__"]
    def record(self, command):
        os.symlink("/etc/passwd", command.path)
        return child.Done(command.run.turn)
    child.Child._record = record

def run(state, **given):
    pass
"""


def traced(loaded: LoadedLab, source: str, trace: Path) -> str:
    request = TraceRequest(
        str(loaded.folder),
        source,
        case_of(loaded),
        str(trace),
        str(trace.with_suffix(".jsonl")),
        has_gpu=False,
    )
    given = msgspec.msgpack.encode(request)
    child = run_child("warpbook_labs.engines.host.tracing", given, "", 100)
    return str(msgspec.json.decode(child.stdout)["problem"])


def test_what_it_does_is_recorded_in_a_run_of_its_own(tmp_path: Path) -> None:
    trace = tmp_path / "t.json.gz"
    assert traced(write_lab(tmp_path), RIGHT, trace) == ""
    events = json.loads(gzip.open(trace).read())["traceEvents"]
    assert sum(event.get("name") == "aten::mul" for event in events) == 10


def test_a_link_is_no_trace(tmp_path: Path) -> None:
    trace = tmp_path / "t.json.gz"
    problem = traced(write_lab(tmp_path), LEAVES_A_LINK, trace)
    assert "PermissionError" in problem and not trace.exists()

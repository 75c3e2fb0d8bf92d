"""The list of what AI assistants asked: bounded, and read whatever became of it."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import pytest

from warpbook import ai_calls
from warpbook.ai_calls import ai_log, note_ai_call
from warpbook.hub_protocol import MOST_AI_CALLS, AiLog


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "warpbook"


def test_calls_about_a_lab_are_listed_and_those_about_none_are_counted(
    folder: Path,
) -> None:
    assert ai_log("vector-add", 0) == AiLog((), 0, 0)
    before_ms = time.time_ns() // 1_000_000
    note_ai_call("lab_check", "vector-add", 30, 400)
    note_ai_call("gpus_now", "", 2, 900)
    note_ai_call("lab_check", "reduction", 30, 400)
    note_ai_call("lab_submit", "vector-add", 30, 80, is_refused=True)
    told = ai_log("vector-add", before_ms)
    assert [(call.tool, call.is_refused) for call in told.calls] == [
        ("lab_submit", True),
        ("lab_check", False),
    ]
    assert (told.count, told.others) == (2, 1)
    assert (told.calls[1].asked_bytes, told.calls[1].answered_bytes) == (30, 400)
    # of before the lab opened nothing is told
    assert ai_log("vector-add", before_ms + 60_000) == AiLog((), 0, 0)
    assert stat.S_IMODE((folder / "ai-calls.jsonl").stat().st_mode) == 0o600


def test_the_list_is_bounded_on_disk_and_in_what_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ai_calls, "_MOST_BYTES", 20_000)
    for _ in range(600):
        note_ai_call("report", "vector-add", 1, 1)
    assert sum(file.stat().st_size for file in folder.iterdir()) < 2 * 20_500
    told = ai_log("vector-add", 0)
    assert len(told.calls) == MOST_AI_CALLS
    assert MOST_AI_CALLS < told.count < 600


def test_what_is_no_line_of_ours_is_passed_over(folder: Path) -> None:
    note_ai_call("labs", "vector-add", 1, 1)
    file = folder / "ai-calls.jsonl"
    whole = file.read_bytes()
    hostile = [
        b"\xff\xfe\n",
        b"[" * 5_000 + b"\n",
        whole.replace(b'"labs"', b'"<script>"'),
        whole.replace(b'"at_ms":', b'"at_ms":9999'),
    ]
    # the last one was cut off by a kill, and the next begins behind it
    file.write_bytes(b"".join(hostile) + whole + whole[:20])
    assert ai_log("vector-add", 0).count == 1

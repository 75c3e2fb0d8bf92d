"""The open exam: its scores, and that its files are of the cells that were run."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.open_exam.score import GPU, HOST, main, scores
from tests.gpu.exam.loading import load_cells
from tests.gpu.exam.running import HELPERS
from warpbook_monitors.verdict_kinds import Kind

FOLDER = Path(__file__).parents[1] / "benchmarks" / "open_exam"
TRUTH = json.loads((FOLDER / "truth.json").read_bytes())
TIMES = {"median_ms": 2.0, "least_ms": 1.9, "most_ms": 2.2}
FIXED = {"median_ms": 0.5, "least_ms": 0.4, "most_ms": 0.6}
SDPA = {"kinds": ["memory-bound"], "changes": ["sdpa"], "judged": "prediction"}
LOOP = {"kinds": ["launch-bound"], "changes": ["fuse"], "judged": "bound"}
GOOD = {"kinds": ["compute-bound", "sync-bound"], "changes": [], "judged": "no gain"}
CELLS = {"sdpa": SDPA, "loop": LOOP, "good": GOOD}
SMALL = {
    "cells": CELLS,
    "traces": {name: {"cell": name, "before": TIMES, "fixed": FIXED} for name in CELLS},
}
WHO, KIND, BARE = (
    "GPU or host decides",
    "kind of the cause",
    "time without the profiler, where the GPU decides",
)
RANGE, NO_GAIN = "range or bound of it", "no gain promised where there is none"
NAMED, TIME = "expert's change among the first 2", "time after the change"


def marks(traces: dict) -> dict[str, tuple[int, int, int]]:
    """Right, said and asked, by criterion."""
    found = scores({"tool": "a tool", "traces": traces}, SMALL)
    return {score.name: (score.right, score.said, score.asked) for score in found}


def test_what_is_not_said_is_no_error() -> None:
    assert {said for _, said, _ in marks({}).values()} == {0}
    coarse = marks({"sdpa": {"decided_by": "GPU"}, "loop": {"kind": "sync-bound"}})
    assert coarse[WHO] == (2, 2, 2)
    assert coarse[KIND] == (0, 1, 3)
    assert coarse[NO_GAIN] == (0, 0, 1)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ({"time_ms": 2.4}, {BARE}),
        ({"time_ms": 2.6}, set()),
        ({"changes": [{"name": "fuse"}, {"name": "sdpa"}]}, {NAMED}),
        ({"changes": [{"name": "fuse"}, {"name": "pad"}, {"name": "sdpa"}]}, set()),
        ({"changes": [{"name": "sdpa", "time_ms": 0.41}]}, {NAMED, TIME}),
        (
            {"changes": [{"name": "sdpa", "low_ms": 0.55, "high_ms": 0.7}]},
            {NAMED, RANGE},
        ),
        ({"changes": [{"name": "sdpa", "low_ms": 0.1, "high_ms": 0.3}]}, {NAMED}),
        ({"changes": [{"name": "sdpa", "low_ms": 0.7}]}, {NAMED}),
    ],
)
def test_times_ranges_and_changes(answer: dict, right: set[str]) -> None:
    found = marks({"sdpa": answer})
    assert {name for name, (count, _, _) in found.items() if count} == right


@pytest.mark.parametrize(
    ("changes", "right"),
    [
        ([], 1),
        ([{"name": "pad", "time_ms": 1.0, "high_ms": 1.9}], 1),
        ([{"name": "pad", "time_ms": 1.0, "high_ms": 1.5}], 0),
    ],
)
def test_a_sure_gain_where_there_is_none(changes: list, right: int) -> None:
    assert marks({"good": {"changes": changes}})[NO_GAIN] == (right, 1, 1)


def test_the_files_are_scored_side_by_side(capsys: pytest.CaptureFixture) -> None:
    answers = sorted(map(str, (FOLDER / "answers").glob("*.json")))
    assert main([*answers, str(FOLDER / "truth.json")]) == 0
    _, header, *_ = capsys.readouterr().out.split("\n\n")
    assert header.splitlines()[0].count("|") == 3 + len(answers)
    assert main([str(FOLDER / "truth.json")]) == 2


def test_a_name_of_no_trace_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    path = tmp_path / "answers.json"
    path.write_text('{"tool": "a tool", "traces": {"none": {}}}')
    assert main([str(path), str(FOLDER / "truth.json")]) == 2
    assert "no such trace: none" in capsys.readouterr().err


def test_each_trace_is_there_and_of_a_cell() -> None:
    """`python -m benchmarks.open_exam.truth` writes the truth anew."""
    names = {cell.name for cell in load_cells()}
    assert names >= set(TRUTH["cells"])
    for trace in TRUTH["traces"].values():
        assert trace["cell"] in TRUTH["cells"]
        assert (FOLDER / trace["file"]).is_file()


def test_the_kinds_are_known() -> None:
    assert set(Kind.__args__) >= GPU | HOST


def test_cells_of_the_exam_may_bind_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("synchronize", "empty_cache", "set_per_process_memory_fraction"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: None)
    names: dict[str, Any] = {"__name__": "a_kernel"}
    exec(HELPERS, names)
    first = {name: one for name, one in names.items() if name != "__builtins__"}
    for name in (*first, "sorted", "range", "set", "exec", "len", "list", "globals"):
        if not name.startswith("_"):
            names[name] = "the person's"
    assert len(names["_exam_times"]("count = 1 + 1")) == 3 and names["count"] == 2
    names["_exam_fresh"]()
    assert {name: names[name] for name in names.keys() - {"__builtins__"}} == first

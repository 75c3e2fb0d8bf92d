"""Programs as different people write them: the change is named, and its edit agrees."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.profiler.advice.edited_cells import is_close
from tests.profiler.advice.operator_programs import KEPT, LARGE, PROGRAMS, SMALL
from tests.profiler.advice.recorded import recorded
from warpbook.kernel.runs.called_code import called_code
from warpbook_profiler.advice.candidates import liberal_edits
from warpbook_profiler.model.change import Change
from warpbook_profiler.verdict.analysis import profile
from warpbook_profiler.verdict.called_edits import called_edits

#: what an edit has, and what the cell has not
MARKS = {
    "topk": "topk(",
    "cdist": "cdist(",
    "matmul-not-outer": "einsum(",
    "fuse": "torch.compile",
    "pad": "pad(",
    "sdpa": "scaled_dot_product_attention(",
    "index-not-one-hot": "table[",
}


def prepared(setup: str, sizes: dict[str, int], dev: str) -> dict[str, Any]:
    names = {"__name__": "__main__", "torch": torch, "nn": torch.nn, "dev": dev}
    # where the sources of functions are looked for
    lines = setup.splitlines(keepends=True)
    linecache.cache["earlier"] = len(setup), None, lines, "earlier"
    torch.manual_seed(0)
    names |= sizes
    exec(compile(setup, "earlier", "exec"), names)
    return names


def ran(setup: str, source: str) -> Any:
    names = prepared(setup, SMALL, "cpu")
    exec(source, names)
    return names["y"]


def advised(
    folder: Path, setup: str, source: str
) -> tuple[tuple[Change, ...], list[Change]]:
    """Give what a report names, and all edits that would be tried."""
    cell = recorded(source, prepared(setup, LARGE, "meta"))
    trace = cell.evidence(folder).trace
    changes = profile(trace).changes
    called = called_code(source, prepared(setup, SMALL, "cpu"))
    written = called_edits(trace, called, [one.name for one in changes if not one.code])
    edits = [one for one in changes if one.code]
    edits += liberal_edits(source, changes, called=called, written=written)
    return changes, edits


@pytest.mark.parametrize(
    ("name", "title"), [(name, title) for name in PROGRAMS for title in PROGRAMS[name]]
)
def test_a_program_is_edited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, title: str
) -> None:
    setup, source = PROGRAMS[name][title]
    changes, edits = advised(tmp_path, setup, source)
    assert name in [one.name for one in changes][:2]
    monkeypatch.setattr(torch, "compile", lambda function: function)
    tried = [one for one in edits if one.name == name and MARKS[name] in one.code]
    assert is_close(ran(setup, source), ran(setup, tried[0].code))


@pytest.mark.parametrize(
    ("name", "title"), [(name, title) for name in KEPT for title in KEPT[name]]
)
def test_a_near_miss_stays(tmp_path: Path, name: str, title: str) -> None:
    setup, source = KEPT[name][title]
    _, edits = advised(tmp_path, setup, source)
    assert name not in [one.name for one in edits]

"""Workers of a loader that start anew for each pass over the data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.profiler.advice.program import Cell, changes_of
from tests.profiler.advice.test_host_waits import WORKERS, loads
from warpbook_profiler.techniques.host.loading import loading

PASSES = (
    "loader = DataLoader(data, 64, num_workers=2)\n"
    "for epoch in range(3):\n    for x in loader:\n        step(x.cuda())\n"
)
START_NS = 20_000_000


def passes(source: str | None, start_ns: int = START_NS) -> Cell:
    """Write three passes over four batches, for each of which workers start and end."""
    cell = Cell(source)
    for _ in range(3):
        cell.python(start_ns)
        for took in (start_ns, 800_000, 900_000, 700_000, start_ns):
            with cell.operator(WORKERS, category="user_annotation"):
                cell.python(took)
            cell.call("aten::addmm", 300_000)
    cell.wait()
    return cell


def test_workers_are_kept_for_later_passes(tmp_path: Path) -> None:
    cell, fixed = passes(PASSES), passes(None, start_ns=1_000_000)
    changes = changes_of(loading, cell.evidence(tmp_path))
    change = changes["keep-workers"]
    assert (change.basis, change.line) == ("not below", 1)
    assert change.low_ns is not None
    assert change.low_ns < fixed.window_ns < cell.window_ns / 2
    assert "start 3 times" in change.evidence
    assert "num_workers=2, persistent_workers=True)" in change.code
    # a start is no batch that more workers load faster
    assert list(changes)[0] == "keep-workers"


@pytest.mark.parametrize(
    "source",
    [
        PASSES.replace("step", "data.grow(x); step"),
        PASSES.replace("step", "loader.dataset.grow(x); step"),
        f"def step(x):\n    data.grow(x)\n{PASSES}",
        PASSES.replace("data, 64", "Data(7), 64"),
        # by another name, or through what it is made of
        f"rows = data\n{PASSES}".replace("step", "rows.grow(x); step"),
        "data = Data(7)\nown = pair = data, 3\nrows = own[0]\n"
        + PASSES.replace("step", "rows.grow(x); step"),
        f"data = Data(rows)\n{PASSES}".replace("step", "rows.append(x); step"),
        f"both = rows, labels\ndata = Data(*both)\n{PASSES}        rows[0] = x\n",
        "for epoch in range(3):\n"
        "    for x in DataLoader(data, 64, num_workers=2):\n        step(x)\n",
    ],
)
def test_workers_of_data_that_may_change_have_no_edit(
    tmp_path: Path, source: str
) -> None:
    changes = changes_of(loading, passes(source).evidence(tmp_path))
    assert not changes["keep-workers"].code


def test_names_beside_the_data_keep_its_workers(tmp_path: Path) -> None:
    source = f"data, total = Data(rows, size), []\n{PASSES}        total.append(size)\n"
    changes = changes_of(loading, passes(source).evidence(tmp_path))
    assert "persistent_workers=True" in changes["keep-workers"].code


@pytest.mark.parametrize(
    "source", [None, PASSES.replace("=2", "=2, persistent_workers=True")]
)
def test_workers_that_stay_are_kept_already(tmp_path: Path, source: str | None) -> None:
    cell = loads(None, WORKERS, 800_000) if source is None else passes(source)
    assert "keep-workers" not in changes_of(loading, cell.evidence(tmp_path))

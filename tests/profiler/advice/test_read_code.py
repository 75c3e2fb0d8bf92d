"""Sketches of results that a loop reads, and of parts that a mask chooses."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.profiler.advice.exam_changes import change_of, changes_of
from tests.profiler.advice.program import Cell
from tests.profiler.advice.program import changes_of as changes_by
from warpbook_profiler.techniques.host.waits import waits

LISTED = "kept = []\nfor x in xs:\n    kept.append({})"


def reads(source: str | None) -> Cell:
    cell = Cell(source)
    for _ in range(9):
        cell.call("aten::sum", 20_000)
        cell.item()
    return cell


def sketch_of(tmp_path: Path, source: str | None) -> str:
    change = changes_by(waits, reads(source).evidence(tmp_path))["read-once"]
    return change.sketch


def test_a_sum_is_that_of_the_cell() -> None:
    change = change_of("loss_item_each_step", "read-once")
    first, second, _ = change.sketch.splitlines()
    ast.parse(change.sketch)
    assert first == "tot += l.detach()  # in the loop"
    assert second == "tot = tot.item()  # after it"


@pytest.mark.parametrize(
    "source",
    ["for x in xs:\n    t += float(x.sum())", "for x in xs:\n    t += x.sum().item()"],
)
def test_a_number_may_be_read_in_two_ways(tmp_path: Path, source: str) -> None:
    assert sketch_of(tmp_path, source).startswith("t += x.sum().detach()  # in")


def test_a_list_is_read_whole(tmp_path: Path) -> None:
    assert sketch_of(tmp_path, LISTED.format("f(x).item()")).splitlines() == [
        "kept.append(f(x).detach().clone())  # in the loop",
        "kept = torch.stack(kept).flatten().tolist()  # after it",
    ]


@pytest.mark.parametrize(
    "source",
    [
        None,
        # it changes the number
        "for x in xs:\n    t += int(loss)",
        "for x in xs:\n    t += loss.item() ** 2",
        # what the loop has so far is used
        "for x in xs:\n    t += loss.item()\n    print(t)",
        f"{LISTED.format('loss.item()')}\n    print(kept[-1])",
        # more may be in the list
        "for x in xs:\n    kept.append(loss.item())",
        "while more:\n    t += loss.item()",
        "def f():\n    for x in xs:\n        t += loss.item()",
        "for x in xs:\n    if loss.item() > 3:\n        stop(x)",
    ],
)
def test_another_use_keeps_the_general_sketch(
    tmp_path: Path, source: str | None
) -> None:
    assert "    total += loss.detach()" in sketch_of(tmp_path, source).splitlines()


def test_a_cast_is_no_read(tmp_path: Path) -> None:
    source = "for x in xs:\n    y = x.float() * float(3)\n    t += y.sum().item()"
    change = changes_by(waits, reads(source).evidence(tmp_path))["read-once"]
    assert change.line == 3 and "y.sum().item()" in change.evidence


@pytest.mark.parametrize(
    ("statement", "sketch"),
    [
        ("total += x[mask].sum()", "total += torch.where(mask, x, 0).sum()"),
        (
            "y = x[mask].mean() * 2",
            "y = torch.where(mask, x, 0).sum() / mask.sum() * 2",
        ),
        ("y = torch.masked_select(x, mask).sum()", "y = torch.where(mask, x, 0).sum()"),
    ],
)
def test_a_mask_is_kept_with_the_cells_own_reduction(
    statement: str, sketch: str
) -> None:
    source = f"for x in xs:\n    mask = x > 0\n    {statement}"
    assert changes_of("boolean_masks", source)["keep-mask"].sketch == sketch


def test_another_use_of_a_mask_keeps_the_general_sketch() -> None:
    source = "for x in xs:\n    mask = x > 0\n    y = x[mask].sum(0)"
    sketch = changes_of("boolean_masks", source)["keep-mask"].sketch
    assert "y = torch.where(mask, x, 0)  # as large as x" in sketch

"""The ladder of inference runs from top to bottom in a real kernel without a GPU."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.labs.test_tour import text
from warpbook_labs.course.reading import open_text

pytest.importorskip("torch")


def test_every_rung_is_measured_and_the_others_say_why_not(tmp_path: Path) -> None:
    written = nbformat.read(open_text("inference-ladder", tmp_path), as_version=4)
    NotebookClient(
        written, timeout=120, resources={"metadata": {"path": tmp_path}}
    ).execute()
    cells = [cell for cell in written.cells if cell.cell_type == "code"]
    assert len(cells) == 9
    table = text(cells[-2:-1])
    rows = {line.split()[0]: line for line in table.splitlines()[1:]}
    assert list(rows) == ["FP32", "bf16", "SDPA", "batches", "compile", "INT8", "2:4"]
    errors = {}
    for name in ("FP32", "bf16", "SDPA", "batches", "INT8"):
        row = re.search(
            r" ([\d.]+) +([\d.]+) x +([\d.]+) x .* ([\d.e+-]+)  [a-z-]+", rows[name]
        )
        assert row is not None, rows[name]
        assert all(float(number) > 0 for number in row.groups()[:3])
        errors[name] = float(row[4])
    assert errors["FP32"] == 0
    # 8 bits of bf16's mantissa, and 7 of INT8 with a scale for each row
    assert all(0 < errors[name] < 0.02 for name in ("bf16", "SDPA", "batches"))
    assert errors["bf16"] < errors["INT8"] < 0.1
    assert "not measured: what it makes for a CPU" in rows["compile"]
    assert "not measured: a CPU has no sparse tensor cores" in rows["2:4"]


def test_two_of_each_four_weights_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    open_text("inference-ladder", tmp_path)
    names: dict = {"__name__": "ladder"}
    exec((tmp_path / "ladder.py").read_text(), names)
    model = names["Encoder"](names["ON_CPU"])
    before = model.blocks[0].up.weight.detach().clone()
    weight = names["pruned"](model, sparse=False).blocks[0].up.weight
    assert ((weight.unflatten(1, (-1, 4)) != 0).sum(-1) == 2).all()
    kept = weight != 0
    assert torch.equal(weight[kept], before[kept])
    largest, dropped = before.abs().unflatten(1, (-1, 4)), kept.unflatten(1, (-1, 4))
    least_kept = largest.masked_fill(~dropped, 9).amin(-1)
    assert (least_kept >= largest.masked_fill(dropped, 0).amax(-1)).all()

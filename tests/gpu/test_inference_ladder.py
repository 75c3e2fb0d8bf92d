"""The ladder of inference, climbed on a GPU: its table is what a person reads.

pytest -m gpu -s tests/gpu/test_inference_ladder.py
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gpu.notebook import Notebook
from warpbook_labs.course.reading import open_text

pytestmark = pytest.mark.gpu

RUNGS = ["FP32", "bf16", "SDPA", "batches", "compile", "INT8", "2:4"]


@pytest.mark.timeout(900)
def test_every_rung_is_climbed(notebook: Notebook, tmp_path: Path) -> None:
    written = json.loads(open_text("inference-ladder", tmp_path).read_text())
    cells = [
        "".join(cell["source"])
        for cell in written["cells"]
        if cell["cell_type"] == "code"
    ]
    notebook.run(f"%cd -q {tmp_path}")
    for cell in cells[:-1]:
        said = notebook.run(cell, timeout_s=400)
    print(f"\n{said}")
    rungs = notebook.value("ladder.rungs")
    assert list(rungs) == RUNGS
    assert all(rung["image_s"] > 0 for rung in rungs.values())
    errors = {name: rung["error"] for name, rung in rungs.items()}
    assert errors["FP32"] == 0
    assert all(0 < errors[name] < 0.02 for name in RUNGS[1:5])
    assert errors["bf16"] < errors["INT8"] < 0.1 < errors["2:4"]
    assert "no verdict" not in {rung["verdict"] for rung in rungs.values()}

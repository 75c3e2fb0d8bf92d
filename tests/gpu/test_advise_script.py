"""`warpbook advise SCRIPT` on work of a real GPU.

pytest -m gpu -s tests/gpu/test_advise_script.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import python_path

pytestmark = pytest.mark.gpu

#: FP32 products of odd sizes, pageable batches, and a loss that is read each step
SCRIPT = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(1999, 4099), nn.ReLU(), nn.Linear(4099, 1001)).cuda()
optimizer = torch.optim.Adam(model.parameters(), foreach=False, fused=False)
images = torch.randn(20, 4096, 1999)
labels = torch.zeros(4096, dtype=torch.long, device="cuda")
for step in range(20):
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(model(images[step].cuda()), labels)
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.3f}")
"""
EXPECTED = {
    "tensor-cores": "no",
    "mixed-precision": "no",
    "pinned-input": "no",
    "gradients-to-none": "yes",
    "eval-mode": "not applicable",
}


def test_a_script_is_run_and_judged(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    ended = subprocess.run(
        [sys.executable, "-m", "warpbook.cli.main", "advise", str(script), "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    (checklist,) = json.loads(ended.stdout)["checklists"].values()
    lines = {line["name"]: line for line in checklist["lines"]}
    print("\n| item | answer | evidence |\n|---|---|---|")
    for name, line in lines.items():
        print(f"| {name} | {line['answer']} | {line['evidence']} |")
    assert {name: lines[name]["answer"] for name in EXPECTED} == EXPECTED

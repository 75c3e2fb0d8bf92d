"""The lab's operator in CUDA C++, built from its text on a real GPU.

pytest -m gpu -s tests/gpu/test_custom_operator.py
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from warpbook_labs.lab.files import CATALOGUE
from warpbook_labs.lab.loader import load

pytestmark = pytest.mark.gpu

EPS = 1e-5


def modules_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the text's cells import `given` and the reference as `solution`."""
    lab = load(folder)
    for name, source in (("given", lab.given), ("solution", lab.reference)):
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(source, module.__dict__)


def test_the_operator_of_the_text_is_built_and_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch: Any = pytest.importorskip("torch")
    if not (shutil.which("nvcc") and shutil.which("ninja")):
        pytest.skip("needs nvcc and ninja")
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    folder = CATALOGUE / "training" / "custom_operator"
    modules_of(folder, monkeypatch)
    text = (folder / "text.md").read_text(encoding="utf-8")
    [_, cell] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert "load_inline" in cell and "opcheck" in cell
    began_s = time.perf_counter()
    exec(cell, {})
    took_s = time.perf_counter() - began_s
    print(f"\n| built and passed opcheck | {took_s:.1f} s |\n|---|---|")

    # a transposed x, whose rows don't lie together
    torch.manual_seed(0)
    x = torch.randn(1000, 333, device="cuda").t().requires_grad_()
    weight = torch.randn(1000, device="cuda", requires_grad=True)
    grad = torch.randn(333, 1000, device="cuda")
    out = torch.ops.lab_cuda.rms_norm(x, weight, EPS)[0]
    given = [one.detach().double().requires_grad_() for one in (x, weight)]
    right = torch.nn.functional.rms_norm(given[0], (1000,), given[1], EPS)
    pairs = {
        "forward": (out, right),
        "gradient of x and weight": (
            torch.cat(
                [g.flatten() for g in torch.autograd.grad(out, (x, weight), grad)]
            ),
            torch.cat(
                [g.flatten() for g in torch.autograd.grad(right, given, grad.double())]
            ),
        ),
    }
    for name, (got, expected) in pairs.items():
        off = ((got - expected).abs().max() / expected.abs().max()).item()
        print(f"| {name}: largest error by largest value | {off:.1e} |")
        assert off < 1e-5

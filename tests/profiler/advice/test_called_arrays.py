"""Functions and objects of other cells that compute by NumPy, tried on the GPU."""

from __future__ import annotations

import linecache
from typing import Any

import pytest
import torch

from warpbook.kernel.runs.called_code import called_code
from warpbook_profiler.advice.candidates import liberal_edits
from warpbook_profiler.model.change import Change

SETUP = """
import numpy as np, torch
torch.manual_seed(0)
x, low = torch.rand(6, 8), 0.25
def back(a, like):
    return torch.from_numpy(a).to(like.device)
class Lifted:
    def __init__(self, floor):
        self.floor = floor
    def __call__(self, x):
        counts = x.cpu().numpy()
        return torch.from_numpy(np.sqrt(np.clip(counts - self.floor, 0.0, 1.0))).to(0)
class Kept(Lifted):
    def logs(self, x):
        h = np.log(x.cpu().numpy() + self.floor)
        return torch.from_numpy(h).to(x.device)
def scaled(x, by):
    h = x.cpu().numpy() * by + low
    return torch.from_numpy(h).to(x.device)
class Sorted(Lifted):
    def __call__(self, x):
        self.seen = np.lexsort(x.cpu().numpy())
        return torch.from_numpy(self.seen).to(x.device)
lifted, kept, by_rows = Lifted(0.5), Kept(0.5), Sorted(0.5)
"""


def prepared() -> dict[str, Any]:
    source = SETUP.replace(".to(0)", '.to("cpu")')
    lines = source.splitlines(keepends=True)
    linecache.cache["arrays"] = len(source), None, lines, "arrays"
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, "arrays", "exec"), namespace)
    return namespace


def edits(cell: str) -> list[str]:
    change = Change("stay-on-gpu", "", "", "unknown", *[None] * 5, "", "")
    called = called_code(cell, prepared())
    return [one.code for one in liberal_edits(cell, (change,), True, called)]


@pytest.mark.parametrize(
    ("cell", "copy"),
    [
        ("y = lifted(x).sum()\n", "Lifted___call__"),
        ("y = torch.stack([kept(one) for one in x]).sum(1)\n", "Lifted___call__"),
        ("y = kept.logs(x)\n", "Kept_logs"),
        ("y = scaled(x, 3.0)\n", "scaled_edited"),
    ],
)
def test_arrays_of_another_cell_stay_on_the_gpu(cell: str, copy: str) -> None:
    (edited,) = edits(cell)
    assert f"def {copy}(" in edited and "numpy" not in edited
    before, after = prepared(), prepared()
    exec(cell, before)
    exec(edited, after)
    torch.testing.assert_close(after["y"], before["y"])
    for name in ("Lifted", "Kept"):
        call, same = (vars(one[name]).get("__call__") for one in (before, after))
        assert getattr(call, "__code__", 0) == getattr(same, "__code__", 0)


@pytest.mark.parametrize("cell", ["y = by_rows(x)\n", "y = x.sum()\n"])
def test_what_torch_has_not_stays(cell: str) -> None:
    assert not edits(cell)

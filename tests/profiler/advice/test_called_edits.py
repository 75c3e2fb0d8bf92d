"""Rules write edits for functions and methods of other cells, with the cell's trace."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.profiler.advice.program import Cell
from tests.profiler.advice.test_host_waits import allocates
from tests.profiler.advice.test_model_patterns import weighs
from tests.profiler.advice.test_operations import broadcasts, sorts
from warpbook.kernel.runs.called_code import called_code
from warpbook_profiler.model.change import Change
from warpbook_profiler.verdict.called_edits import called_edits


def prepared(setup: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    source = f"import torch\nfrom torch import nn\n{setup}"
    linecache.cache["earlier"] = (
        *(len(source), None, source.splitlines(keepends=True)),
        "earlier",
    )
    torch.manual_seed(0)
    exec(compile(source, "earlier", "exec"), names)
    return names


def edits(
    tmp_path: Path, cell: Cell, source: str, setup: str, name: str
) -> tuple[Change, ...]:
    evidence = cell.evidence(tmp_path)
    called = called_code(source, prepared(setup))
    return called_edits(evidence.trace, called, [name]).get(name, ())


def agrees(code: str, source: str, setup: str) -> bool:
    values = []
    for one in (source, code):
        names = prepared(setup)
        exec(one, names)
        values.append(names["y"])
    return torch.allclose(*values, 1e-4, 1e-4)


X = "x = torch.randn(16, 500)\n"


@pytest.mark.parametrize(
    ("source", "setup"),
    [
        (
            "y = best(x)",
            "def best(x, n=8):\n    v, at = torch.sort(x, dim=1, descending=True)\n"
            "    return v[:, :n] + at[:, :n]\n",
        ),
        # a method, and the indices alone
        (
            "y = ranks(x).float()",
            "class Ranks:\n    k = 8\n    def __call__(self, rows):\n"
            "        return self.order(rows)\n    def order(self, rows):\n"
            "        order = rows.argsort(-1)\n        return order[..., : self.k]\n"
            "ranks = Ranks()\n",
        ),
        # a module within another, with the same names as a function beside it
        (
            "y = net(twice(x))",
            "def twice(rows):\n    values = rows * 2\n    return values\n"
            "class Top(nn.Module):\n    def forward(self, rows):\n"
            "        values = rows.sort(descending=True).values\n"
            "        return values[:, :8]\nnet = nn.Sequential(nn.Identity(), Top())\n",
        ),
    ],
)
def test_a_sort_of_another_cell(tmp_path: Path, source: str, setup: str) -> None:
    (change,) = edits(tmp_path, sorts(source), source, X + setup, "topk")
    assert "topk(" in change.code and "sort" not in change.code
    assert agrees(change.code, source, X + setup)


@pytest.mark.parametrize(
    "setup",
    [
        # all of the order is returned
        "def best(x):\n    v, at = torch.sort(x, dim=1, descending=True)\n"
        "    return v, v[:, :8]\n",
        # what is not the person's is not looked into
        "best = torch.sort\n",
    ],
)
def test_a_sort_of_another_cell_that_stays(tmp_path: Path, setup: str) -> None:
    source = "y = best(x)[0]"
    assert not edits(tmp_path, sorts(source), source, X + setup, "topk")


ROWS = "a, b = torch.randn(40, 6), torch.randn(50, 6)\n"


@pytest.mark.parametrize(
    ("source", "setup"),
    [
        (
            "y = gaps(a, b)",
            "def gaps(a, b):\n    d = a[:, None] - b[None]\n"
            "    return (d * d).sum(-1).sqrt()\n",
        ),
        (
            "y = torch.cat([model.predict(part) for part in a.split(20)])",
            "class Kernel:\n    def __init__(self, rows):\n        self.rows = rows\n"
            "    def far(self, x):\n"
            "        d = x.unsqueeze(1) - self.rows.unsqueeze(0)\n"
            "        return d.pow(2).sum(dim=2)\n    def predict(self, x):\n"
            "        return torch.exp(-self.far(x))\nmodel = Kernel(b)\n",
        ),
    ],
)
def test_distances_of_another_cell(tmp_path: Path, source: str, setup: str) -> None:
    cell = broadcasts(source, "aten::sub", "aten::pow", "aten::sum")
    (change,) = edits(tmp_path, cell, source, ROWS + setup, "cdist")
    assert "torch.cdist(" in change.code and "sqrt" not in change.code
    assert agrees(change.code, source, ROWS + setup)


@pytest.mark.parametrize(
    ("source", "setup"),
    [
        (
            "y = torch.stack([tidy(one) for one in x])",
            "def tidy(x):\n    y = x * 2\n    torch.cuda.empty_cache()\n    return y\n",
        ),
        (
            "y = step(x)",
            "def free():\n    import gc\n    torch.cuda.empty_cache()\n"
            "def step(x):\n    free()\n    return x + 1\n",
        ),
        (
            "y = net(x)",
            "class Frugal(nn.Module):\n    def forward(self, x):\n"
            "        x = x.exp()\n        torch.cuda.empty_cache()\n"
            "        return x\nnet = nn.Sequential(Frugal(), Frugal())\n",
        ),
    ],
)
def test_a_cache_that_a_helper_empties(tmp_path: Path, source: str, setup: str) -> None:
    # the report sees blocks that come and go, and not who has them go
    cell = allocates(source, "cudaMalloc", "cudaFree")
    (change,) = edits(tmp_path, cell, source, X + setup, "expandable-segments")
    assert change.name == "empty-cache"
    assert "empty_cache" not in change.code
    assert agrees(change.code, source, X + setup)


LAYER = (
    "class Block(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.mix = nn.MultiheadAttention(8, 2, batch_first=True)\n"
    "    def forward(self, x):\n{}\nnet = nn.Sequential(Block(), Block())\n"
    "x = torch.randn(2, 6, 8)\n"
)


@pytest.mark.parametrize(
    ("body", "is_edited"),
    [
        ("        return x + self.mix(x, x, x)[0]", True),
        (
            "        y, w = self.mix(query=x, key=x, value=x)\n        return x + y",
            True,
        ),
        ("        y, _ = self.mix(x, x, x)\n        return x + y", True),
        # somebody takes them
        ("        y, w = self.mix(x, x, x)\n        return x + y * w.mean()", False),
    ],
)
def test_weights_that_a_method_does_not_take(
    tmp_path: Path, body: str, is_edited: bool
) -> None:
    source, setup = "y = net(x)", LAYER.format(body)
    found = edits(tmp_path, weighs(source), source, setup, "need-weights")
    assert bool(found) == is_edited
    for change in found:
        assert "need_weights=False" in change.code
        assert agrees(change.code, source, setup)

"""Liberal edits of turns that stay a loop: as graphs, and with choices of masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.profiler.advice.test_rewriting import agree, edits


@pytest.fixture(autouse=True)
def _no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(**_: str) -> Callable[[Any], Any]:
        return lambda function: function

    monkeypatch.setattr(torch, "compile", compiled)


@pytest.mark.parametrize(
    ("source", "results"),
    [
        # a step of a simulation that another cell defines
        (
            "def step(u):\n    return u - 0.1 * torch.tanh(u @ w)\nu = x.clone()\n"
            "for _ in range(7):\n    u = step(u)\nmass = u.mean(1)\n",
            ["u", "mass"],
        ),
        # rows come in and go out
        (
            "h, seen = torch.zeros(6), []\nfor t in range(len(x)):\n"
            "    gate = torch.sigmoid(x[t] @ w)\n    h = gate * h + (1 - gate) * x[t]\n"
            "    seen.append(h.norm())\nend = torch.stack(seen)\n",
            ["h", "gate", "t", "end"],
        ),
        (
            "out = torch.zeros(12, 6)\nout[0] = x[0]\nfor t in range(11):\n"
            "    out[t + 1] = torch.tanh(out[t] @ w + x[t + 1])\n"
            "total = out.sum()\n",
            ["out", "total"],
        ),
        # what is changed in place is the same tensor afterwards
        (
            "p, v = x.clone(), w[0] * x\nsame, time = p, 0.0\nfor row in x:\n"
            "    p.add_(v, alpha=0.1)\n    v *= 0.9\n    p[:, 0] = row[0]\n"
            "    time += 0.1\nstays = same is p\n",
            ["p", "same", "v", "stays", "time", "row"],
        ),
        (
            "def walk(y, n):\n    i = 0\n    while i < n:\n"
            "        with torch.no_grad():\n            for k in range(3):\n"
            "                y = torch.sin(y) @ w\n        i += 1\n    return y, i\n"
            "walks = [walk(x, n) for n in (0, 1, 5)]\n",
            ["walks"],
        ),
    ],
)
def test_turns_as_graphs_compute_the_same(source: str, results: list[str]) -> None:
    found = edits(source, "cuda-graph")
    assert any(agree(source, one, *results) for one in found), found


@pytest.mark.parametrize(
    "source",
    [
        # the host reads, a gradient is computed, or the number of the turn is used
        "y = x\nfor r in x:\n    y = y * float(y.max())\n",
        "y = x\nfor r in x:\n    y = y @ w\n    print(y)\n",
        "y = x\nfor r in x:\n    y = y @ w\n    y.sum().backward()\n",
        "y = x\nfor t in range(9):\n    y = y @ w + t\n",
        # it grows, nothing is left of a turn, or what comes is loaded
        "y = x\nfor r in x:\n    y = torch.cat([y, r[None]])\n",
        "for r in x:\n    y = r @ w\n",
        "y = x\nfor r in DataLoader(data):\n    y = y @ r\n",
        "y = x\nfor r in x:\n    y = y @ w\n    if n:\n        y = y * 2\n",
        "y = x\nfor r in x:\n    y = y @ w\n    y.fill_(r)\n",
    ],
)
def test_other_turns_are_no_graphs(source: str) -> None:
    assert not edits(source, "cuda-graph")


def test_a_graph_is_made_once() -> None:
    source = "u = x\nfor _ in range(7):\n    u = torch.tanh(u @ w)\n"
    (edited,) = edits(source, "cuda-graph")
    assert not edits(edited, "cuda-graph")
    assert 'mode="reduce-overhead"' in edited


@pytest.mark.parametrize(
    ("source", "results"),
    [
        (
            "p, v = x.clone(), x * 2\nsame = v\nfor _ in range(5):\n    p += 0.1 * v\n"
            "    out = p.abs() > 1\n    v[out] = -v[out]\n",
            ["p", "v", "same", "out"],
        ),
        (
            "y, low = x.clone(), x.sum(1) < 0\nfor _ in range(3):\n"
            "    y[low] *= 0.5\n    y[~low & (y[:, 0] > 0)] -= 1\n",
            ["y"],
        ),
        (
            "def fall(y, v):\n    for _ in range(4):\n        hit = (y[:, 1] < 0)\n"
            "        v[hit, 1] = -0.8 * v[hit, 1]\n        y = y + 0.1 * v\n"
            "    return y, v\ny, v = fall(x, x.flip(0))\n",
            ["y", "v"],
        ),
        (
            "price, alive = x.exp(), x > -1\nfor n in range(4):\n"
            "    alive = alive & (price > 0.5)\n"
            "    price[alive] = price[alive] * x[alive].exp() + n\n",
            ["price", "alive"],
        ),
    ],
)
def test_stores_by_a_mask_are_choices(source: str, results: list[str]) -> None:
    (edited,) = edits(source, "keep-mask")
    assert agree(source, edited, *results), edited
    assert "where" in edited


@pytest.mark.parametrize(
    "source",
    [
        # numbers need no wait, indices are no mask, and sizes may differ
        "hit = x > 1\nx[hit] = 0\n",
        "for i in range(5):\n    x[i] = x[i] * 2\n",
        "hit, other = x > 1, x > 2\nx[hit] = w[other]\n",
        "hit = x > 1\ny = x[hit]\n",
        "hit = x > 1\nmade()[hit] *= 2\n",
    ],
)
def test_other_stores_stay(source: str) -> None:
    assert not edits(source, "keep-mask")


@pytest.mark.parametrize(
    ("source", "results"),
    [
        (
            "low, lows = x[0], [x[0]]\nfor today in x[1:]:\n"
            "    low = torch.minimum(low, today)\n    lows.append(low)\n",
            ["low", "lows", "today"],
        ),
        (
            "level, kept = w[0], []\nfor row, other in zip(x, x.clone().tanh()):\n"
            "    pass\nys = x.tanh()\nfor row, other in zip(x, ys):\n"
            "    level = torch.maximum(level, row * other)\n"
            "    kept.append(level - other)\n",
            ["level", "kept", "row", "other"],
        ),
        (
            "left, lit = torch.ones(6), torch.zeros(6)\nfor row in x[2:9]:\n"
            "    left = left * (1 - row.sigmoid())\n    lit = lit + left * row\n",
            ["left", "lit", "row"],
        ),
    ],
)
def test_rows_that_are_cut_out_are_scanned(source: str, results: list[str]) -> None:
    found = edits(source, "scan")
    assert any(agree(source, one, *results) for one in found), found

"""Tensors that a source makes on the host: where they go, and made on the GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.profiler.advice.edited_cells import agrees
from tests.profiler.advice.program import Cell, changes_of
from warpbook_profiler.techniques.data.made_on_host import made_on_host

SETUP = (
    "import math\nn, d, w, img = 6, 4, 0.5, torch.rand(6, 4)\n"
    "ks, some, out = [1, 2, 3], torch.ones(6), []\n"
)
GRID = (
    "def grid(k):\n    ys, xs = torch.linspace(0, 1, n), torch.linspace(0, 1, d)\n"
    "    ys, xs = torch.meshgrid(ys, xs, indexing='ij')\n"
    "    return torch.stack((xs{}, ys), -1).to(dev)\n"
    "out = [grid(k) for k in ks]\n"
)
ENCODING = (
    "for k in ks:\n    at = torch.arange(n)[:, None]\n"
    "    rate = torch.exp(torch.arange(0, d, 2) * (-math.log(1e4) / d))\n"
    "    angles = (at * rate).to(dev)\n    out.append(angles.sin() * k)\n"
)
MASK = (
    "for k in ks:\n    future = torch.ones(n, n).triu(1).bool()\n"
    "    allowed = ~future\n    out.append(img.T @ allowed.to(dev).float() * k)\n"
)


def made(source: str, casts: bool = True) -> Cell:
    cell = Cell(source)
    for _ in range(3):
        for name in ("linspace", "linspace", "meshgrid"):
            cell.call(f"aten::{name}")
            cell.python(500_000)
        with cell.operator("aten::add"):
            cell.python(2_000_000)
            if casts:
                cell.call("aten::to")
        with cell.operator("aten::stack"):
            cell.python(2_000_000)
        with cell.operator("aten::to"), cell.operator("aten::copy_"):
            cell.copy("HtoD", 4 << 20)
            cell.wait()
        cell.call("aten::sin", 20_000)
    cell.wait()
    return cell


@pytest.mark.parametrize(
    ("source", "made_there"),
    [
        (GRID.format(""), 2),
        (GRID.format(" + k"), 2),
        (GRID.format(" * w - n"), 2),
        (ENCODING, 2),
        (MASK, 1),
        (ENCODING.replace("k in ks:\n", "k in ks:\n    k, k2 = k, some\n"), 2),
    ],
)
def test_ranges_and_grids_are_made_on_the_gpu(
    tmp_path: Path, source: str, made_there: int
) -> None:
    change = changes_of(made_on_host, made(source).evidence(tmp_path))["make-on-gpu"]
    assert change.code.count("device=dev") == made_there
    assert agrees(change, source, SETUP, "out")


@pytest.mark.parametrize(
    ("source", "casts"),
    [
        # a tensor of the host may be beside them, as far as is known
        (GRID.format(" + k"), False),
        (ENCODING.replace("at * rate", "at * rate * some"), True),
        (
            GRID.format(" + ys.sum() * k").replace("ys, xs = torch.m", "a = torch.m"),
            True,
        ),
        # what they round to is decided by a last bit
        (GRID.format(" * n").replace("-1).to", "-1).long().to"), True),
        (GRID.format("").replace("(dev)", "(where(k))"), True),
    ],
)
def test_what_may_be_another_tensor_is_let_be(
    tmp_path: Path, source: str, casts: bool
) -> None:
    changes = changes_of(made_on_host, made(source, casts).evidence(tmp_path))
    assert all(not change.code for change in changes.values())


@pytest.mark.parametrize(
    "use",
    ["print(ys)", "out.append(xs)", "rows = some[ys]", "x = ys.numpy()", "k = f(xs)"],
)
def test_what_the_host_takes_stays_there(tmp_path: Path, use: str) -> None:
    source = GRID.format("").replace("    return", f"    {use}\n    return")
    assert not changes_of(made_on_host, made(source).evidence(tmp_path))

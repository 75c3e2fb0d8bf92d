"""NumPy in the middle, written as torch: what it computes, and what is left alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.profiler.advice.program import Cell, changes_of
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.translation.numpy_code import without_numpy
from warpbook_profiler.techniques.host.round_trip import round_trip

BACK = "y = torch.from_numpy({}).to(x.device)\n"


def after(source: str) -> dict[str, Any]:
    torch.manual_seed(0)
    names: dict[str, Any] = {"torch": torch, "np": np, "x": torch.randn(6, 8)}
    # from a GPU it is a copy
    exec(source.replace(".cpu()", ".clone()"), names)
    return names


def agrees(source: str, code: str) -> bool:
    one, other = after(source), after(code)
    is_close = torch.allclose(one["y"], other["y"], 1e-5, 1e-5)
    return (
        is_close
        and one["y"].dtype == other["y"].dtype
        and bool((one["x"] == other["x"]).all())
    )


@pytest.mark.parametrize(
    "source",
    [
        "h = x.cpu().numpy()\nh = np.clip(h, -1.0, 1.0)\n" + BACK.format("h"),
        "h = x.detach().cpu().numpy()\nlow = np.min(h, axis=1, keepdims=True)\n"
        "h = np.sqrt(h - low) / (2 * h.shape[0] + len(h))\n" + BACK.format("h[:, 1:]"),
        "h = np.float32(10) * np.log10(np.maximum(x.cpu().numpy() ** 2, 1e-6))\n"
        "h = np.maximum(h, h.max() - 80) * np.float32(0.1)\n" + BACK.format("h"),
        # what is written is no part of the tensor that was copied
        "h = x.cpu().numpy()\nh[h < 0] = 0\nh += 1\n" + BACK.format("h"),
        "h = x.cpu().numpy()\nh[0] *= 2\nw = np.ones((h.shape[0], 8), dtype=np.float32)"
        "\nw[1:3] = 4\n" + BACK.format("np.where(np.isnan(h), 0.0, h * w)"),
        # twice as wide in both
        "h = x.cpu().numpy()\nw = np.zeros(8)\nw[2] = 1\n" + BACK.format("h + w"),
        "def outer(a):\n    def inner(b):\n        c = b.cpu().numpy()\n"
        "        c = np.stack([np.maximum(c, 0.5), np.abs(c)], axis=1)\n"
        "        return torch.as_tensor(np.sum(c, 0), device=b.device)\n"
        "    return inner(a * 2)\ny = outer(x)\n",
        "def envelope(a):\n    s = np.fft.rfft(a.cpu().numpy(), axis=-1)\n"
        "    s[:, 0] = 0\n"
        "    return torch.from_numpy(np.fft.irfft(s)).float().to(a.device)\n"
        "y = envelope(x)\n",
        # angles, of two arrays, over a remainder
        "ys = []\nfor u, v in zip(x, x + 1):\n"
        "    d = np.degrees(np.arctan2(-u.cpu().numpy(), v.cpu().numpy())) % 360\n"
        "    ys.append(torch.as_tensor(d).to(u.device))\ny = torch.stack(ys)\n",
        "h = np.asarray(x.to('cpu'))\nm = (h > -1) & ~(h > 1) & np.isfinite(h)\n"
        + BACK.format("np.where(m, np.hypot(h, h) - h.mean(axis=0), 0.0)"),
        "def bent(a):\n    h = np.asarray(a.detach().cpu())\n"
        "    h = np.power(np.subtract(h, h.max(axis=1, keepdims=True)), 2)\n"
        "    h = np.where(np.logical_or(h > 4, h < 1), np.arctan(h), np.mod(h, 3.0))\n"
        "    return torch.from_numpy(h).to(a.device)\ny = bent(x)\n",
        # functions of numbers, which may widen what becomes narrow again
        "mu = 255\nh: np.ndarray = x.cpu().numpy()\n"
        "h = np.sign(h) * np.log1p(mu * np.abs(h)) / np.log1p(mu)\n"
        + BACK.format("h.astype('float32')"),
        "h = np.exp(-x.cpu().numpy() ** 2 / 2) / np.sqrt(2 * np.pi)\n"
        "y = torch.tensor(h, dtype=torch.float32, device=x.device)\n",
        # what is cast to the dtype that it has is another array
        "h = x.cpu().numpy()\ng = h.astype(dtype=np.single)\ng[0] = 0\n"
        "k = np.array(h)\nk[1] = 0\nh /= np.log1p(3)\n" + BACK.format("h + g + k"),
        "h = x.cpu().numpy()\nd = h - h.mean(axis=(0, 1), keepdims=True)\n"
        "d = d / h.std(axis=0) + np.var(h, axis=1, keepdims=True, ddof=1)\n"
        "d = np.maximum(-1, d) * (d < 2) + np.linalg.norm(d, axis=None)\n"
        + BACK.format("np.clip(d, a_min=-1, a_max=3)"),
        "h = x.cpu().numpy()\nd = np.expand_dims(h, 1) - h[None, :]\n"
        "d = np.einsum('ijk,jk->ki', d, h) + np.roll(h, 1, axis=0).T / h.size\n"
        "d = np.maximum.accumulate(d, axis=1) + np.add.reduce(h, axis=1)\n"
        + BACK.format("np.concatenate((d, np.flip(d, 0)), -1).transpose(1, 0)"),
        # what is stored may be a part of what it is stored to
        "h = x.cpu().numpy()\nt = torch.tensor(h)\nh[:, 1:] += h[:, :-1]\nh[0] = h[1]\n"
        "h[1:] = h[:-1]\n" + BACK.format("h") + "y = y + t.to(x.device)\n",
        # it has rows one after the other
        "h = x.cpu().numpy()\n"
        + BACK.format("np.ascontiguousarray(h.T)")
        + "y = y.view(-1)\nz = 0\n",
        "h = x.cpu().numpy()\n" + BACK.format("h.T.copy()") + "y = y.view(-1)\n",
        "h = x.cpu().numpy() * np.nan\n"
        + BACK.format("np.nan_to_num(np.sign(h), nan=3)"),
        "ys = []\nfor row in x:\n    r = np.exp(row.cpu().numpy())\n"
        "    ys.append(torch.from_numpy(r / np.sum(r)).to(x.device))\n"
        "y = torch.stack(ys)\n",
    ],
)
def test_numpy_becomes_torch(source: str) -> None:
    code = without_numpy(CellCode(source))
    assert code and "numpy()" not in code
    assert agrees(source, code)


@pytest.mark.parametrize(
    "source",
    [
        # another function, or one that works another way
        "h = x.cpu().numpy()\n" + BACK.format("np.median(h, axis=0)"),
        "h = x.cpu().numpy()\n" + BACK.format("np.linalg.norm(h, 1)"),
        "h = x.cpu().numpy()\n" + BACK.format("h - np.add.reduce(h, axis=None)"),
        # NumPy's version says whether numbers of its own widen arrays
        "h = x.cpu().numpy() * np.sqrt(2)\n" + BACK.format("h"),
        "h = x.cpu().numpy()\n" + BACK.format("h.astype(np.float32) * np.log1p(3)"),
        "h = x.cpu().numpy()\n" + BACK.format("h * np.float64(2)"),
        "h = x.cpu().numpy()\n" + BACK.format("h[::-1].copy()"),
        "h = x.cpu().numpy()\n" + BACK.format("np.clip(h, *ends)"),
        "h = x.cpu().numpy()\n" + BACK.format("smooth(h)"),
        # an array of the host beside it
        "h = x.cpu().numpy()\n" + BACK.format("h * window"),
        # the array is read by more code
        "h = x.cpu().numpy()\n" + BACK.format("h") + "np.save('h.npy', h)\n",
        "for _ in range(3):\n    h = x.cpu().numpy()\n    y = torch.from_numpy(h).to(0)"
        "\nz = h\n",
        "for _ in range(3):\n    y = torch.from_numpy(h)\n    h = x.cpu().numpy()",
        "def f(a):\n    global h\n    h = a.cpu().numpy()\n"
        "    return torch.from_numpy(h).to(0)\ny = f(x)\n",
        # it stays on the host
        "h = np.exp(x.cpu().numpy())\ny = torch.from_numpy(h)\n",
        "h = x.cpu().numpy()\ny = torch.from_numpy(h).pin_memory().to(0)\n",
        # whether the transform is of float64 depends on NumPy
        "h = np.fft.fft(x.cpu().numpy())\n" + BACK.format("np.abs(h)"),
        # of another dtype in torch
        "h = x.cpu().numpy()\n" + BACK.format("np.where(h > 0, 1.0, 0.0)"),
        "h = x.cpu().numpy()\n" + BACK.format("(h > 0) * 2.0"),
        # a number of an array widens others, and is no part of it
        "h = x.cpu().numpy()\n" + BACK.format("h - h.astype(np.float64).mean()"),
        "h = x.cpu().numpy()\nm = h.astype(float)[0, 0]\n" + BACK.format("h * m"),
        "h = x.cpu().numpy()\nm = h[0, 0]\nm += 1\n" + BACK.format("h"),
        "h = x.cpu().numpy()\nm = h.max()\nn = m\nn += 1\n" + BACK.format("h - m"),
        # torch takes no such axes, dtypes or flags
        "h = x.cpu().numpy()\n" + BACK.format("np.concatenate([h, h], axis=None)"),
        "h = x.cpu().numpy()\n" + BACK.format("np.roll(h, 1, axis=(0, 1))"),
        "h = x.cpu().numpy()\n" + BACK.format("np.expand_dims(h, (0, 1))"),
        "h = x.cpu().numpy()\n" + BACK.format("h.sum(axis=0, keepdims=1)"),
        "h = x.cpu().numpy()\n" + BACK.format("h.sum(axis=(), keepdims=True)"),
        "h = x.cpu().numpy()\n" + BACK.format("h @ h.T.astype(np.float64)"),
        # the same memory in NumPy alone
        "h = x.cpu().numpy()\ng = np.asarray(h)\ng[0] = 3\n" + BACK.format("h"),
        "h = x.cpu().numpy()\ng = h.astype('float32', copy=False)\ng[0] = 3\n"
        + BACK.format("h"),
        "import jax.numpy as np\nh = x.cpu().numpy()\n" + BACK.format("np.exp(h)"),
    ],
)
def test_what_may_differ_is_let_be(source: str) -> None:
    assert not without_numpy(CellCode(source))


@pytest.mark.parametrize(("dtype", "is_edited"), [("float", True), ("int", False)])
def test_what_numpy_makes_of_other_dtypes_is_let_be(
    tmp_path: Path, dtype: str, is_edited: bool
) -> None:
    source = "h = np.exp(x.cpu().numpy())\n" + BACK.format("h")
    cell, size_bytes, both = Cell(source), 1 << 22, ([1 << 20], [1 << 20])
    with cell.operator("aten::to"), cell.operator("aten::copy_", both, dtype):
        cell.copy("DtoH", size_bytes)
    cell.python(1_000_000)
    with cell.operator("aten::to"), cell.operator("aten::copy_"):
        cell.copy("HtoD", size_bytes)
    cell.wait()
    change = changes_of(round_trip, cell.evidence(tmp_path))["stay-on-gpu"]
    assert bool(change.code) == is_edited

"""Results that a cell keeps on the host: no copy is waited for before all are done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.profiler.advice.program import changes_of
from tests.profiler.advice.test_read_back import LARGE, reads
from warpbook_profiler.techniques.host.read_back import read_back

SETUP = """
import numpy as np
torch.manual_seed(0)
xs = list(torch.rand(5, 3, 4))
named = {f"x{i}": x for i, x in enumerate(xs)}
def model(x):
    return x * 2 + 1
"""
KEEPS = [
    "out = np.empty((5, 3, 4), dtype=np.float32)\n"
    "for i, x in enumerate(xs):\n    out[i] = model(x).cpu().numpy()\n",
    "def films(xs):\n    out = torch.zeros(len(xs), 3, 2)\n"
    "    for i in range(len(xs)):\n"
    "        out[i, :, :] = model(xs[i])[:, :2].cpu()\n    return out\n"
    "out = films(xs)\n",
    "out = torch.empty((5, 3, 4))\nat = 0\nwhile at < 5:\n"
    "    out[at].copy_(model(xs[at]))\n    at += 1\n",
    "out = {}\nfor name, x in named.items():\n    out[name] = model(x).cpu().numpy()\n"
    "total = sum(one.sum() for one in out.values())\n",
    "out = {name: model(x).cpu() for name, x in named.items()}\n",
    "def one(x):\n    y = model(x)\n    return y.cpu()\nout = list(map(one, xs))\n",
    "out = []\ndef one(x):\n    return model(x).cpu().numpy()\n"
    "for x in xs:\n    out.append(one(x))\n",
]


def edit_of(tmp_path: Path, source: str) -> str:
    cell = reads(source, LARGE)
    return changes_of(read_back, cell.evidence(tmp_path))["pinned-results"].code


class Watched:
    """Which copies were not waited for, on a machine that waits for each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.pins = 0, 0
        to, copy_, empty, zeros = torch.Tensor.to, torch.Tensor.copy_, *self._makes
        monkeypatch.setattr(torch.Tensor, "to", self._noting(to))
        monkeypatch.setattr(torch.Tensor, "copy_", self._noting(copy_))
        monkeypatch.setattr(torch, "empty", self._pinning(empty))
        monkeypatch.setattr(torch, "zeros", self._pinning(zeros))
        monkeypatch.setattr(torch.cuda, "synchronize", self._wait)

    _makes = torch.empty, torch.zeros

    def _noting(self, method: Any) -> Any:
        def noted(tensor: torch.Tensor, *given: Any, **options: Any) -> torch.Tensor:
            self.left += options.get("non_blocking", False)
            return method(tensor, *given, **options)

        return noted

    def _pinning(self, make: Any) -> Any:
        def made(*sizes: Any, pin_memory: bool = False, **options: Any) -> torch.Tensor:
            self.pins += pin_memory
            return make(*sizes, **options)

        return made

    def _wait(self) -> None:
        self.left = 0


@pytest.mark.parametrize("source", KEEPS)
def test_copies_are_waited_for_after_all_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    code = edit_of(tmp_path, source)
    before, after = ({"torch": torch} for _ in range(2))
    exec(SETUP + source, before)
    watched = Watched(monkeypatch)
    exec(SETUP + code, after)
    assert watched.left == 0
    assert watched.pins == ("empty" in source or "zeros" in source)
    assert code.count("synchronize()") == 1 and code.count("non_blocking=True") == 1
    values = (one["out"] for one in (before, after))
    first, second = (
        list(value.values()) if isinstance(value, dict) else value for value in values
    )
    assert all(
        torch.equal(torch.as_tensor(one), torch.as_tensor(other))
        for one, other in zip(first, second, strict=True)
    )


@pytest.mark.parametrize(
    "source",
    [
        # somebody looks at it in the turn
        "out = {}\nfor name, x in named.items():\n    out[name] = model(x).cpu()\n"
        "    print(out[name].sum())\n",
        "for x in xs:\n    y = model(x).cpu()\n    total = y.sum()\n",
        "def one(x):\n    return model(x).cpu()\nout = [one(x).sum() for x in xs]\n",
        # an array of the person's, whose rows may be copies, or of unknown sizes
        "for i, x in enumerate(xs):\n    film[i] = model(x).cpu().numpy()\n",
        "out = np.empty((5, 3, 4))\nfor i in order:\n    out[i] = model(xs[0]).cpu()\n",
        "out = np.empty_like(film)\nfor i in range(5):\n    out[i] = model(x).cpu()\n",
    ],
)
def test_what_may_be_looked_at_before_is_waited_for(
    tmp_path: Path, source: str
) -> None:
    assert not edit_of(tmp_path, source)

"""Work of the host as several people write it: each technique names it and edits it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from tests.profiler.advice.program import Cell, changes_of
from tests.profiler.advice.test_called_edits import prepared
from tests.profiler.advice.test_host_loops import prints
from tests.profiler.advice.test_made_values import made
from tests.profiler.advice.test_pinned_code import copies
from tests.profiler.advice.test_read_back import LARGE, SMALL, reads
from warpbook.kernel.runs.called_code import called_code
from warpbook_profiler.advice.candidates import liberal_edits
from warpbook_profiler.advice.proposal import Rule
from warpbook_profiler.model.change import Change
from warpbook_profiler.techniques.data.lists import lists
from warpbook_profiler.techniques.data.made_on_host import made_on_host
from warpbook_profiler.techniques.host.masks import masks
from warpbook_profiler.techniques.host.printing import printing
from warpbook_profiler.techniques.host.read_back import read_back
from warpbook_profiler.techniques.host.round_trip import round_trip
from warpbook_profiler.techniques.host.transfers import transfers
from warpbook_profiler.techniques.host.waits import waits
from warpbook_profiler.techniques.host.waits_in_loop import waits_in_loop
from warpbook_profiler.verdict.called_edits import called_edits

SETUP = """\
import math
import numpy as np
dev = "cpu"
"""

#: what an earlier cell defines, and the cell; of both, WORK and VALUE are a technique's
WAYS = {
    "loop": ("", "out = []\nfor x in xs:\n    WORK\n    out.append(VALUE)\n"),
    "dict": (
        "",
        "out = {}\nfor name, x in enumerate(xs):\n    WORK\n    out[name] = VALUE\n",
    ),
    "index": (
        "",
        "out = []\nfor i in range(len(xs)):\n    x = xs[i]\n    WORK\n"
        "    out += [VALUE]\n",
    ),
    "main": (
        "",
        "def main(items):\n    found = []\n    with torch.no_grad():\n"
        "        for x in items:\n            WORK\n            found.append(VALUE)\n"
        "    return found\n\nout = main(xs)\n",
    ),
    "helper": (
        "def one(x, dim=-1, device=dev):\n    WORK\n    return VALUE\n",
        "out = [one(x) for x in xs]\n",
    ),
    "whole": (
        "@torch.no_grad()\ndef all_of(items, verbose=False):\n"
        "    if not len(items):\n        return []\n    found = []\n"
        "    for x in items:\n        WORK\n        found.append(VALUE)\n"
        "    return found\n",
        "out = all_of(items=xs)\n",
    ),
    "generator": (
        "def each(items):\n    for x in items:\n        WORK\n        yield VALUE\n",
        "out = []\nfor x in each(xs):\n    out.append(x)\n",
    ),
    "method": (
        "class Study:\n    def __init__(self, items):\n        self.items = items\n"
        "        self.found = []\n\n    def one(self, x):\n        WORK\n"
        "        self.found.append(VALUE)\n\n    def run(self):\n"
        "        for x in self.items:\n            self.one(x)\n",
        "study = Study(xs)\nstudy.run()\nout = study.found\n",
    ),
    "module": (
        "class Net(nn.Module):\n    def forward(self, x):\n        WORK\n"
        "        return VALUE\n\nnet = Net()\n",
        "with torch.no_grad():\n    out = [net(x) for x in xs]\n",
    ),
    "held": (
        "class Part:\n    def step(self, x):\n        WORK\n        return VALUE\n\n"
        "class Whole:\n    def __init__(self):\n        self.part = Part()\n"
        "    def __call__(self, x):\n        return self.part.step(x)\n\n"
        "whole = Whole()\n",
        "out = {}\nfor i, x in enumerate(xs):\n    out[f'x{i}'] = whole(x)\n",
    ),
}


class Technique(NamedTuple):
    """What one technique's cells do, and what they are after its edit."""

    rule: Rule
    trace: Callable[[str], Cell]
    setup: str
    work: str
    value: str
    #: whether an edit did it
    is_done: Callable[[str], bool]


def _waited(source: str) -> Cell:
    cell = Cell(source)
    for _ in range(9):
        cell.call("aten::mul", 300_000)
        cell.wait("cudaDeviceSynchronize")
        cell.python(100_000)
    cell.wait()
    return cell


def _read(source: str) -> Cell:
    cell = Cell(source)
    for _ in range(9):
        cell.call("aten::sum", 100_000)
        cell.item()
        cell.python(80_000)
    cell.wait()
    return cell


def _chosen(source: str) -> Cell:
    cell = Cell(source)
    for _ in range(18):
        with cell.operator("aten::index", ([64], [])):
            with cell.operator("aten::nonzero", ([64],)):
                cell.kernel(3_000)
                cell.copy("DtoH", 8)
            cell.kernel(5_000)
        cell.call("aten::sub", 4_000)
    cell.wait()
    return cell


def _made_of_lists(source: str) -> Cell:
    cell = Cell(source)
    for _ in range(20):
        cell.call("aten::sum", 4_000)
        with cell.operator("aten::lift_fresh"):
            pass
        with cell.operator("aten::to"), cell.operator("aten::_to_copy"):
            with cell.operator("aten::copy_"):
                cell.copy("HtoD", 128)
                cell.wait()
    cell.wait()
    return cell


def _tripped(source: str) -> Cell:
    cell = Cell(source)
    for _ in range(8):
        cell.call("aten::mm", 100_000)
        with cell.operator("aten::to", ([1024, 1024],)), cell.operator("aten::copy_"):
            cell.copy("DtoH", 4 << 20)
        cell.python(900_000)
        with cell.operator("aten::to", ([1024, 1024],)), cell.operator("aten::copy_"):
            cell.copy("HtoD", 4 << 20)
    cell.wait()
    return cell


TENSORS = "xs = list(torch.rand(6, 4, 4))\n"
TECHNIQUES = {
    "pinned": Technique(
        *(transfers, copies, TENSORS, "y = x.to(dev)", "y.sum()"),
        lambda code: "pinned(" in code and "non_blocking=True" in code,
    ),
    "pinned-results": Technique(
        *(read_back, lambda source: reads(source, LARGE), TENSORS),
        *("y = x * 2 + 1", "y.cpu()"),
        lambda code: "non_blocking=True" in code,
    ),
    "stack-results": Technique(
        *(read_back, lambda source: reads(source, SMALL), TENSORS),
        *("y = x * 2 + 1", "y.cpu().numpy()"),
        lambda code: "stack(" in code,
    ),
    "make-on-gpu": Technique(
        *(made_on_host, made, TENSORS),
        "f = torch.linspace(0, 1, 4)\nfy, fx = torch.meshgrid(f, f, indexing='ij')\n"
        "wave = torch.polar(torch.ones(4, 4), fx + fy)\nwave = wave.to(dev)",
        "(wave * x).abs()",
        lambda code: "device=dev" in code or "torch.device(" in code,
    ),
    "stay-on-gpu": Technique(
        *(round_trip, _tripped, TENSORS),
        "a = x.cpu().numpy()\na = np.clip(a - np.float32(0.1), 0, 1)\n"
        "a = np.arcsinh(a / np.float32(0.02))\ny = torch.from_numpy(a).to(dev)",
        "y + 1",
        lambda code: "asinh" in code.replace("np.arcsinh(a", ""),
    ),
    "tensor-once": Technique(
        *(lists, _made_of_lists, "xs = [[1, 2, 3], [4, 5], [6, 7, 8, 9]]\n"),
        *("i = torch.tensor(x, device=dev)", "i.sum() * 2"),
        lambda code: code.count("torch.tensor(") < 2 or "split" in code,
    ),
    "read-once": Technique(
        *(waits, _read, TENSORS, "y = x.square().mean()", "y.item()"),
        lambda code: "stack(" in code or "cat(" in code,
    ),
    "print-once": Technique(
        *(printing, lambda source: prints(source, 20), TENSORS),
        *("y = x.square().mean()\nprint(f'mean {y}')", "y + 1"),
        lambda code: "stack(" in code,
    ),
    "keep-mask": Technique(
        *(masks, _chosen, TENSORS),
        *("m = x > 0.5\nd = x[m] - 2 * x[m]", "d.square().mean()"),
        lambda code: "where(" in code or "masked_fill" in code,
    ),
    "sync-in-loop": Technique(
        *(waits_in_loop, _waited, TENSORS),
        *("y = x * 2 + 1\ntorch.cuda.synchronize()", "y"),
        lambda code: code.count("synchronize()") == 0,
    ),
}


def written(way: str, technique: Technique) -> tuple[str, str]:
    """Write a technique's work one way: what comes before the cell, and the cell."""
    return tuple(
        "\n".join(_lines(part, technique))
        for part in (SETUP + technique.setup + WAYS[way][0], WAYS[way][1])
    )


def _lines(text: str, technique: Technique) -> Iterator[str]:
    for line in text.replace("VALUE", technique.value).splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        work = technique.work.splitlines() if line.strip() == "WORK" else [line.strip()]
        yield from (indent + one for one in work)


def edits(
    tmp_path: Path, name: str, technique: Technique, setup: str, source: str
) -> tuple[bool, list[Change]]:
    """Tell whether a change is named, and give its edits."""
    evidence = technique.trace(source).evidence(tmp_path)
    found = changes_of(technique.rule, evidence)
    if name not in found:
        return False, []
    if found[name].code:
        return True, [found[name]]
    called = called_code(source, prepared(setup))
    rules = called_edits(evidence.trace, called, [name])
    changes = (found[name],)
    return True, [*liberal_edits(source, changes, True, called=called, written=rules)]


def values(setup: str, source: str) -> tuple[Any, str]:
    names = prepared(setup)
    torch.manual_seed(0)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(source, names)
    out = names["out"]
    return list(out.values() if isinstance(out, dict) else out), printed.getvalue()


def outcome(tmp_path: Path, name: str, way: str) -> str:
    """Tell how far one program comes: "done", or why not."""
    technique = TECHNIQUES[name]
    setup, source = written(way, technique)
    is_named, found = edits(tmp_path, name, technique, setup, source)
    if not is_named:
        return "not named"
    expected, printed = values(setup, source)
    problems = []
    for one in found:
        if not technique.is_done(one.code):
            problems.append("not done")
            continue
        try:
            computed, shown = values(setup, one.code)
        except Exception as problem:  # noqa: BLE001  # whatever an edit did wrong
            problems.append(repr(problem))
            continue
        same = len(computed) == len(expected) and all(
            torch.allclose(torch.as_tensor(a), torch.as_tensor(b), 1e-4, 1e-5)
            for a, b in zip(computed, expected, strict=True)
        )
        if same and shown == printed:
            return "done"
        problems.append("differs")
    return "; ".join(problems) or "no edit"


@pytest.fixture(autouse=True)
def without_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU nothing is waited for, and nothing can be pinned."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor.clone())
    empty = torch.empty
    monkeypatch.setattr(
        torch, "empty", lambda *a, pin_memory=False, **more: empty(*a, **more)
    )


#: of these no edit is known yet, or a trace alone does not tell whose work it is
_LEFT = {
    "pinned": ("method",),
    "stack-results": ("method",),
    "tensor-once": ("index",),
    "read-once": ("method",),
    "keep-mask": ("whole", "method"),
}


@pytest.mark.parametrize(
    ("name", "way"),
    [
        (name, way)
        for name in TECHNIQUES
        for way in WAYS
        if way not in _LEFT.get(name, ())
    ],
)
def test_each_way_is_named_and_edited(tmp_path: Path, name: str, way: str) -> None:
    assert outcome(tmp_path, name, way) == "done"


def test_waits_that_are_timed_stay(tmp_path: Path) -> None:
    technique = TECHNIQUES["sync-in-loop"]
    setup, source = written("helper", technique)
    timed = (
        "import time\nout, took = [], []\nfor x in xs:\n    begun = time.time()\n"
        "    out.append(one(x))\n    took.append(time.time() - begun)\n"
    )
    assert edits(tmp_path, "sync-in-loop", technique, setup, source)[0]
    assert edits(tmp_path, "sync-in-loop", technique, setup, timed) == (False, [])

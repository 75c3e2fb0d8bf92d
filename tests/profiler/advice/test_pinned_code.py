"""Edits that pin what a cell copies: found by its name, or left alone."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.profiler.advice.edited_cells import agrees
from tests.profiler.advice.program import Cell, changes_of, evidence_of
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.code.containers import Containers
from warpbook_profiler.advice.code.value_flow import ValueFlow
from warpbook_profiler.techniques.host.pinning import pinning
from warpbook_profiler.techniques.host.transfers import transfers

SIZE = 16 << 20
#: three shapes of what is on the host
SETUP = (
    "xs = [torch.randn(4) for _ in range(6)]\n"
    "log = [{'a': torch.randn(4), 'n': 3} for _ in range(6)]\n"
    "pairs = [(torch.randn(4), 'name') for _ in range(6)]\n"
    "whole, out_of, out = torch.randn(6, 4), torch.nn.Linear(4, 4), []\n"
    "arrays = {f'shot_{i}': torch.randn(4).numpy() for i in range(6)}\n"
)
HELPER = "def move(batch):\n    return batch['a'].to(dev)\n"
GENERATOR = "def moved(xs):\n    for x in xs:\n        yield x.to(dev)\n"


def copies(source: str) -> Cell:
    cell = Cell(source)
    for _ in range(6):
        with cell.operator("aten::to"), cell.operator("aten::copy_"):
            cell.copy("HtoD", SIZE)
        cell.call("aten::sum", 20_000)
    cell.wait()
    return cell


def pins(source: str) -> Cell:
    cell = Cell(source)
    for _ in range(6):
        with cell.operator("aten::pin_memory"):
            cell.python(2_000_000)
        with cell.operator("aten::to"), cell.operator("aten::copy_"):
            cell.copy("HtoD", SIZE, "Pinned")
        cell.call("aten::sum", 20_000)
    cell.wait()
    return cell


@pytest.fixture(autouse=True)
def pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a GPU nothing can be pinned; it is the same tensor then."""
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor.clone())


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("for x in xs:\n    out.append(x.to(dev).sum())", ["xs"]),
        (f"{HELPER}for b in map(move, log):\n    out.append(b.sum())", ["log"]),
        (f"{HELPER}out = [move(batch).sum() for batch in log]", ["log"]),
        (f"{GENERATOR}for y in moved(xs):\n    out.append(y.sum())", ["xs"]),
        ("for x, name in pairs:\n    out.append(x.to(dev).sum())", ["pairs"]),
        (
            "for x, b in zip(xs, log):\n"
            "    out.append((x.to(dev) * b['a'].to(dev)).sum())",
            ["xs", "log"],
        ),
        ("y = out_of.to(dev)\nfor x in xs:\n    out.append(x.to(dev).sum())", ["xs"]),
        ("for i in range(6):\n    out.append(whole[i].to(dev).sum())", ["whole"]),
        # the name is another tensor's afterwards
        (
            "for x in xs:\n    x = x.to(dev)\n    x -= x.mean()\n    x = x.exp()\n"
            "    out.append(x.sum())",
            ["xs"],
        ),
        ("for i, _ in enumerate(xs):\n    out.append(xs[i].to(dev).sum())", ["xs"]),
        # arrays of NumPy, by their keys
        (
            "for key in sorted(arrays):\n"
            "    out.append(torch.from_numpy(arrays[key]).to(dev).sum())",
            ["arrays"],
        ),
        (
            "def load(key):\n    return torch.as_tensor(arrays[key]).to(dev)\n"
            "out = [load(f'shot_{i}').sum() for i in range(6)]",
            ["arrays"],
        ),
        (
            "def load(i):\n    return torch.from_numpy(arrays[f'shot_{i}']).to(dev)\n"
            "for i in range(6):\n    out.append(load(i).sum())",
            ["arrays"],
        ),
    ],
)
def test_what_is_copied_is_pinned_before(
    tmp_path: Path, source: str, names: list[str]
) -> None:
    change = changes_of(transfers, copies(source).evidence(tmp_path))["pinned"]
    assert agrees(change, source, SETUP, "out")
    assert all(f"{name} = pinned({name})" in change.code for name in names)
    assert change.code.count(" = pinned(") == len(names)
    assert change.code.count("non_blocking=True") == len(names)


@pytest.mark.parametrize(
    "source",
    [
        # written, made here, or of several places
        "for x in xs:\n    out.append(x.to(dev).sum())\n    x.add_(1)",
        "for x in xs:\n    y = x.to(dev)\nxs.append(y)",
        "for i in range(6):\n    y = whole[i].to(dev)\n    whole[i, 0] = 1",
        "data = make()\nfor x in data:\n    y = x.to(dev)",
        "for x in xs:\n    x = x * 2\n    y = x.to(dev)",
        "for x in xs:\n    x += 1\n    x = x.to(dev)",
        # what the turn before it left
        "for x in xs:\n    pass\nfor _ in xs:\n    y = x.to(dev)\n    x = y.cpu()",
        # rows that an index gathers are new memory
        "for i in order:\n    y = whole[i].to(dev)",
        "def load(i):\n    return whole[i].to(dev)\nfor i in order:\n    y = load(i)",
        "def move(b):\n    return b.to(dev)\nfor x in xs:\n    move(x)\nmove(whole)",
        "for x in xs:\n    y = (x + 1).to(dev)",
    ],
)
def test_what_has_no_name_or_changes_is_let_be(tmp_path: Path, source: str) -> None:
    change = changes_of(transfers, copies(source).evidence(tmp_path))["pinned"]
    assert not change.code


@pytest.mark.parametrize(
    "source",
    [
        "for x in xs:\n    y = x.to(dev)\n    out.append(y.sum())\n    shuffle(x)",
        "for x in xs:\n    augment.refill(buffer=x)\n    out.append(x.to(dev).sum())",
        "for i in range(6):\n    y = whole[i].to(dev)\n    fill(whole)",
    ],
)
def test_what_another_function_may_write_is_waited_for(
    tmp_path: Path, source: str
) -> None:
    change = changes_of(transfers, copies(source).evidence(tmp_path))["pinned"]
    assert " = pinned(" in change.code and "non_blocking" not in change.code


OWN = "class Batch:\n    def to(self, device):\n        return self.x.to(device)\n"


@pytest.mark.parametrize("is_in_cell", [True, False])
def test_a_method_of_a_persons_class_gets_no_option(
    tmp_path: Path, is_in_cell: bool
) -> None:
    source = f"{OWN * is_in_cell}for x in xs:\n    y = x.to(dev)\n"
    evidence = copies(source).evidence(tmp_path)
    called = {} if is_in_cell else {"Batch.to": OWN.partition("\n    ")[2]}
    run = dataclasses.replace(evidence.run, called=called)
    change = changes_of(transfers, evidence_of(evidence.events, run))["pinned"]
    assert "xs = pinned(xs)" in change.code and "non_blocking" not in change.code


def test_batches_of_a_loader_are_not_pinned_before(tmp_path: Path) -> None:
    cell = copies("for x in xs:\n    y = x.to(dev)")
    with cell.operator("enumerate(DataLoader)#next", category="user_annotation"):
        pass
    assert not changes_of(transfers, cell.evidence(tmp_path))["pinned"].code


@pytest.mark.parametrize(
    ("source", "is_edited"),
    [
        ("for x in xs:\n    y = x.pin_memory().to(dev, non_blocking=True)", True),
        (f"{GENERATOR}for y in moved(xs):\n    y.sum()", True),
        ("for x in xs:\n    y = (x * 2).pin_memory().to(dev)", False),
        ("for x in xs:\n    y = x.pin_memory().to(dev)\n    x.zero_()", False),
        ("for x in xs:\n    y = x.pin_memory().to(dev)\n    x.data[:] = 0", False),
        (
            "for x in xs:\n    y = x.pin_memory().to(dev)\n    v = x.view(-1); v += 1",
            False,
        ),
    ],
)
def test_memory_pinned_in_each_turn_is_pinned_once(
    tmp_path: Path, source: str, is_edited: bool
) -> None:
    source = source.replace("yield x.to", "yield x.pin_memory().to")
    change = changes_of(pinning, pins(source).evidence(tmp_path))["pin-once"]
    assert bool(change.code) == is_edited
    if is_edited:
        assert agrees(change, source, SETUP, "y")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("x = 1\ndef f(x):\n    return x.to(d)\nf(a[0])", "a"),
        ("y = [x.to(d) for x in a]\nfor x in b:\n    pass", "a"),
        ("for i, x in enumerate(a.values()):\n    x.to(d)", "a"),
        ("def f(x, k):\n    return x.to(d)\nfor x in a:\n    f(x, 1)\nf(a, 2)", "a"),
        ("def f(x):\n    return x.to(d)\nf(*a)", ""),
        ("def f(x):\n    return x.to(d)\ng(f)", ""),
        ("f = lambda x: x.to(d)\nf(a)", ""),
        ("for x in a + b:\n    x.to(d)", ""),
        ("with a as x:\n    x.to(d)", ""),
    ],
)
def test_the_name_that_holds_a_value(source: str, name: str) -> None:
    code = CellCode(source)
    (call,) = code.calls("to")
    function: Any = call.node.func
    assert Containers(ValueFlow(code)).holding(function.value) == name

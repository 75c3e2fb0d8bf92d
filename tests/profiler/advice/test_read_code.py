"""Sketches of results that a loop reads, and of parts that a mask chooses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.profiler.advice.edited_cells import agrees
from tests.profiler.advice.program import Cell
from tests.profiler.advice.program import changes_of as changes_by
from warpbook_profiler.techniques.host.waits import waits

#: what a loop does with a result, behind what it begins with
LOOP = "{}\nfor x in xs:\n    {}"
SETUP = "from collections import defaultdict\nxs = torch.randn(9, 4)\nname = 'a'"


def reads(source: str | None) -> Cell:
    cell = Cell(source)
    for _ in range(9):
        cell.call("aten::sum", 20_000)
        cell.item()
    return cell


def test_a_cast_is_no_read(tmp_path: Path) -> None:
    source = "for x in xs:\n    y = x.float() * float(3)\n    t += y.sum().item()"
    change = changes_by(waits, reads(source).evidence(tmp_path))["read-once"]
    assert change.line == 3 and "y.sum().item()" in change.evidence


@pytest.mark.parametrize(
    "source",
    [
        LOOP.format("kept = defaultdict(list)", "kept['a'].append(-x.sum().item())"),
        LOOP.format("kept = {'a': [], 'b': []}", "kept['a'].append(x.max().item())"),
        LOOP.format("kept = {'n': 0, 'a': 0.0}", "kept['a'] += x.sum().item() * 2"),
        LOOP.format("kept = {'a': []}", "kept['a'].append(x.sum().item())")
        + "\n    kept['b'] = 3",
        LOOP.format("kept, t = [], 0.0", "y = x.sum()\n    kept.append(y.item())")
        + "\n    t += y.item() * 2",
        "kept = [x.sum().item() for x in xs if x[0] > 0]",
        "kept = sum(-x.std().item() for x in xs) / len(xs)",
        "def most(xs):\n    return max([x[0].item() for x in xs])\nkept = most(xs)",
        "kept = [x.sum().item() for x in xs[:0]]",
        "kept = [-x.item() for x in torch.arange(9, dtype=torch.uint8)]",
        # Python's numbers are wider than bfloat16 and 8 bits, and `float` gives its own
        "kept = 0\nfor x in [torch.tensor(1, dtype=torch.bfloat16)] * 400:\n"
        "    kept += x.item()",
        "kept = 0\nfor x in [torch.tensor(200, dtype=torch.uint8)] * 9:\n"
        "    kept += x.item() * 2",
    ],
)
def test_results_are_read_after_the_loop(tmp_path: Path, source: str) -> None:
    change = changes_by(waits, reads(source).evidence(tmp_path))["read-once"]
    assert agrees(change, source, SETUP, "kept")
    assert ".item()" not in change.code.removesuffix("torch.as_tensor(kept).item()")


@pytest.mark.parametrize(
    "source",
    [
        # the key, or what is there before the loop, is not known
        LOOP.format("kept = {'a': []}", "kept[name].append(x.sum().item())"),
        LOOP.format("kept = {'a': [0.5]}", "kept['a'].append(x.sum().item())"),
        LOOP.format("kept = defaultdict(set)", "kept['a'].append(x.sum().item())"),
        # a turn looks at what others gave
        LOOP.format("kept = {'a': []}", "kept['a'].append(x.sum().item())")
        + "\n    print(kept)",
        LOOP.format("kept = {'a': []}", "kept['a'].append(x.sum().item())")
        + "\n    kept['a'].append(1)",
        # whole numbers, and what may not be computed at all
        LOOP.format("kept = {'a': 0}", "kept['a'] += x.sum().item()"),
        "kept = seen or [x.sum().item() for x in xs]",
        "kept = [[y.sum().item() for y in x] for x in xs]",
        "kept = {x.sum().item() for x in xs}",
        # what is taken one by one, and what a function looks at
        "kept = (x.sum().item() for x in xs)\nfirst = next(kept)",
        "def last():\n    return kept[-1]\n"
        + LOOP.format("kept = []", "kept.append(x.sum().item()); print(last())"),
    ],
)
def test_results_that_are_needed_at_once_are_read(tmp_path: Path, source: str) -> None:
    change = changes_by(waits, reads(source).evidence(tmp_path))["read-once"]
    assert not change.code

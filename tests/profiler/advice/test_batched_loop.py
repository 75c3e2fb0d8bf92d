"""Loops over rows that become one batch: what they compute, and those that stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.profiler.advice.edited_cells import agrees
from tests.profiler.advice.program import Cell, changes_of
from warpbook_profiler.techniques.operations.matrix_loop import matrix_loop

SETUP = (
    "import torch.nn.functional as F\n"
    "A = torch.randn(40, 6, 6) + 9 * torch.eye(6)\nb = torch.randn(40, 6)\n"
    "table, at = torch.randn(50, 6), torch.randint(0, 50, (40, 9))\n"
    "wide, ridge, acc = torch.randn(6, 40), torch.eye(6), torch.zeros(50, 6)\n"
    "def own(x): return x"
)
SOLVE = "torch.linalg.solve"


def solved(source: str, selects: int, *others: str) -> Cell:
    cell = Cell(source)
    for _ in range(40):
        cell.views(*["aten::select"] * selects)
        for name in others:
            cell.call(name, 3_000, dims=([6, 6], [6, 6]))
        with cell.operator("aten::linalg_solve"):
            dims = ([6, 6], [6])
            cell.call("aten::_linalg_solve_ex", 8_000, 9_000, dims=dims)
    cell.wait()
    return cell


def edited(tmp_path: Path, source: str, selects: int, *others: str) -> str:
    evidence = solved(source, selects, *others).evidence(tmp_path)
    return changes_of(matrix_loop, evidence)["batch-linalg"].code


@pytest.mark.parametrize(
    ("source", "selects", "names"),
    [
        (
            "found = []\nfor u in range(40):\n    V = table[at[u]]\n"
            f"    found.append({SOLVE}(V.T @ V + ridge, V.T @ V[:, 0] + b[u]))\n"
            "found = torch.stack(found)\n",
            3,
            ("found", "V", "u"),
        ),
        (
            "def fit(A, b):\n    every = []\n    for i in range(len(A)):\n"
            "        low, high = torch.sort(b[i])\n"
            f"        every.append({SOLVE}(A[i].mT + ridge, low))\n"
            "    return torch.stack(every)\ny = fit(A, b)\n",
            2,
            ("y",),
        ),
        (
            "class Fit:\n    def __call__(self, n, y):\n        for i in range(n):\n"
            f"            y[i] = {SOLVE}(A[i] + ridge, wide[:, i].softmax(-1))\n"
            "        return y\ny = Fit()(39, torch.zeros(40, 6))\n",
            3,
            ("y",),
        ),
        (
            "for i in range(40):\n"
            f"    change = F.relu({SOLVE}(A[i], table[at[i]].T)).T\n"
            "    acc.index_add_(0, at[i], change)\n",
            3,
            ("acc", "change", "i"),
        ),
    ],
)
def test_turns_of_a_loop_are_one_batch(
    tmp_path: Path, source: str, selects: int, names: tuple[str, ...]
) -> None:
    evidence = solved(source, selects).evidence(tmp_path)
    change = changes_of(matrix_loop, evidence)["batch-linalg"]
    assert "torch.vmap" in change.code
    assert agrees(change, source, SETUP, *names)


TURN = "y = []\nfor i in range(40):\n{}    y.append({}(A[i] + ridge, b[i]))\n"


@pytest.mark.parametrize(
    ("source", "selects"),
    [
        # a list gives its rows without an operator
        (TURN.format("", SOLVE), 1),
        # each turn draws, waits, or does what nobody knows
        (TURN.format("    c = F.dropout(b[i])\n", SOLVE), 3),
        (TURN.format("    c = b[i].sum().item()\n", SOLVE), 3),
        (TURN.format("    c = own(b[i])\n", SOLVE), 3),
        (TURN.format("    print(b[i])\n", SOLVE), 3),
        (TURN.format("    b[i].mul_(2)\n", SOLVE), 3),
        # the number of the turn, and what other turns left
        (TURN.format("    c = b[i] * i\n", SOLVE), 3),
        (TURN.format("    c = b[i - 1]\n", SOLVE), 3),
        (TURN.format("    if len(y) > 3: break\n", SOLVE), 2),
        (f"for i in range(1, 40):\n    b[i] = {SOLVE}(A[i] + ridge, b[i])\n", 3),
        (f"for i in range(40):\n    b[i] = {SOLVE}(A[i] + ridge, b[i])\n", 3),
        (f"for i in range(40):\n    b = {SOLVE}(A[i], b)\n    y[i] = b\n", 2),
    ],
)
def test_turns_that_may_differ_are_let_be(
    tmp_path: Path, source: str, selects: int
) -> None:
    evidence = solved(source, selects).evidence(tmp_path)
    changes = changes_of(matrix_loop, evidence).values()
    assert not any("vmap" in change.code for change in changes)


def test_a_mask_chooses_as_many_as_it_has(tmp_path: Path) -> None:
    source = TURN.format("    c = b[i][b[i] > 0]\n", SOLVE)
    evidence = solved(source, 4, "aten::nonzero").evidence(tmp_path)
    assert "vmap" not in changes_of(matrix_loop, evidence)["batch-linalg"].code

"""Additions that meet at few addresses: the edit computes the same sums."""

from __future__ import annotations

import pytest

from tests.profiler.advice.edited_cells import agrees
from tests.profiler.advice.test_library_rules import added

SETUP = (
    "bins, count = 5, 3000\n"
    "where = torch.randint(0, bins, (count,))\n"
    "weights = torch.rand(count)\nrows = torch.rand(count, 3)"
)


@pytest.mark.parametrize(
    "source",
    [
        "total = torch.ones(bins)\ntotal.scatter_add_(0, where, weights)\n",
        "def mass(at, what):\n"
        "    return torch.zeros(bins, dtype=what.dtype).index_add(0, at, what)\n"
        "total = mass(where.int(), weights) / mass(where, torch.ones(count))\n",
        "total = torch.zeros(bins, 3)\n"
        "for part, index in zip(rows.chunk(4), where.chunk(4)):\n"
        "    total = torch.index_add(total, 0, index, source=part)\n",
        "class Deposits:\n"
        "    def __init__(self):\n        self.total = torch.zeros(bins)\n"
        "    def add(self, at, energy):\n"
        "        self.total.scatter_add_(dim=0, index=at, src=energy)\n"
        "deposits = Deposits()\ndeposits.add(where, weights)\ntotal = deposits.total\n",
        # others than the slow ones, which a name does not tell apart
        "total = torch.zeros(bins).index_add_(0, where, weights)\n"
        "at = where[:18].view(6, 3)\n"
        "other = torch.zeros(bins, 3).scatter_add_(0, at, rows[:6])\n"
        "total = total + other.sum(1)\n",
        "total = torch.zeros(bins).scatter_add(0, where[:9], weights)\n",
        "total = torch.tensor(0.0).index_add(0, where[:1] * 0, weights[0])\n",
        "seen = torch.zeros(bins, dtype=torch.bool)\n"
        "total = seen.index_add(0, where, weights > 9)\n",
        "class Total(list):\n"
        "    def index_add_(self, axis, at, what):\n        self.append(what.sum())\n"
        "total = Total()\ntotal.index_add_(0, where, weights)\n",
    ],
)
def test_sums_go_through_copies_of_each_row(source: str) -> None:
    change = added(3_000.0).changes(source)["contention"]
    assert "spread_add(" in change.code
    assert agrees(change, source, SETUP, "total")


@pytest.mark.parametrize(
    "source",
    [
        "total = torch.zeros(2, bins)\n"
        "total.scatter_add_(1, where.view(2, -1), weights.view(2, -1))\n",
        "total = torch.zeros(bins).index_add_(0, where, weights, alpha=2)\n",
        "axis = 0\ntotal = torch.zeros(bins).scatter_add(axis, where, weights)\n",
    ],
)
def test_other_additions_have_no_edit(source: str) -> None:
    assert not added(3_000.0).changes(source)["contention"].code

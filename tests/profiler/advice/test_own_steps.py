"""Updates of a model's tensors that cells write themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.profiler.advice.program import Cell, changes_of
from tests.profiler.advice.test_model_patterns import change_of, nothing_of
from tests.profiler.advice.test_rewriting import agree, edits
from warpbook_profiler.techniques.host.optimizer import optimizer
from warpbook_profiler.techniques.models.foreach_ema import foreach_ema

NAME = "fused-optimizer"
STEP = ("aten::mul", "aten::mul_", "aten::add_", "aten::sub_")
BEFORE = (
    "ps = [torch.full((2 + n % 3, 4), 0.5, requires_grad=True) for n in range(5)]\n"
    "sum((p * p * n).sum() for n, p in enumerate(ps)).backward()\n"
    "ps.append(torch.ones(3, requires_grad=True))\nlr = 0.1\n"
    "vs = [torch.zeros_like(p) for p in ps]\nms = [torch.ones_like(p) for p in ps]\n"
    "state = {p: {'m': m, 'v': v} for p, m, v in zip(ps, ms, vs)}\n"
)


def steps(
    names: tuple[str, ...], tensors: int, trains: bool = True, same: bool = False
) -> Cell:
    cell = Cell(None)
    cell.call("AddmmBackward0" if trains else "aten::addmm", 20_000)
    for n in range(tensors):
        for name in names:
            size = (64 + (0 if same else n % 5), 64)
            cell.call(name, 2_000, dims=(size, size))
            cell.python(2_000)
    cell.wait()
    return cell


def test_an_update_in_a_loop_is_named(tmp_path: Path) -> None:
    change = change_of(optimizer, NAME, steps(STEP, 100), tmp_path)
    (bare,) = [steps(STEP, 100).window_ns]
    assert change.low_ns is not None and change.low_ns < bare / 10
    assert change_of(optimizer, NAME, steps(("aten::add_",), 100), tmp_path)


def test_a_step_with_decay_is_one_after_a_backward_pass(tmp_path: Path) -> None:
    """A running average calls the same operators."""
    decays = "aten::mul_", "aten::add_"
    assert change_of(optimizer, NAME, steps(decays, 100), tmp_path)
    nothing_of(optimizer, steps(decays, 100, trains=False), tmp_path)


@pytest.mark.parametrize(("alpha", "is_step"), [("1", 1), ("-0.1", 1), ("0.1", 0)])
def test_a_step_adds_all_and_an_average_a_share(
    tmp_path: Path, alpha: str, is_step: bool
) -> None:
    cell, size = Cell(None), (64, 64)
    cell.call("AddmmBackward0", 20_000)
    for _ in range(100):
        cell.call("aten::mul_", 2_000, dims=(size,))
        cell.call("aten::add_", 2_000, dims=(size, size, ()), scalars=("", "", alpha))
        cell.python(2_000)
    cell.wait()
    evidence = cell.evidence(tmp_path)
    assert bool(changes_of(foreach_ema, evidence)) != is_step


@pytest.mark.parametrize(
    "cell",
    [
        # nothing is trained, turns take one tensor again, or do other work
        steps(STEP, 100, trains=False),
        steps(STEP, 100, same=True),
        steps((*STEP, "aten::mm"), 100),
        steps(("aten::mul_",), 100),
        steps(STEP, 12),
    ],
)
def test_other_loops_are_no_update(tmp_path: Path, cell: Cell) -> None:
    nothing_of(optimizer, cell, tmp_path)


@pytest.mark.parametrize(
    ("loop", "results"),
    [
        (
            "with torch.no_grad():\n    for p, v in zip(ps[:5], vs):\n"
            "        g = p.grad + 0.01 * p\n        v.mul_(0.9)\n        v.add_(g)\n"
            "        p -= lr * v\n        p.grad = None\n",
            ["g", "p", "v", "left"],
        ),
        (
            "for p in ps:\n    if p.grad is None:\n        continue\n"
            "    m, v = state[p]['m'], state[p]['v']\n    g = p.grad.data\n"
            "    m.mul_(0.9).add_(g, alpha=0.1)\n"
            "    v.mul_(0.99).addcmul_(g, g, value=0.01)\n"
            "    p.data.addcdiv_(m, v.sqrt().add_(1e-8), value=-lr)\n",
            ["m", "v", "g", "p"],
        ),
        (
            "def update(ps):\n    for n, p in enumerate(ps):\n"
            "        if p.grad is not None:\n            with torch.no_grad():\n"
            "                vs[n] = 0.9 * vs[n] + 0.1 * p.grad.square()\n"
            "                p.sub_(lr / (1 + n) * p.grad.sign() / (1 - vs[n]).abs())\n"
            "update([])\nupdate(ps)\n",
            ["ps"],
        ),
    ],
)
def test_an_update_of_lists_computes_the_same(loop: str, results: list[str]) -> None:
    source = f"{BEFORE}{loop}left = [p.grad is None for p in ps]\n"
    found = [one for one in edits(source, NAME) if one.count("_foreach_") > 1]
    assert any(agree(source, one, "ps", "vs", "ms", *results) for one in found), found


@pytest.mark.parametrize(
    "body",
    [
        "s = s + p.grad.sum()",
        "p.add_(step(p), alpha=-lr) if p.grad is not None else None",
        "p.uniform_()",
        "n = 2",
        "print(p)",
        "if p.dim() > 1:\n        p.mul_(2)\n    p.add_(1)",
    ],
)
def test_other_updates_stay(body: str) -> None:
    assert not edits(f"for p in ps:\n    {body}\n", NAME)

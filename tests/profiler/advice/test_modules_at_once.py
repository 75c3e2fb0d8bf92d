"""Modules with the same layers, called in turns on the same input: one call of all."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.profiler.advice.edited_cells import agrees, tried
from tests.profiler.advice.program import Cell, changes_of, evidence_of
from warpbook_profiler.events.marks import make_marks
from warpbook_profiler.model.change import Change
from warpbook_profiler.techniques.models.experts_at_once import experts_at_once

SETUP = """
from torch import nn
def layers(wide=6):
    return nn.Sequential(nn.Linear(4, wide), nn.GELU(), nn.Linear(wide, 3, bias=False))
experts = nn.ModuleList(layers() for _ in range(5)).requires_grad_(False)
heads = nn.ModuleDict({"a": nn.Linear(4, 2), "b": nn.Linear(4, 2)})
several = [layers(), layers(7), nn.GRUCell(4, 4)]
settings = [nn.Sequential(nn.Linear(4, 4), nn.GELU(one)) for one in ("none", "tanh")]
noisy = [nn.Sequential(nn.Linear(4, 2), nn.Dropout()) for _ in range(3)]
hooked, scaled = layers(), layers()
hooked[0].register_forward_hook(lambda one, given, result: result * 2)
nn.utils.parametrizations.weight_norm(scaled[0])
x, y, share = torch.randn(7, 4), torch.randn(2, 3, 4), torch.rand(7, 5)
"""
EACH = "out = []\nfor expert in experts:\n    out.append({}(x))\n"


def calls(source: str, takes_rows: bool = False) -> Cell:
    """Write six calls of five modules with two layers, 3 µs each on the GPU."""
    cell, size = Cell(source), (2048, 128)
    for _ in range(6):
        for _ in range(5):
            for width in (96, 48):
                weight = (128, width)
                if takes_rows:
                    cell.views("aten::select")
                with cell.operator("aten::linear"):
                    cell.call("aten::addmm", 3_000, dims=((width,), size, weight))
                cell.call("aten::gelu", 1_500, dims=(size,))
        cell.call("aten::stack", 3_000)
        cell.python(20_000)
    cell.wait()
    return cell


def at_once(tmp_path: Path, source: str, takes_rows: bool = False) -> dict[str, Change]:
    return changes_of(experts_at_once, calls(source, takes_rows).evidence(tmp_path))


@pytest.mark.parametrize(
    "source",
    [
        EACH.format("expert"),
        "@torch.no_grad()\ndef mixed(x):\n    total = 0\n"
        "    for i, expert in enumerate(experts):\n"
        "        total = total + share[:, i, None] * expert(x)\n    return total\n"
        "out = mixed(x)\n",
        "out = torch.stack([expert(y).relu() for expert in experts], 1)\n",
        "out = {}\nfor name, head in heads.items():\n    out[name] = head(x) * 2\n",
        "out = []\nfor e in range(len(experts)):\n    out.append(experts[e](x))\n",
        # of other sizes and kinds, which are called one by one
        "out = [module(x) for module in several]\n",
        # of other settings, with a hook, or with weights that are computed
        "out = [module(x) for module in settings]\n",
        "chosen = [layers(), hooked]\nout = [module(x) for module in chosen]\n",
        "chosen = [layers(), scaled]\nout = [module(x) for module in chosen]\n",
    ],
)
def test_modules_are_called_at_once(tmp_path: Path, source: str) -> None:
    change = at_once(tmp_path, source)["experts-at-once"]
    assert "5 modules" in change.evidence and change.basis == "predicted"
    assert agrees(tried(change, source), source, SETUP, "out")


@pytest.mark.parametrize(
    "source",
    [
        # a module takes what the one before it gave, or another input each time
        "out = x\nfor expert in experts:\n    out = expert(out)\n",
        "out = [expert(torch.randn(7, 4)) for expert in experts]\n",
        "out = [expert(one) for expert, one in zip(experts, rows)]\n",
        # not all of them, or not always
        EACH.format("expert") + "    if len(out) > 3:\n        break\n",
        "out = [expert(x) if expert else x for expert in experts]\n",
        "out = []\nfor expert in experts:\n    if expert.active:\n"
        "        out.append(expert(x))\n",
    ],
)
def test_other_modules_are_let_be(tmp_path: Path, source: str) -> None:
    assert not at_once(tmp_path, source)


@pytest.mark.parametrize(
    "source",
    [
        # a turn changes the next one's input, weights or random numbers
        EACH.format("expert") + "    x.mul_(0.5)\n",
        "out = []\nfor one in experts:\n    experts[4][0].weight.data.mul_(2)\n"
        "    out.append(one(x))\n",
        "out = []\nfor one in noisy:\n    y = one(x)\n"
        "    out.append(y + torch.randn(()))\n",
        # they can be gone through once
        "chosen = iter(experts)\nout = [one(x) for one in chosen]\n",
    ],
)
def test_the_runs_of_a_trial_tell_that_an_edit_is_wrong(
    tmp_path: Path, source: str
) -> None:
    change = tried(at_once(tmp_path, source)["experts-at-once"], source)
    try:
        is_right = agrees(change, source, SETUP, "out")
    except TypeError:
        is_right = False
    assert not is_right


IN_TURN = "for layer in layers:\n    h = gelu(layer(h))\n"
EACH = "    return [head(x) for head in heads]\n"
VOTES = {"votes": f"def votes(x):\n{EACH}"}
SCORES = {"Net.scores": f"def scores(self, x):\n{EACH}"}
NET = {**SCORES, "Net.forward": "def forward(self, x):\n    return self.scores(x)\n"}


@pytest.mark.parametrize(
    ("last", "called", "line", "is_named"),
    [
        ("[head(h) for head in heads]", {}, 3, True),
        ("[head(h) for head in heads]", {}, 2, False),
        ("votes(h)", VOTES, 3, True),
        ("votes(h)", VOTES, 2, False),
        ("net.scores(h)", SCORES, 3, True),
        ("net.scores(h)", SCORES, 2, False),
        ("net(h)", NET, 3, True),
    ],
)
def test_where_lines_are_known_modules_are_those_of_the_loop(
    tmp_path: Path, last: str, called: dict[str, str], line: int, is_named: bool
) -> None:
    evidence = calls(f"{IN_TURN}out = {last}\n").evidence(tmp_path)
    marks = make_marks([line], [evidence.run.start_ns])
    run = dataclasses.replace(evidence.run, marks=marks, called=called)
    changes = changes_of(experts_at_once, evidence_of(evidence.events, run))
    assert bool(changes) == is_named


def test_rows_of_a_tensor_are_no_modules(tmp_path: Path) -> None:
    assert not at_once(tmp_path, EACH.format("expert"), takes_rows=True)


def heads(
    source: str | None,
    *,
    trunk: tuple[int, int] = (512, 256),
    last: int = 1,
    draws: bool = False,
    count: int = 6,
) -> Cell:
    """Call many heads on what a trunk gave, in a function of another cell."""
    cell = Cell(source)
    for _ in range(count):
        cell.call("aten::relu", 3_000, dims=(trunk,))
        for _ in range(40):
            for width, depth in ((64, 256), (last, 64)):
                with cell.operator("aten::linear"):
                    dims = (width,), (512, depth), (depth, width)
                    cell.call("aten::addmm", 3_000, dims=dims)
                if width == 64:
                    cell.call("aten::relu", 1_500, dims=((512, 64),))
            if draws:
                cell.call("aten::native_dropout", 1_500, dims=((512, last),))
            cell.python(5_000)
        cell.call("aten::cat", 3_000)
        cell.python(20_000)
    cell.wait()
    return cell


@pytest.mark.parametrize(
    "source",
    [
        None,
        "viability = torch.cat([responses(plate) for plate in plates])\n",
        "for batch in batches:\n    scores.append(model.all_heads(batch))\n",
        "with torch.no_grad():\n    y = ensemble(x)\n",
    ],
)
def test_heads_of_another_cells_model_are_named(
    tmp_path: Path, source: str | None
) -> None:
    evidence = heads(source).evidence(tmp_path)
    change = changes_of(experts_at_once, evidence)["experts-at-once"]
    assert "40 modules" in change.evidence and change.code == ""
    assert change.basis == "predicted" and change.high_ns is not None
    # the trunk, three kernels of all heads, and what joins them
    assert change.low_ns is not None and change.low_ns > 6 * 5 * 3_000
    assert change.high_ns < evidence.bare_run.time_ns / 2


@pytest.mark.parametrize(
    "cell",
    [
        # it may be one module, called on inputs that were there before
        heads("y = score(rows)\n", trunk=(512, 1024)),
        # each takes what the one before it gave, maybe
        heads("y = deep(x)\n", last=256),
        # one module that draws anew each time
        heads("y = sampled(x)\n", draws=True),
    ],
)
def test_calls_that_may_not_share_an_input_are_let_be(
    tmp_path: Path, cell: Cell
) -> None:
    assert not changes_of(experts_at_once, cell.evidence(tmp_path))

"""Edits of modules that are found when the edit runs: of other cells, alone or many."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.profiler.advice.edited_cells import agrees, tried
from tests.profiler.advice.program import changes_of
from tests.profiler.advice.test_library_rules import _FAST, _TO_NHWC, convolutions
from tests.profiler.advice.test_model_patterns import normed
from warpbook_profiler.advice.candidates import liberal_edits
from warpbook_profiler.model.change import Change
from warpbook_profiler.techniques.models.fold_bn import fold_bn

SETUP = """
from torch import nn
class Stage(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.conv = nn.Conv2d(a, b, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(b)
        self.norm.running_mean.uniform_(-1, 1), self.norm.running_var.uniform_(0.5, 2)
    def forward(self, x):
        return self.norm(self.conv(x)).relu()
class Swapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1)
        self.norm_b, self.norm_a = nn.BatchNorm2d(4), nn.BatchNorm2d(4)
        self.norm_a.running_mean.uniform_(-1, 1)
    def forward(self, x):
        return self.norm_b(self.b(self.norm_a(self.a(x))))
class Before(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)
        self.bn.running_mean.uniform_(-1, 1), self.bn.running_var.uniform_(0.5, 2)
    def forward(self, x):
        return x + self.conv(self.bn(x).relu())
class Twice(Before):
    def forward(self, x):
        return self.bn(self.conv(x)) + self.conv(x)
class Again(Before):
    def forward(self, x):
        return self.bn(self.conv(self.bn(self.conv(x)).relu()))
class Maybe(Before):
    def __init__(self):
        super().__init__()
        self.stage, self.up = Stage(4, 4), nn.ConvTranspose2d(4, 4, 1)
    def forward(self, x):
        return self.bn(self.up(self.stage(x))) if x.sum() < 1e9 else x
preactivated, twice, again, maybe = (
    one().eval() for one in (Before, Twice, Again, Maybe)
)
hooked, normed = Stage(4, 4).eval(), Stage(4, 4).eval()
hooked.conv.register_forward_hook(lambda one, given, result: result * 2)
nn.utils.parametrizations.weight_norm(normed.conv)
head, tail, swapped = Stage(3, 4).eval(), nn.Conv2d(4, 2, 1), Swapped().eval()
body = nn.ModuleList(Stage(4, 4) for _ in range(3)).eval()
net = nn.Sequential(head, *body, tail).eval()
blocks = [nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.ReLU()) for _ in range(2)]
weights = [torch.randn(4, 4, 3, 3) for _ in range(2)]
x = torch.randn(2, 3, 8, 8)
batches = {"one": x, "other": x + 1}
"""
SEVERAL = """
def enlarge(image):
    y = head(image)
    for number, stage in enumerate(body):
        y = y + stage(y)
    return tail(y)
with torch.no_grad():
    large = {name: enlarge(one) for name, one in batches.items()}
"""
MADE = """
torch.manual_seed(0)
model = nn.Sequential(Stage(3, 4), nn.Conv2d(4, 2, 1)).to(dev)
model.eval()
with torch.no_grad():
    large = [model(one).softmax(1) for one in batches.values()]
"""
GIVEN = """
def look(net, image):
    return net(image).relu()
with torch.no_grad():
    large = [look(net, one) for one in batches.values()]
"""
LISTS = """
def layers(y):
    for block, weight in zip(blocks, weights):
        y = F.conv2d(block(y), weight, padding=1)
    return y
with torch.inference_mode():
    large = layers(net[0](x))
"""


def laid_out(source: str) -> Change:
    """Give the last edit that is tried; without a trial there is none."""
    layers = (_TO_NHWC, 60.0), (_FAST, 100.0), (_TO_NHWC, 40.0)
    change = convolutions(*layers).changes(source)["channels-last"]
    assert not change.code
    return list(liberal_edits(source, (change,), only_named=True))[-1]


def folded(tmp_path: Path, source: str) -> Change:
    cell = replace(normed(), source=source)
    change = changes_of(fold_bn, cell.evidence(tmp_path))["fold-bn"]
    return tried(change, source)


def after(source: str, *names: str) -> list[Any]:
    namespace: dict[str, Any] = {"torch": torch, "F": torch.nn.functional, "dev": "cpu"}
    torch.manual_seed(0)
    exec(SETUP + source, namespace)
    return [namespace[name] for name in names]


@pytest.mark.parametrize("source", [SEVERAL, MADE, GIVEN, LISTS])
def test_all_modules_of_a_cell_are_in_channels_last(source: str) -> None:
    change = laid_out(source)
    assert agrees(change, source, SETUP, "large")


@pytest.mark.parametrize(
    ("setup", "source"),
    [
        (
            "weights = [torch.randn(4, 3, 3, 3)]\nflat = weights[0].view(-1)\n",
            "large = []\nfor k in range(3):\n"
            "    large.append(F.conv2d(x, weights[0]).abs().sum())\n"
            "    flat.mul_(0.5)\n",
        ),
        (
            "weights = [torch.randn(4, 3, 3, 3)]\n",
            "large = F.conv2d(x, weights[0]).sum() + weights[0].view(4, -1).sum()\n",
        ),
        (
            "weights = [torch.randn(4, 3, 3, 3)]\n",
            "large = F.conv2d(x, weights[0]).view(2, -1)\n",
        ),
    ],
)
def test_layouts_that_somebody_looks_at_are_only_told_by_a_trial(
    setup: str, source: str
) -> None:
    change = laid_out(source)
    try:
        assert not agrees(change, source, SETUP + setup, "large")
    except RuntimeError as problem:
        assert "view size is not compatible" in str(problem)


def test_a_models_images_are_in_channels_last_where_that_is_right() -> None:
    source = "large = stem(x)\n"
    change = convolutions((_TO_NHWC, 60.0), (_FAST, 100.0)).changes(source)
    tried = liberal_edits(source, (change["channels-last"],), only_named=True)
    first, last = (one.code for one in tried)
    assert "large = stem(x_last)" in first and "x_last" not in last


def test_filters_are_in_channels_last_wherever_they_are() -> None:
    layout = torch.channels_last
    body, head = after(laid_out(SEVERAL).code, "body", "head")
    assert all(one.conv.weight.is_contiguous(memory_format=layout) for one in body)
    assert head.conv.weight.is_contiguous(memory_format=layout)
    (model,) = after(laid_out(MADE).code, "model")
    assert model[0].conv.weight.is_contiguous(memory_format=layout)
    blocks, weights = after(laid_out(LISTS).code, "blocks", "weights")
    assert blocks[1][0].weight.is_contiguous(memory_format=layout)
    assert all(one.is_contiguous(memory_format=layout) for one in weights)


@pytest.mark.parametrize(
    ("source", "name"),
    [(SEVERAL, "head_folded"), (MADE, "model_folded"), (GIVEN, "net_folded")],
)
def test_norms_of_several_modules_are_folded(
    tmp_path: Path, source: str, name: str
) -> None:
    change = folded(tmp_path, source)
    assert agrees(change, source, SETUP, "large")
    (module,) = after(change.code, name)
    kinds = {type(part).__name__ for part in module.modules()}
    assert "BatchNorm2d" not in kinds and "Identity" in kinds


def test_what_is_no_module_stays_as_it_is(tmp_path: Path) -> None:
    source = (
        "def apply(f):\n    return f(net(x))\nlarge = [loud(net(x)), apply(loud)]\n"
    )
    setup = f"{SETUP}loud = torch.relu\n"
    assert agrees(laid_out(source), source, setup, "large")
    assert agrees(folded(tmp_path, source), source, setup, "large")
    # norms without statistics are not folded
    setup += "net[0].norm.running_mean = net[0].norm.running_var = None\n"
    assert agrees(folded(tmp_path, source), source, setup, "large")


@pytest.mark.parametrize(
    ("name", "norms"),
    [
        # as they are called, in whatever order they are made
        *(("swapped", 0), ("again", 0)),
        # whose input a norm changes, or which another takes, too
        *(("preactivated", 1), ("twice", 1)),
        # calls depend on the input: those of a part do not
        ("maybe", 1),
        # a convolution with a hook, or with a weight that is computed
        *(("hooked", 1), ("normed", 1)),
    ],
)
def test_a_norm_is_folded_into_what_gives_it_its_input(
    tmp_path: Path, name: str, norms: int
) -> None:
    source = f"with torch.no_grad():\n    large = {name}(net[0](x))\n"
    change = folded(tmp_path, source)
    assert agrees(change, source, SETUP, "large")
    (module,) = after(change.code, f"{name}_folded")
    kinds = [type(part).__name__ for part in module.modules()]
    assert kinds.count("BatchNorm2d") == norms


@pytest.mark.parametrize(
    "source",
    [
        # whose modules they are depends on the call
        "def run(model):\n    return model(x)\ny = [run(one) for one in (f(), g())]\n",
        # another module later
        "net = f()\ny = net(x)\nnet = g()\nz = net(x)\n",
        # whose weights or parts are looked at, or which is kept
        "for p in net.parameters():\n    p.mul_(2)\ny = net(x)\n",
        "count = len(net.state_dict())\ny = net(x)\n",
        "best = net\ny = net(x)\n",
        "net[0].register_forward_hook(f)\ny = net(x)\n",
        # set up again in between
        "y = net(x)\nnet.eval()\nz = net(x)\n",
        "def fit():\n    net.train()\n    return net(x)\nnet.eval()\ny = fit()\n",
    ],
)
def test_modules_that_change_have_no_edit(tmp_path: Path, source: str) -> None:
    assert not folded(tmp_path, source).code

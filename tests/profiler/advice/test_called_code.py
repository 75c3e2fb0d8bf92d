"""Edits for what a cell calls of other cells: functions, modules and their methods."""

from __future__ import annotations

import linecache
from typing import Any

import pytest
import torch

from warpbook.kernel.runs.called_code import called_code
from warpbook.kernel.trying.once import divided
from warpbook_profiler.advice.candidates import liberal_edits
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.rewriting.called_code import CalledCode, copied_code
from warpbook_profiler.model.change import Change

SETUP = """
import functools, math
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
torch.manual_seed(0)
x, scale = torch.randn(2, 6, 8), 0.5
def scores_of(q, k):
    return q @ k.transpose(-2, -1)
def mixed(q, k, v):
    scores = scores_of(q, k) * 0.5
    return scores.softmax(dim=-1) @ v
def attend(q, k, v):
    weights = ((q @ k.transpose(-2, -1)) * 0.5).softmax(dim=-1)
    return weights @ v
def block(x, w=1.0):
    return x + attend(x, x, x) * w
class Attention(nn.Module):
    calls = 0
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 8)
    def forward(self, x):
        Attention.calls += 1
        scores = (x @ x.transpose(-2, -1)) * scale
        return self.out(scores.softmax(dim=-1) @ x)
class Wrapped(Attention):
    def mix(self, q, k, v):
        w = torch.softmax(q @ k.transpose(-2, -1), dim=-1)
        return w @ v
    def forward(self, x):
        return self.mix(x, x, x)
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Attention() for _ in range(3))
    def forward(self, x):
        for one in self.blocks:
            x = checkpoint(one, x, use_reentrant=False)
        return x
class Hidden(Attention):
    def forward(self, x):
        w = super().forward(x)
        return (w @ w.transpose(-2, -1)).softmax(dim=-1) @ w
net, wrapped, deep, hidden = Attention(), Wrapped(), Deep(), Hidden()
parts = {"a": Attention(), "b": [Wrapped()]}
stages = [nn.Linear(8, 8), nn.Tanh()]
def made():
    gain = 2.0
    def inner(q, k, v):
        return (gain * (q @ k.mT)).softmax(dim=-1) @ v
    return inner
inner = made()
@functools.wraps(attend)
def decorated(q, k, v):
    return (q @ k.mT).softmax(dim=-1) @ v
def late(q, k, v, s=math.sqrt(2)):
    return (q @ k.mT * s).softmax(dim=-1) @ v
def again(q, n):
    q = (q @ q.mT).softmax(dim=-1) @ q
    return again(q, n - 1) if n else q
def rows(q):
    yield (q @ q.mT).softmax(dim=-1) @ q
renamed = attend
"""


def prepared(setup: str = SETUP) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "__main__"}
    lines = setup.splitlines(keepends=True)
    linecache.cache["setup"] = len(setup), None, lines, "setup"
    exec(compile(setup, "setup", "exec"), names)
    return names


def edits(source: str, name: str, setup: str = SETUP) -> list[str]:
    change = Change(name, "", "", "unknown", None, None, None, None, None, "", "")
    called = called_code(source, prepared(setup))
    tried = liberal_edits(source, (change,), only_named=True, called=called)
    return [one.code for one in tried]


def compiled_calls(source: str, setup: str = SETUP) -> list[str]:
    """Give the edits that compile what the cell calls, and not its statements."""
    return [one for one in edits(source, "fuse", setup) if "_compiled" in one]


def after(source: str, *names: str) -> list[Any]:
    namespace = prepared()
    exec(source, namespace)
    return [namespace[name] for name in names]


FUSED = "torch.nn.functional.scaled_dot_product_attention"


@pytest.mark.parametrize(
    ("source", "copy"),
    [
        ("y = attend(x, x, x)\n", "attend_edited"),
        # a product in another function than its softmax
        ("y = mixed(x, x, x)\n", ""),
        # of a function that the cell's function calls
        ("y = block(x)\n", "block_edited"),
        ("y = torch.stack([block(one) for one in (x, x + 1)])\n", "attend_edited"),
        # modules, alone, within others, and in what holds them
        ("y = net(x)\n", "Attention_forward"),
        ("y = deep(x)\n", "Attention_forward"),
        ("y = parts['a'](x) + parts['b'][0](x)\n", "Attention_forward"),
        # another method than forward
        ("with torch.no_grad():\n    y = wrapped(x)\n", "Wrapped_mix"),
    ],
)
def test_attention_of_another_cell_is_fused(source: str, copy: str) -> None:
    (edited,) = edits(source, "sdpa")
    assert FUSED in edited and (not copy or f"def {copy}(" in edited)
    (before,), (then,) = after(source, "y"), after(edited, "y")
    assert then.allclose(before, atol=1e-5)
    # what the other cells made is as it was
    original, namespace = prepared(), prepared()
    exec(edited, namespace)
    for name in ("attend", "block", "mixed"):
        assert namespace[name].__code__.co_code == original[name].__code__.co_code
    for kind in ("Attention", "Wrapped", "Deep"):
        method, same = (one[kind].forward for one in (namespace, original))
        assert method.__code__.co_code == same.__code__.co_code
        assert method.__name__ == "forward"


def test_a_method_is_put_back_if_the_cell_raises() -> None:
    (edited,) = edits("y = net(x)\nz = 1 / 0\n", "sdpa")
    namespace = prepared()
    forward = namespace["Attention"].forward
    with pytest.raises(ZeroDivisionError):
        exec(edited, namespace)
    assert namespace["Attention"].forward is forward


@pytest.mark.parametrize(
    "call",
    [
        # what means something else under another name
        *("inner(x, x, x)", "decorated(x, x, x)", "late(x, x, x)", "again(x, 2)"),
        *("renamed(x, x, x)", "hidden(x)"),
    ],
)
def test_a_function_that_a_copy_may_not_be_has_no_edit(call: str) -> None:
    found = edits(f"y = {call}\n", "sdpa")
    # the parent's forward may be changed, the one with super() may not
    assert not any("Hidden_forward" in one for one in found)
    assert not found or call == "hidden(x)"


def test_a_long_cell_has_its_first_attentions_fused() -> None:
    one = "y = torch.softmax(x @ x.transpose(-2, -1) * 0.1, -1) @ x\n"
    (edited,) = edits(one * 20, "sdpa")
    assert edited.count(FUSED) == 16


def test_a_source_that_was_edited_since_is_not_copied() -> None:
    setup = SETUP.replace(
        "x, x, x) * w", "x, x, x) * max((lambda: [w for _ in (1, 2)])())"
    )
    namespace = prepared(setup)
    assert "block" in called_code("y = block(x)", namespace)
    text = setup.replace("in (1, 2)", "in (1, 3)")
    linecache.cache["setup"] = len(text), None, text.splitlines(True), "setup"
    assert "block" not in called_code("y = block(x)", namespace)


def test_a_function_of_the_cell_itself_hides_that_of_another_cell() -> None:
    assert not edits(
        "def attend(q, k, v):\n    return q\ny = attend(x, x, x)\n", "sdpa"
    )


def test_checkpoints_within_a_module_are_left_out() -> None:
    source = (
        "deep.zero_grad(set_to_none=True)\nloss = deep(x).square().mean()\n"
        "loss.backward()\ngrad = deep.blocks[0].out.weight.grad\n"
        "count = Attention.calls\n"
    )
    (edited,) = edits(source, "checkpoint-off")
    assert "checkpoint(" not in edited and "x = one(x)" in edited
    before, then = (after(text, "grad", "loss", "count") for text in (source, edited))
    assert torch.equal(before[0], then[0]) and torch.equal(before[1], then[1])
    assert (before[2], then[2]) == (6, 3)


@pytest.mark.parametrize(
    ("source", "called"),
    [
        ("y = block(x)\n", ["block"]),
        ("y = net(block(x))\n", ["block", "Attention"]),
        ("y = x\nfor stage in stages:\n    y = stage(y)\n", ["Linear", "Tanh"]),
        (
            "def run(z):\n    for _, one in enumerate(stages):\n        z = one(z)\n"
            "    return z\ny = run(x)\n",
            ["Linear", "Tanh"],
        ),
        # within what holds others
        ("y = x\nfor one in parts['b']:\n    y = one(y)\n", ["Wrapped"]),
        ("y = x\nfor one in deep.blocks[:1]:\n    y = one(y)\n", ["Attention"]),
    ],
)
def test_what_is_called_of_other_cells_is_compiled(
    source: str, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = list[str]()

    def compiles(function: Any) -> Any:
        name = getattr(function, "__name__", type(function).__name__)

        def run(*given: Any) -> Any:
            compiled.append(name)
            return function(*given)

        return run

    monkeypatch.setattr(torch, "compile", compiles)
    edited, *others = compiled_calls(source)
    (before,), (then,) = after(source, "y"), after(edited, "y")
    assert torch.equal(before, then) and compiled == called
    # all at once first, then each
    assert len(others) == (2 if "block" in called[:-1] else 0)
    # compiled once, however often the cell runs, and no name of it is another's
    once, cell = divided(edited, source)
    assert "compile" in once and "compile(" not in cell


def test_a_loop_over_modules_leaves_its_name_to_one_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "compile", lambda one: lambda *given: one(*given))
    (edited,) = compiled_calls("y = x\nfor stage in stages:\n    y = stage(y)\n")
    stage, stages = after(edited, "stage", "stages")
    assert stage is stages[-1]


@pytest.mark.parametrize(
    "source",
    [
        # made by the cell: compiled anew each time
        "one = nn.Linear(8, 8)\ny = one(x)\n",
        "def f(z):\n    return z + 1\ny = f(x)\n",
        "y = x.topk(2).values\n",
    ],
)
def test_nothing_of_the_cell_itself_is_compiled(source: str) -> None:
    assert not compiled_calls(source)


def test_products_of_what_is_called_use_tf32_while_the_cell_runs() -> None:
    source = "start = 3\ny = block(x)\nz = y.sum()\ny.shape\n"
    first, *others = edits(source, "tf32")
    setting = torch.backends.cuda.matmul
    before = setting.allow_tf32, setting.fp32_precision
    (used,) = after(
        first.replace("start = 3", "start = 3\nused = []").replace(
            "y = block(x)",
            "y = block(x); used.append(torch.backends.cuda.matmul.allow_tf32)",
        ),
        "used",
    )
    assert used == [True]
    assert (setting.allow_tf32, setting.fp32_precision) == before
    assert "start = 3\nprecision_before" in first and first.endswith("\ny.shape\n")
    assert "cudnn" in others[-1]
    with pytest.raises(ZeroDivisionError):
        exec(edits("y = block(x)\nz = y / (1 // 0)\n", "tf32")[0], prepared())
    assert (setting.allow_tf32, setting.fp32_precision) == before


@pytest.mark.parametrize(
    "source",
    [
        "y = block(net(x))\nn = 3\nz = net(y)\n",
        "z = []\nwith torch.no_grad():\n    for one in (x, x + 1):\n"
        "        y = net(one)\n        z.append(block(y))\n",
        "z = [1]\nfor _ in range(2): y = net(x); z = block(y)\n",
    ],
)
def test_products_of_what_is_called_are_in_bfloat16(source: str) -> None:
    found = [one.replace('"cuda"', '"cpu"') for one in edits(source, "bf16")]
    (before,), (wide,) = after(source, "y"), after(found[0], "y")
    assert wide.dtype == torch.float32 and not torch.equal(wide, before)
    assert wide.allclose(before, rtol=0.05, atol=0.05)
    (kept,) = after(found[0], "z")
    assert {one.dtype for one in kept} == {torch.float32}
    # as autocast gives it, where nobody needs it otherwise
    assert after(found[1], "y")[0].dtype == torch.bfloat16


DEVICES = (
    SETUP
    + """
dev = "meta"
def causal(n):
    return torch.ones(n, n).tril().bool()
def positions(n, width):
    steps = torch.arange(n, dtype=torch.float32)
    return torch.outer(steps, 10 ** -torch.linspace(0, 4, width))
def devices(*given):
    seen.extend(one.device.type for one in given)
    return given[0]
class Window(nn.Module):
    width = 2
    def mask(self, x):
        t = x.shape[-1]
        past = devices(torch.ones(t, t).tril())
        old = torch.ones(t, t).tril(-self.width)
        mask = devices(past - old).bool()
        return mask.to(x.device)
    def forward(self, x):
        return x, self.mask(x)
window, there = Window(), torch.ones(5, device="meta")
seen = []
"""
)


@pytest.mark.parametrize(
    "source",
    [
        "y = devices(causal(5)).to(dev)\n",
        "y = []\nfor n in (3, 4):\n"
        "    y.append(devices(positions(n, 8)).to(dev, torch.float16))\n",
        "def bias(n):\n    return devices(-torch.arange(n)[:, None] * torch.ones(n))\n"
        "y = bias(6).to(device=dev).double()\n",
        "y = devices(torch.eye(4) + 1).to(dev)\nz = devices(torch.ones(2)).to(dev)\n",
        # what it is made of, line by line, and what is written into
        "y = []\nfor n in (3, 4):\n    edge = torch.hann_window(n)\n    size = n * n\n"
        "    taper = devices(torch.outer(edge, edge))\n    taper = taper.to(dev)\n"
        "    y.append(taper / size)\n",
        "def table(n):\n    t = devices(torch.zeros(n, 4))\n    t[:, 0] = 1\n"
        "    t.mul_(devices(torch.arange(4.0)))\n    return t.to(dev)\ny = table(3)\n",
        "y = window(there)\n",
    ],
)
def test_what_is_made_for_a_device_is_made_there(source: str) -> None:
    edited, *others = edits(source, "make-on-gpu", DEVICES)
    namespace = prepared(DEVICES)
    exec(edited, namespace)
    assert set(namespace["seen"]) == {"meta"} and torch.ones(1).device.type == "cpu"
    # all statements at once, then each
    assert len(others) == (2 if "z =" in source else 0)


@pytest.mark.parametrize(
    "source",
    [
        # what is there already, and another dtype
        *("y = x.to(dev)\n", "y = causal(5).to(torch.float16)\n"),
        "y = causal(5).to(x.dtype)\n",
        "z = x * 2\ny = z.to(dev)\n",
        # what tells the device is made between
        "z = causal(5)\nplace = x.device\ny = z.to(place)\n",
        # the host's memory
        "y = torch.from_numpy(x.numpy()).to(dev)\n".replace("x.numpy()", "rows"),
    ],
)
def test_what_is_made_for_no_device_stays_where_it_is(source: str) -> None:
    assert not edits(source, "make-on-gpu")


#: attentions by hand, and how often the layer's own dropout leaves something out
FORMS = [
    "s = q @ k.mT * layer.scale + bias\nw = s.softmax(-1)\ny = w @ v\n",
    "s = torch.matmul(q, k.mT) / math.sqrt(8)\ns = s + bias\n"
    "w = torch.softmax(s, dim=-1)\ny = torch.matmul(w, v)\n",
    "s = bias + q @ k.mT * 0.3\ny = s.softmax(-1) @ v\n",
    "w = torch.softmax(q @ k.mT, dim=-1)\n"
    "w = torch.nn.functional.dropout(w, p=0.1, training=False)\ny = w @ v\n",
    "s = (q @ k.mT).float() * 0.2\nw = s.softmax(-1).to(q.dtype)\ny = w @ v\n",
    "w = torch.softmax(q @ k.mT * 0.2, -1, dtype=torch.float32)\n"
    "y = w.type_as(v) @ v\n",
    "s = (q @ k.mT) * 0.2\ns = s.masked_fill(keep == 0, -1e9)\ny = s.softmax(-1) @ v\n",
]
HEADS = (
    SETUP
    + """
q, k, v = torch.randn(3, 2, 6, 8)
bias, keep = torch.randn(6, 6), torch.eye(6) + (torch.rand(6, 6) > 0.3)
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop, self.scale = nn.Dropout(1.0), 0.3
    def forward(self, q, k, v):
        w = (q @ k.mT * self.scale).softmax(-1)
        w = self.drop(w)
        return w @ v
layer = Layer().eval()
"""
)


@pytest.mark.parametrize("source", FORMS)
def test_attention_with_biases_casts_and_dropout_is_fused(source: str) -> None:
    edited, *_ = edits(source, "sdpa", HEADS)
    assert FUSED in edited and "softmax" not in edited
    before, then = prepared(HEADS), prepared(HEADS)
    exec(source, before)
    exec(edited, then)
    assert then["y"].allclose(before["y"], atol=1e-5)


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_attention_drops_out_what_its_layer_does(mode: str) -> None:
    source = f"layer.{mode}()\ny = layer(q, k, v)\n"
    (edited,) = edits(source, "sdpa", HEADS)
    namespace = prepared(HEADS)
    exec(edited, namespace)
    assert FUSED in edited and bool(namespace["y"].any()) == (mode == "eval")


@pytest.mark.parametrize(
    "source",
    [
        # the bias is scaled, too; weights are read again; a mask that only lowers
        "s = (q @ k.mT + bias) * 0.2\ny = s.softmax(-1) @ v\n",
        "w = (q @ k.mT).softmax(-1)\nw = layer.drop(w)\ny = w @ v\nz = w.sum()\n",
        "s = (q @ k.mT).masked_fill(keep == 0, -3.0)\ny = s.softmax(-1) @ v\n",
    ],
)
def test_what_no_fused_attention_computes_stays(source: str) -> None:
    # what it does not call may be fused
    in_cell = [one.rpartition("with ")[2] for one in edits(source, "sdpa", HEADS)]
    assert all("softmax" in one and FUSED not in one for one in in_cell)


_AXONS = (
    "import torch\n"
    "class Axons:\n    def __init__(self):\n        self.drive = 0.5\n"
    "    def step(self, v, u, dt=0.05):\n"
    "        return v + dt * (self.drive - u), u * 0.9\n"
    "    def level(self, v):\n        return v.tanh() * self.drive\n"
    "class Model:\n    def __init__(self):\n        self.axons = Axons()\n"
    "axons, model, v, u = Axons(), Model(), torch.ones(4), torch.zeros(4)\n"
    "both = [axons, Axons()]\n"
)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (
            "for _ in range(9):\n    v, u = axons.step(v, u, dt=0.1)\n",
            "axons_step_compiled = torch.compile(axons.step)\nfor",
        ),
        (
            "seen = [axons.level(v * t).mean() for t in range(9)]\n",
            "axons_level_compiled = torch.compile(axons.level)\nseen",
        ),
        (
            "axons.step\ny = model.axons.level(v).clone()\n",
            "model_axons_level_compiled = torch.compile(model.axons.level)\naxons",
        ),
    ],
)
def test_methods_of_other_cells_are_compiled(source: str, line: str) -> None:
    (edited,) = compiled_calls(source, _AXONS)
    assert line in edited
    assert edited.count("_compiled(") == 1


@pytest.mark.parametrize(
    "source",
    [
        "v = v.relu().clamp(max=1)\n",
        "for one in both:\n    v, u = one.step(v, u)\n",
        "axons = Axons()\nv = axons.level(v)\n",
        "v = both[0].level(v)\n",
    ],
)
def test_other_methods_are_not_compiled(source: str) -> None:
    assert not compiled_calls(source, _AXONS)


def test_methods_of_objects_that_the_cell_makes_are_edited() -> None:
    setup = (
        "import torch\nclass Keeper:\n    def __init__(self, first):\n"
        "        self.whole = first[None]\n    def keep(self, row):\n"
        "        self.whole = torch.cat([self.whole, row[None]])\n"
        "rows = torch.arange(12.0).view(4, 3)\n"
    )
    source = (
        "keeper = Keeper(rows[0])\nfor row in rows:\n    keeper.keep(row)\n"
        "seen = keeper.whole.sum(1)\n"
    )
    (edited,) = edits(source, "cat-once", setup)
    assert 'patch.object(Keeper, "keep"' in edited
    before, then = prepared(setup), prepared(setup)
    exec(source, before)
    exec(edited, then)
    assert torch.equal(before["seen"], then["seen"])


@pytest.mark.parametrize(
    "source",
    [
        "y = list(map(f, xs))\n" * 2_000,
        "def f(a):\n"
        + "".join(f"    b{at} = a + {at}\n" for at in range(200))
        + "    return b1\n"
        + "y = f(x)\n" * 500,
        "".join(f"def g{n}(a):\n" + f"    a = g{n + 1}(a)\n" * 20 for n in range(9)),
    ],
)
def test_calls_of_long_cells_stay_calls(source: str) -> None:
    assert len(copied_code(f"{source}g0(1)\n", {}).flat.source) < 4 * len(source)


@pytest.mark.parametrize(
    ("source", "inlined"),
    [
        # what holds modules of a class is not of that class
        ("ys = [chain(row) for row in x]\n", False),
        ("ys = [listed[0](row) for row in x]\n", False),
        (
            "def answer(model, row):\n    return model(row)\nys = answer(chain, x)\n",
            False,
        ),
        ("ys = [tiny(row) for row in x]\n", True),
        ("ys = [child.forward(row) for row in x]\n", True),
        ("ys = x.mix(1)\n", False),
        ("ys = tiny.mix(x)\n", True),
    ],
)
def test_a_call_is_of_the_class_that_the_object_is_of(
    source: str, inlined: bool
) -> None:
    setup = (
        "import torch\nfrom torch import nn\nclass Tiny(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.inner = nn.Linear(8, 8)\n    def forward(self, x):\n"
        "        return x + self.inner(x)\n    def mix(self, x):\n"
        "        return self.inner(x)\nclass Child(Tiny):\n    pass\n"
        "tiny, child, x = Tiny(), Child(), torch.randn(4, 8)\n"
        "chain, listed = nn.Sequential(tiny, child), nn.ModuleList([tiny])\n"
    )
    called = called_code(source, prepared(setup))
    flat = CalledCode(CellCode(source), called).flat
    assert ("inner" in flat.source) == inlined

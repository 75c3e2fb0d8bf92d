"""Liberal edits of turns that stay a loop: as graphs, and with choices of masks."""

from __future__ import annotations

import pytest

from tests.gpu.exam.graphs_on_cpu import replace_graphs
from tests.profiler.advice.test_rewriting import agree, edits

#: a model that is trained from one state in each run
_TRAINED = (
    "model = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh(), layer)\n"
    "layer.requires_grad_()\n"
    "opt = torch.optim.{optimizer}\n"
)


@pytest.fixture(autouse=True)
def _graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_graphs(monkeypatch)


@pytest.mark.parametrize(
    ("source", "results"),
    [
        # a step of a simulation that another cell defines
        (
            "def step(u):\n    return u - 0.1 * torch.tanh(u @ w)\nu = x.clone()\n"
            "for _ in range(7):\n    u = step(u)\nmass = u.mean(1)\n",
            ["u", "mass"],
        ),
        # rows come in and go out
        (
            "h, seen = torch.zeros(6), []\nfor t in range(len(x)):\n"
            "    gate = torch.sigmoid(x[t] @ w)\n    h = gate * h + (1 - gate) * x[t]\n"
            "    seen.append(h.norm())\nend = torch.stack(seen)\n",
            ["h", "gate", "t", "end"],
        ),
        (
            "out = torch.zeros(12, 6)\nout[0] = x[0]\nfor t in range(11):\n"
            "    out[t + 1] = torch.tanh(out[t] @ w + x[t + 1])\n"
            "total = out.sum()\n",
            ["out", "total"],
        ),
        # what is changed in place is the same tensor afterwards
        (
            "p, v = x.clone(), w[0] * x\nsame, time = p, 0.0\nfor row in x:\n"
            "    p.add_(v, alpha=0.1)\n    v *= 0.9\n    p[:, 0] = row[0]\n"
            "    time += 0.1\nstays = same is p\n",
            ["p", "same", "v", "stays", "time", "row"],
        ),
        (
            "def walk(y, n):\n    i = 0\n    while i < n:\n"
            "        with torch.no_grad():\n            for k in range(3):\n"
            "                y = torch.sin(y) @ w\n        i += 1\n    return y, i\n"
            "walks = [walk(x, n) for n in (0, 1, 5)]\n",
            ["walks"],
        ),
        # what is kept is what a turn began with, and states change places
        (
            "a, b, path = x[0], x[1], [x[2]]\nfor k in range(8):\n"
            "    path.append(a)\n    a, b = b, a + 0.1 * b @ w\n"
            "path = torch.stack(path)\n",
            ["a", "b", "path", "k"],
        ),
        # a state of several tensors, by a function with keywords and `out=`
        (
            "def cell(row, state, *, rate):\n"
            "    torch.mul(state[1], rate, out=buffer)\n"
            "    return state[0] + buffer, torch.tanh(row + state[1])\n"
            "buffer, state = torch.zeros(6), (x[0], x[1])\nfor row in x.unbind():\n"
            "    state = cell(row, state, rate=0.5)\nh, c = state\n",
            ["h", "c", "state", "buffer"],
        ),
        # what the host does in turns stays with it
        (
            "y, worst = x, 0.0\nfor t in range(7):\n    y = torch.tanh(y @ w)\n"
            "    low = y.min()\n    worst = min(worst, low.item())\n"
            "    if t % 3 == 0:\n        print(f'{t} {low:.3f}')\n",
            ["y", "worst", "low", "t"],
        ),
        ("y = x\nfor r in x:\n    y = y @ w\n    print(y)\n", ["y", "r"]),
        (
            "n, y = 2, x\nfor r in x:\n    y = y @ w\n    if n:\n        y = y * 2\n",
            ["y"],
        ),
        # training: losses are kept, read or printed; gradients and weights are left
        (
            _TRAINED.format(optimizer="SGD(model.parameters(), 0.1, 0.9)")
            + "curve, total = [], 0.0\nfor row, goal in zip(x, x.flip(0)):\n"
            "    opt.zero_grad()\n    loss = (model(row) - goal[:3]).square().mean()\n"
            "    loss.backward()\n    opt.step()\n    curve.append(loss.detach())\n"
            "    total += loss.item()\n"
            "ends = [p.detach() for p in model.parameters()]\n"
            "last = layer.weight.grad\n",
            ["curve", "total", "ends", "last", "loss"],
        ),
        (
            _TRAINED.format(optimizer="Adam(params=model.parameters())")
            + "def train(batch):\n    loss = model(batch).abs().mean()\n"
            "    opt.zero_grad(set_to_none=False)\n    loss.backward()\n"
            "    opt.step()\n    return loss.detach()\n"
            "curve = torch.zeros(9)\nfor i in range(9):\n    curve[i] = train(x)\n"
            "ends = [p.detach() for p in model.parameters()]\n"
            "count = opt.state[layer.weight]['step']\n",
            ["curve", "ends", "count"],
        ),
        (
            "class Trainer:\n    def __init__(self, model):\n"
            "        self.opt = torch.optim.RMSprop(model.parameters())\n"
            "    def step(self, model, batch):\n        self.opt.zero_grad()\n"
            "        model(batch).square().sum().backward()\n        self.opt.step()\n"
            "layer.requires_grad_()\ntrainer = Trainer(layer)\n"
            "for batch in (x, x + 1, x - 1, x):\n    trainer.step(layer, batch)\n"
            "end = layer.weight.detach()\n",
            ["end", "batch"],
        ),
        (
            "weights = [p.clone().requires_grad_() for p in (w, w.T)]\n"
            "for batch in [x, x + 1, x - 1, x]:\n"
            "    (batch @ weights[0] @ weights[1]).square().mean().backward()\n"
            "    with torch.no_grad():\n        for one in weights:\n"
            "            one -= 0.1 * one.grad\n            one.grad = None\n"
            "ends = [one.detach() for one in weights]\n",
            ["ends"],
        ),
        ("ys = [x]\nfor r in x:\n    ys.append(ys[-1] @ w)\n", ["ys"]),
        # comprehensions, also of a container of modules
        (
            "net = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh())\n"
            "with torch.no_grad():\n    ys = [net(row) for row in x]\n"
            "    out = torch.cat(ys)\n",
            ["ys", "out"],
        ),
        ("out = torch.stack([torch.tanh(r @ w) @ w for r in x.unbind()])\n", ["out"]),
        ("ys = {i: torch.tanh(r @ w) for i, r in enumerate(x)}\n", ["ys"]),
        (
            "def answers(rows):\n    return [torch.tanh(row @ w) for row in rows]\n"
            "with torch.inference_mode():\n    ys = answers(x)\n",
            ["ys"],
        ),
    ],
)
def test_turns_as_graphs_compute_the_same(source: str, results: list[str]) -> None:
    found = edits(source, "cuda-graph")
    on_cpu = [one.replace('"cuda"', '"cpu"') for one in found]
    assert any(agree(source, one, *results) for one in on_cpu), found


def test_an_optimizers_steps_may_stay_in_the_loop() -> None:
    source = _TRAINED.format(optimizer="Adam(model.parameters())") + (
        "for _ in range(9):\n    opt.zero_grad()\n    model(x).sum().backward()\n"
        "    opt.step()\nends = [p.detach() for p in model.parameters()]\n"
    )
    whole, without = edits(source, "cuda-graph")
    assert "capturable" in whole
    assert "capturable" not in without
    assert agree(source, without, "ends")


@pytest.mark.parametrize(
    "source",
    [
        # the host reads at once, or the number of the turn is used
        "y = x\nfor r in x:\n    y = y * float(y.max())\n",
        "y = x\nfor r in x:\n    if y.sum() > 0:\n        y = y @ w\n",
        "y = x\nfor t in range(9):\n    y = y @ w + t\n",
        # it fills a list that the turn itself reads
        "ys = [x, x]\nfor r in x:\n    ys.append(ys[-1] @ w + ys[-2])\n",
        "ys = []\nfor r in x:\n    y = r @ w\n    ys.extend([y])\n",
        # it grows, nothing is left of a turn, or what comes is loaded
        "y = x\nfor r in x:\n    y = torch.cat([y, r[None]])\n",
        "for r in x:\n    y = r @ w\n",
        "y = x\nfor r in DataLoader(data):\n    y = y @ r\n",
        "ys = [(r @ w).sum().item() for r in x]\n",
        "ys = [r @ w if r.sum() > 0 else w for r in x]\n",
    ],
)
def test_other_turns_are_no_graphs(source: str) -> None:
    assert not edits(source, "cuda-graph")


def test_a_graph_is_made_once() -> None:
    source = "u = x\nfor _ in range(7):\n    u = torch.tanh(u @ w)\n"
    (edited,) = edits(source, "cuda-graph")
    assert not edits(edited, "cuda-graph")
    assert "torch.cuda.graph(" in edited


@pytest.mark.parametrize(
    "source",
    [
        # turns are given other numbers, autograd goes on, a scheduler sets a number
        "y = x\nfor rate in [0.1, 0.2, 0.3, 0.4]:\n    y = y + rate * torch.tanh(y)\n",
        "y, t = x, 0.0\nfor r in x:\n    y = torch.sin(y + t)\n    t += 0.5\n",
        "y = x.clone().requires_grad_()\nz = y\nfor r in x:\n    z = z * y\n"
        "y = z.detach()\n",
        _TRAINED.format(optimizer="SGD(model.parameters(), 0.1)")
        + "plan = torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)\n"
        "for r in x:\n    model(r).sum().backward()\n    opt.step()\n    plan.step()\n"
        "y = layer.weight.detach()\n",
    ],
)
def test_no_replay_agrees_where_turns_differ(source: str) -> None:
    whole = edits(source, "cuda-graph")[0]
    assert not agree(source, whole.replace('"cuda"', '"cpu"'), "y")


@pytest.mark.parametrize(
    ("source", "results"),
    [
        (
            "p, v = x.clone(), x * 2\nsame = v\nfor _ in range(5):\n    p += 0.1 * v\n"
            "    out = p.abs() > 1\n    v[out] = -v[out]\n",
            ["p", "v", "same", "out"],
        ),
        (
            "y, low = x.clone(), x.sum(1) < 0\nfor _ in range(3):\n"
            "    y[low] *= 0.5\n    y[~low & (y[:, 0] > 0)] -= 1\n",
            ["y"],
        ),
        (
            "def fall(y, v):\n    for _ in range(4):\n        hit = (y[:, 1] < 0)\n"
            "        v[hit, 1] = -0.8 * v[hit, 1]\n        y = y + 0.1 * v\n"
            "    return y, v\ny, v = fall(x, x.flip(0))\n",
            ["y", "v"],
        ),
        (
            "price, alive = x.exp(), x > -1\nfor n in range(4):\n"
            "    alive = alive & (price > 0.5)\n"
            "    price[alive] = price[alive] * x[alive].exp() + n\n",
            ["price", "alive"],
        ),
    ],
)
def test_stores_by_a_mask_are_choices(source: str, results: list[str]) -> None:
    (edited,) = edits(source, "keep-mask")
    assert agree(source, edited, *results), edited
    assert "where" in edited


@pytest.mark.parametrize(
    "source",
    [
        # numbers need no wait, indices are no mask, and sizes may differ
        "hit = x > 1\nx[hit] = 0\n",
        "for i in range(5):\n    x[i] = x[i] * 2\n",
        "hit, other = x > 1, x > 2\nx[hit] = w[other]\n",
        "hit = x > 1\ny = x[hit]\n",
        "hit = x > 1\nmade()[hit] *= 2\n",
    ],
)
def test_other_stores_stay(source: str) -> None:
    assert not edits(source, "keep-mask")


@pytest.mark.parametrize(
    ("source", "results"),
    [
        (
            "low, lows = x[0], [x[0]]\nfor today in x[1:]:\n"
            "    low = torch.minimum(low, today)\n    lows.append(low)\n",
            ["low", "lows", "today"],
        ),
        (
            "level, kept = w[0], []\nfor row, other in zip(x, x.clone().tanh()):\n"
            "    pass\nys = x.tanh()\nfor row, other in zip(x, ys):\n"
            "    level = torch.maximum(level, row * other)\n"
            "    kept.append(level - other)\n",
            ["level", "kept", "row", "other"],
        ),
        (
            "left, lit = torch.ones(6), torch.zeros(6)\nfor row in x[2:9]:\n"
            "    left = left * (1 - row.sigmoid())\n    lit = lit + left * row\n",
            ["left", "lit", "row"],
        ),
    ],
)
def test_rows_that_are_cut_out_are_scanned(source: str, results: list[str]) -> None:
    found = edits(source, "scan")
    assert any(agree(source, one, *results) for one in found), found


def test_running_values_of_no_rows_are_none() -> None:
    setup = "from itertools import accumulate\nrows = []\n"
    found = edits(f"{setup}y = list(accumulate(rows, torch.maximum))\n", "scan")
    assert found and all(agree(f"{setup}y = []\n", one, "y") for one in found), found

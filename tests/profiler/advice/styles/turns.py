"""Turns that take what others stored, choose by masks, or call what reads."""

from __future__ import annotations

from tests.profiler.advice.styles.harness import Program

X = "x = torch.randn(96, 48)\n"

#: the change, the cells before, and the cell
_PROGRAMS = [
    (
        "scan",
        X + "def highs(rows):\n"
        "    seen = [rows[0]]\n"
        "    for row in rows[1:]:\n"
        "        seen.append(torch.maximum(seen[-1], row))\n"
        "    return torch.stack(seen)\n",
        "y = x - highs(x)\n",
    ),
    (
        "scan",
        X,
        "y = torch.zeros_like(x)\n"
        "y[0] = x[0]\n"
        "for t in range(1, len(x)):\n"
        "    y[t] = y[t - 1] + x[t]\n",
    ),
    (
        "scan",
        X,
        "y = x.clone()\nfor t in range(1, x.shape[0]):\n    y[t] += y[t - 1]\n",
    ),
    (
        "scan",
        "x = torch.rand(48, 97)\n",
        "y = torch.ones_like(x)\n"
        "for k in range(96):\n"
        "    y[:, k + 1] = y[:, k] * (1 - x[:, k])\n",
    ),
    (
        "keep-mask",
        "x, z = torch.randn(5000), torch.randn(5000)\n"
        "def error(x, z, inside):\n"
        "    a, b = x[inside], z[inside]\n"
        "    return (a - b).abs().sum() / max(1, a.numel())\n",
        "y = torch.stack([error(x, z, x > k / 9) for k in range(6)])\n",
    ),
    (
        "keep-mask",
        "x, group = torch.randn(5000), torch.randint(0, 6, (5000,))\n",
        "y = torch.zeros(6)\n"
        "for k in range(6):\n"
        "    mine = x[group == k]\n"
        "    y[k] = mine.sum() / mine.shape[0]\n",
    ),
    (
        "print-once",
        X + "def run(x, verbose=True):\n"
        "    for step in range(12):\n"
        "        x = x - 0.1 * x**3\n"
        "        if verbose:\n"
        "            print(f'{step}: energy', x.square().sum())\n"
        "    return x\n",
        "y = run(x)\n",
    ),
    (
        "print-once",
        X + "class Log:\n"
        "    def __init__(self, every=1):\n"
        "        self.every = every\n"
        "    def __call__(self, step, **values):\n"
        "        if step % self.every == 0:\n"
        "            print(step, *(f'{k}={v}' for k, v in values.items()))\n"
        "log = Log()\n",
        "for step in range(12):\n"
        "    x = x.sin()\n"
        "    log(step, mean=x.mean(), most=x.max())\n"
        "y = x\n",
    ),
    (
        "read-once",
        X + "class History:\n"
        "    def __init__(self):\n"
        "        self.kept = {}\n"
        "    def add(self, **values):\n"
        "        for name, one in values.items():\n"
        "            one = one.item() if torch.is_tensor(one) else one\n"
        "            self.kept.setdefault(name, []).append(one)\n",
        "history = History()\n"
        "for step in range(12):\n"
        "    x = x.cos()\n"
        "    history.add(step=step, mean=x.mean(), most=x.max())\n"
        "y = torch.tensor(history.kept['mean'])\n",
    ),
    (
        "whole-tensor",
        X + "z = torch.randn(96, 48)\n"
        "def likeness(a, b):\n"
        "    return torch.dot(a, b) / (a.norm() * b.norm())\n",
        "found, i = [], 0\n"
        "while i < len(x):\n"
        "    found.append(likeness(x[i], z[i]))\n"
        "    i += 1\n"
        "y = torch.stack(found)\n",
    ),
    (
        "scan",
        X + "class Battery:\n"
        "    def __init__(self, cells):\n"
        "        self.charge, self.seen = torch.zeros(cells), []\n"
        "    def absorb(self, current):\n"
        "        self.charge = self.charge + current * 0.5\n"
        "        self.seen.append(self.charge)\n",
        "pack = Battery(48)\n"
        "for row in x:\n"
        "    pack.absorb(row)\n"
        "y = torch.stack([*pack.seen, pack.charge])\n",
    ),
    (
        "cuda-graph",
        X + "class Filter:\n"
        "    def __init__(self):\n"
        "        self.state, self.rate = torch.zeros(48), 0.1\n"
        "    def __call__(self, row):\n"
        "        self.state = self.state + self.rate * (row - self.state).tanh()\n"
        "        return self.state * 2\n"
        "smooth = Filter()\n",
        "y = []\nfor row in x:\n    y.append(smooth(row))\ny = torch.stack(y)\n",
    ),
    (
        "read-once",
        X,
        "total, seen = 0.0, 0\n"
        "for row in x:\n"
        "    total += len(row) * float(row.sin().mean()) / 2\n"
        "    seen += len(row)\n"
        "y = torch.tensor(total / seen)\n",
    ),
]

PROGRAMS = [Program(change, change, *code) for change, *code in _PROGRAMS]

#: turns need more of the one before, or what was stored is another by then
KEPT = [
    Program(name, "scan", X, source)
    for name, source in {
        "decays": (
            "y = x.clone()\nfor t in range(1, 96):\n    y[t] = 0.9 * y[t - 1] + x[t]\n"
        ),
        "read later": (
            "sums, y = [x[0]], []\nfor row in x:\n"
            "    sums.append(sums[-1] + row)\n    y.append(sums[-1])\n"
        ),
        "two before": (
            "y = x.clone()\nfor t in range(2, 96):\n    y[t] = y[t - 2] + x[t]\n"
        ),
        "of the next": (
            "y = x.clone()\nfor t in range(1, 95):\n    y[t] = y[t - 1] + y[t + 1]\n"
        ),
    }.items()
]

"""Loops and models as several people write them, and what would make each faster."""

from __future__ import annotations

from tests.profiler.advice.styles.harness import Program

X = "x = torch.randn(96, 48)\n"
NET = "net = nn.Sequential(*[nn.Linear(8, 8) for _ in range(20)])\n"
BACKWARD = "net(torch.ones(4, 8)).sum().backward()\n"
PARAMETERS = "y = torch.cat([p.detach().flatten() for p in net.parameters()])\n"
AVERAGED = f"{NET}ema{NET[3:]}"
AVERAGE = "y = torch.cat([p.detach().flatten() for p in ema.parameters()])\n"
SYSTEM = (
    "A = torch.randn(40, 40)\nA = A @ A.T + 40 * torch.eye(40)\n"
    "bs = torch.randn(30, 40)\n"
)
STATE = "x, W = torch.randn(48), torch.randn(48, 48) / 10\n"

#: the change, the cells before, and the cell
_PROGRAMS = [
    (
        "scan",
        X + "out = torch.empty_like(x)\n",
        "total = torch.zeros(48)\n"
        "for i in range(len(x)):\n"
        "    total = total + x[i]\n"
        "    out[i] = total\n"
        "y = out\n",
    ),
    (
        "scan",
        X + "def integrate(signal, start=0.0):\n"
        "    level = torch.full_like(signal[0], start)\n"
        "    kept = []\n"
        "    for sample in signal:\n"
        "        level = level + sample\n"
        "        kept.append(level)\n"
        "    return torch.stack(kept)\n",
        "y = integrate(x)\n",
    ),
    (
        "scan",
        X + "def peaks(prices):\n"
        "    best = torch.empty_like(prices)\n"
        "    high = prices[0]\n"
        "    for t in range(prices.shape[0]):\n"
        "        high = torch.maximum(high, prices[t])\n"
        "        best[t] = high\n"
        "    return best\n",
        "y = x - peaks(x)\n",
    ),
    (
        "scan",
        X + "class Walk:\n"
        "    def __init__(self, start):\n"
        "        self.start = start\n"
        "    def path(self, steps):\n"
        "        at = self.start\n"
        "        seen = [at]\n"
        "        for step in steps:\n"
        "            at = at + step\n"
        "            seen.append(at)\n"
        "        return torch.stack(seen)\n"
        "walk = Walk(torch.zeros(48))\n",
        "y = walk.path(x)\n",
    ),
    (
        "scan",
        "growth = 1 + 0.01 * torch.randn(96, 48)\n",
        "value = torch.ones(48)\n"
        "y = torch.zeros(96, 48)\n"
        "for day in range(96):\n"
        "    value = value * growth[day]\n"
        "    y[day] = value\n",
    ),
    (
        "scan",
        X + "def drawdown(curve):\n"
        "    top = curve[:, 0]\n"
        "    falls = []\n"
        "    for k in range(curve.size(1)):\n"
        "        top = top.maximum(curve[:, k])\n"
        "        falls.append(top - curve[:, k])\n"
        "    return torch.stack(falls, dim=1)\n",
        "y = drawdown(x)\n",
    ),
    (
        "fused-optimizer",
        NET + "params = list(net.parameters())\n",
        BACKWARD + "lr = 0.1\n"
        "with torch.no_grad():\n"
        "    for p in params:\n"
        "        p -= lr * p.grad\n" + PARAMETERS,
    ),
    (
        "fused-optimizer",
        NET + "params = list(net.parameters())\n"
        "class SGD:\n"
        "    def __init__(self, params, lr=0.1):\n"
        "        self.params, self.lr = list(params), lr\n"
        "    @torch.no_grad()\n"
        "    def step(self):\n"
        "        for p in self.params:\n"
        "            p.sub_(self.lr * p.grad)\n"
        "opt = SGD(params)\n",
        BACKWARD + "opt.step()\n" + PARAMETERS,
    ),
    (
        "fused-optimizer",
        NET + "params = list(net.parameters())\n"
        "m = [torch.zeros_like(p) for p in params]\n"
        "v = [torch.zeros_like(p) for p in params]\n"
        "def adam_step(params, m, v, t, lr=1e-3):\n"
        "    with torch.no_grad():\n"
        "        for i, p in enumerate(params):\n"
        "            g = p.grad\n"
        "            m[i] = 0.9 * m[i] + 0.1 * g\n"
        "            v[i] = 0.999 * v[i] + 0.001 * g * g\n"
        "            fresh = m[i] / (1 - 0.9 ** t)\n"
        "            p -= lr * fresh / ((v[i] / (1 - 0.999 ** t)).sqrt() + 1e-8)\n",
        BACKWARD + "adam_step(params, m, v, 1)\n" + PARAMETERS,
    ),
    (
        "fused-optimizer",
        NET + "params = list(net.parameters())\n"
        "zeros = torch.zeros_like\n"
        "state = {p: {'m': zeros(p), 'v': zeros(p)} for p in params}\n",
        BACKWARD + "with torch.no_grad():\n"
        "    for p in params:\n"
        "        s = state[p]\n"
        "        s['m'].mul_(0.9).add_(p.grad, alpha=0.1)\n"
        "        s['v'].mul_(0.99).addcmul_(p.grad, p.grad, value=0.01)\n"
        "        p.addcdiv_(s['m'], s['v'].sqrt().add_(1e-8), value=-0.01)\n"
        + PARAMETERS,
    ),
    (
        "fused-optimizer",
        NET + "sq = {n: torch.zeros_like(p) for n, p in net.named_parameters()}\n",
        BACKWARD + "with torch.no_grad():\n"
        "    for name, p in net.named_parameters():\n"
        "        sq[name].mul_(0.9).addcmul_(p.grad, p.grad, value=0.1)\n"
        "        p.sub_(0.01 * p.grad / (sq[name] + 1e-6).sqrt())\n" + PARAMETERS,
    ),
    (
        "foreach-ema",
        AVERAGED + "class EMA:\n"
        "    def __init__(self, model, decay):\n"
        "        self.model, self.decay = model, decay\n"
        "    @torch.no_grad()\n"
        "    def update(self, other):\n"
        "        for a, b in zip(self.model.parameters(), other.parameters()):\n"
        "            a.lerp_(b, 1 - self.decay)\n"
        "kept = EMA(ema, 0.99)\n",
        "kept.update(net)\n" + AVERAGE,
    ),
    (
        "foreach-ema",
        AVERAGED,
        "state = net.state_dict()\n"
        "for key, value in ema.state_dict().items():\n"
        "    value.copy_(0.9 * value + 0.1 * state[key])\n" + AVERAGE,
    ),
    (
        "foreach-ema",
        AVERAGED,
        "with torch.no_grad():\n"
        "    for a, b in zip(ema.parameters(), net.parameters(), strict=True):\n"
        "        a += 0.05 * (b - a)\n" + AVERAGE,
    ),
    (
        "whole-lstm",
        "cell = nn.LSTMCell(8, 16)\n"
        "x = torch.randn(4, 60, 8)\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.cell = cell\n"
        "    def forward(self, x):\n"
        "        h = x.new_zeros(x.shape[0], 16)\n"
        "        c = x.new_zeros(x.shape[0], 16)\n"
        "        for t in range(x.shape[1]):\n"
        "            h, c = self.cell(x[:, t], (h, c))\n"
        "        return h\n"
        "net = Net()\n",
        "with torch.no_grad():\n    y = net(x)\n",
    ),
    (
        "whole-lstm",
        "cell = nn.LSTMCell(8, 16)\nx = torch.randn(60, 4, 8)\n",
        "state = (torch.zeros(4, 16), torch.zeros(4, 16))\n"
        "hs = []\n"
        "with torch.no_grad():\n"
        "    for step in x:\n"
        "        state = cell(step, state)\n"
        "        hs.append(state[0])\n"
        "y = torch.stack(hs, dim=1)\n",
    ),
    (
        "whole-lstm",
        "cell = nn.LSTMCell(8, 16)\n"
        "x = torch.randn(4, 60, 8)\n"
        "def encode(cell, seq, hidden=16):\n"
        "    h = torch.zeros(seq.size(0), hidden)\n"
        "    c = torch.zeros_like(h)\n"
        "    for t in range(seq.size(1)):\n"
        "        h, c = cell(seq[:, t, :], (h, c))\n"
        "    return h, c\n",
        "with torch.no_grad():\n    h, c = encode(cell, x)\ny = h\n",
    ),
    (
        "whole-gru",
        "x = torch.randn(4, 60, 8)\n"
        "class Reader(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.rnn = nn.GRUCell(8, 16)\n"
        "        self.out = nn.Linear(16, 3)\n"
        "    def forward(self, x):\n"
        "        h = torch.zeros(len(x), 16)\n"
        "        preds = []\n"
        "        for part in x.unbind(1):\n"
        "            h = self.rnn(part, h)\n"
        "            preds.append(h)\n"
        "        return self.out(torch.stack(preds, 1))\n"
        "reader = Reader()\n",
        "with torch.no_grad():\n    y = reader(x)\n",
    ),
    (
        "whole-tensor",
        X,
        "y = torch.stack([(r - r.mean()) / r.std() for r in x])\n",
    ),
    (
        "whole-tensor",
        X + "def norm(row):\n"
        "    lo, hi = row.min(), row.max()\n"
        "    return (row - lo) / (hi - lo)\n",
        "y = torch.stack([norm(row) for row in x])\n",
    ),
    (
        "whole-tensor",
        X + "def scaled(rows):\n"
        "    out = []\n"
        "    for row in rows:\n"
        "        centred = row - row.median()\n"
        "        out.append(centred / centred.abs().max())\n"
        "    return torch.stack(out)\n",
        "y = scaled(x)\n",
    ),
    (
        "whole-tensor",
        X + "class Scorer:\n"
        "    def __init__(self, w):\n"
        "        self.w = w\n"
        "    def score(self, batch):\n"
        "        s = torch.zeros(len(batch))\n"
        "        for i, row in enumerate(batch):\n"
        "            s[i] = torch.dot(row, self.w).sigmoid()\n"
        "        return s\n"
        "scorer = Scorer(torch.randn(48))\n",
        "y = scorer.score(x)\n",
    ),
    (
        "whole-tensor",
        X,
        "parts = {}\n"
        "for k in range(len(x)):\n"
        "    parts[k] = x[k].exp().sum().log()\n"
        "y = torch.stack([parts[k] for k in range(len(x))])\n",
    ),
    (
        "batch-linalg",
        "A = torch.randn(60, 5, 5) + 9 * torch.eye(5)\n"
        "B = torch.randn(60, 5)\n"
        "def fit(a, b):\n"
        "    return torch.linalg.solve(a.T @ a + 0.1 * torch.eye(5), a.T @ b)\n",
        "y = torch.stack([fit(a, b) for a, b in zip(A, B)])\n",
    ),
    (
        "batch-linalg",
        "A = torch.randn(60, 5, 5) + 9 * torch.eye(5)\n"
        "B = torch.randn(60, 5)\n"
        "def fits(As, Bs, ridge=0.1):\n"
        "    found = []\n"
        "    for a, b in zip(As, Bs):\n"
        "        gram = a.mT @ a + ridge * torch.eye(a.shape[1])\n"
        "        half = torch.linalg.cholesky(gram)\n"
        "        found.append(torch.cholesky_solve((a.mT @ b)[:, None], half)[:, 0])\n"
        "    return torch.stack(found)\n",
        "y = fits(A, B)\n",
    ),
    (
        "batch-linalg",
        "A = torch.randn(60, 5, 5) + 9 * torch.eye(5)\nB = torch.randn(60, 5)\n",
        "values = {}\n"
        "for k, a in enumerate(A):\n"
        "    values[k] = torch.linalg.eigvalsh(a + a.T)\n"
        "y = torch.stack(list(values.values()))\n",
    ),
    (
        "cat-once",
        X + "def gather(rows):\n"
        "    out = torch.zeros(0)\n"
        "    for r in rows:\n"
        "        out = torch.cat([out, r.exp()])\n"
        "    return out\n",
        "y = gather(x)\n",
    ),
    (
        "cuda-graph",
        STATE,
        "u, v = x.clone(), torch.zeros(48)\n"
        "energies = []\n"
        "for t in range(60):\n"
        "    v -= 0.01 * u\n"
        "    u += 0.01 * v\n"
        "    energies.append((u * u + v * v).sum())\n"
        "y = torch.stack(energies)\n",
    ),
    (
        "cuda-graph",
        STATE + "def simulate(u, steps=60, dt=0.01):\n"
        "    for _ in range(steps):\n"
        "        k1 = -u * u.abs()\n"
        "        k2 = -(u + dt * k1) * u.abs()\n"
        "        u = u + dt / 2 * (k1 + k2)\n"
        "    return u\n",
        "y = simulate(x)\n",
    ),
    (
        "cuda-graph",
        STATE
        + "net = nn.Sequential(nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 48))\n",
        "y = x\n"
        "with torch.no_grad():\n"
        "    for _ in range(30):\n"
        "        y = y + 0.1 * net(y)\n",
    ),
    (
        "factor-once",
        SYSTEM + "def step(u, dt=0.1):\n"
        "    return torch.linalg.solve(torch.eye(40) + dt * A, u)\n",
        "u = bs[0]\nfor t in range(30):\n    u = step(u)\ny = u\n",
    ),
    (
        "factor-once",
        SYSTEM + "dt, I = 0.1, torch.eye(40)\n",
        "u = bs[0]\n"
        "for k in range(30):\n"
        "    right = (I - dt * A) @ u\n"
        "    u = torch.linalg.solve(I + dt * A, right)\n"
        "y = u\n",
    ),
    (
        "factor-once",
        SYSTEM,
        "y = []\n"
        "for b in bs:\n"
        "    y.append(torch.linalg.inv(A.T @ A) @ (A.T @ b))\n"
        "y = torch.stack(y)\n",
    ),
    (
        "factor-once",
        SYSTEM,
        "u, k = bs[0], 0\n"
        "while k < 30:\n"
        "    u = torch.linalg.solve(A, u)\n"
        "    k += 1\n"
        "y = u\n",
    ),
    (
        "foreach-clip",
        NET + "params = list(net.parameters())\n",
        BACKWARD + "total = torch.sqrt(sum((p.grad ** 2).sum() for p in params))\n"
        "factor = (1.0 / (total + 1e-6)).clamp(max=1.0)\n"
        "for p in params:\n"
        "    p.grad.mul_(factor)\n"
        "y = torch.cat([p.grad.flatten() for p in params])\n",
    ),
    (
        "foreach-clip",
        NET + "params = list(net.parameters())\n"
        "class Clipper:\n"
        "    limit = 1.0\n"
        "    def __call__(self, params):\n"
        "        total = sum(p.grad.pow(2).sum() for p in params).sqrt()\n"
        "        for p in params:\n"
        "            p.grad.div_(torch.clamp(total / self.limit, min=1.0))\n"
        "        return total\n"
        "clipper = Clipper()\n",
        BACKWARD + "y = clipper(params)\n",
    ),
]

PROGRAMS = [Program(change, change, *code) for change, *code in _PROGRAMS]

_SOLVED = (
    "A, I, b = torch.randn(8, 8), 9 * torch.eye(8), torch.randn(8)\n"
    "def noisy(x):\n    return x + torch.rand(8, 8)\n"
)
#: the matrix is another one in each turn, or may be
NEEDED = [
    Program(name, "factor-once", _SOLVED, source)
    for name, source in {
        "each turn": (
            "u = b\nfor k in range(30):\n    u = torch.linalg.solve(I + k * A, u)\n"
        ),
        "in place": (
            "u = b\nfor k in range(9):\n    A += I\n"
            "    u = torch.linalg.solve(I + A, u)\n"
        ),
        "called": (
            "u = b\nfor k in range(30):\n    u = torch.linalg.solve(A + noisy(I), u)\n"
        ),
    }.items()
]

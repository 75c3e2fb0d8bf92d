"""Lists of tensors: updates without a backward pass, clipping, weights of experts."""

from __future__ import annotations

from tests.profiler.advice.styles.harness import Program

NET = (
    "net = nn.Sequential(*[nn.Linear(8, 8) for _ in range(20)])\n"
    "for p in net.parameters():\n    p.grad = torch.randn_like(p)\n"
    "params = list(net.parameters())\n"
)
STATE = "state = {p: torch.zeros_like(p) for p in params}\nlr = 0.1\n"
LISTS = (
    "ws = [torch.randn(6, 6) for _ in range(30)]\n"
    "gs = [torch.randn(6, 6) for _ in range(30)]\n"
    "ms = [torch.zeros(6, 6) for _ in range(30)]\n"
)
EXPERTS = (
    "x, ws = torch.randn(48, 32), [torch.randn(32, 32) / 6 for _ in range(24)]\n"
    "heads = [{'w': w, 'b': torch.randn(32)} for w in ws]\n"
)
RESULT = "y = [p.detach() for p in params]\n"

#: the change, the cells before, and the cell
_PROGRAMS = [
    (
        "fused-optimizer",
        LISTS,
        "for n, (w, g) in enumerate(zip(ws, gs)):\n"
        "    ms[n] = torch.add(0.9 * ms[n], g)\n"
        "    ws[n] = w - 0.1 * ms[n] / (ms[n].abs() + 1e-3)\n"
        "y = ws\n",
    ),
    (
        "fused-optimizer",
        NET + STATE + "@torch.no_grad()\ndef step(params, lr=0.01):\n"
        "    for p in params:\n"
        "        if p.grad is None:\n            continue\n"
        "        v = state[p]\n"
        "        v *= 0.9\n"
        "        v += 0.1 * p.grad ** 2\n"
        "        p -= lr * p.grad / (torch.sqrt(v) + 1e-8)\n",
        f"step(params)\nstep(params, lr)\n{RESULT}",
    ),
    (
        "fused-optimizer",
        NET + "class Adam:\n"
        "    def __init__(self, params):\n"
        "        self.params, self.t = list(params), 0\n"
        "        self.m = [torch.zeros_like(p) for p in self.params]\n"
        "        self.v = [torch.zeros_like(p) for p in self.params]\n"
        "    def step(self):\n"
        "        self.t += 1\n"
        "        with torch.no_grad():\n"
        "            for p, m, v in zip(self.params, self.m, self.v):\n"
        "                m.lerp_(p.grad, 0.1)\n"
        "                v.mul_(0.99).addcmul_(p.grad, p.grad, value=0.01)\n"
        "                scale = 1 / (1 - 0.9 ** self.t)\n"
        "                p.addcdiv_(m, v.sqrt() + 1e-6, value=-0.1 * scale)\n",
        f"adam = Adam(params)\nfor _ in range(3):\n    adam.step()\n{RESULT}",
    ),
    (
        "foreach-clip",
        LISTS,
        "norm = torch.stack([torch.linalg.vector_norm(g) for g in gs]).norm()\n"
        "factor = torch.clamp(1 / (norm + 1e-6), max=1.0)\n"
        "gs = [factor * g for g in gs]\n"
        "y = gs\n",
    ),
    (
        "foreach-clip",
        LISTS + "grads = {f'w{n}': g for n, g in enumerate(gs)}\n"
        "def clipped(grads, limit=2.0):\n"
        "    total = 0.0\n"
        "    for name, g in grads.items():\n"
        "        total += g.square().sum()\n"
        "    factor = torch.clamp(limit / total.sqrt(), max=1.0)\n"
        "    return {name: g * factor for name, g in grads.items()}\n",
        "y = clipped(grads)\n",
    ),
    (
        "foreach-clip",
        NET,
        "norms = []\n"
        "for p in params:\n"
        "    if p.grad is not None:\n"
        "        norms.append(torch.norm(p.grad, p=2))\n"
        "norm = torch.norm(torch.stack(norms))\n"
        "for p in params:\n"
        "    p.grad = p.grad / torch.clamp(norm, min=1.0)\n"
        "y = [p.grad for p in params]\n",
    ),
    (
        "experts-at-once",
        EXPERTS,
        "gate, y = torch.softmax(x[:, :24], -1), torch.zeros_like(x)\n"
        "for e in range(24):\n"
        "    y += gate[:, e : e + 1] * torch.relu(x @ ws[e])\n",
    ),
    (
        "experts-at-once",
        EXPERTS,
        "y = []\n"
        "for head in heads:\n"
        "    scores = torch.matmul(x, head['w']) + head['b']\n"
        "    y.append(scores.softmax(dim=1))\n"
        "y = torch.stack(y).mean(0)\n",
    ),
    (
        "experts-at-once",
        EXPERTS + "def votes(x, weights):\n"
        "    return torch.stack([F.linear(x, w).tanh() for w in weights])\n",
        "y = votes(x, ws).sum(0)\n",
    ),
]

PROGRAMS = [Program(change, change, *code) for change, *code in _PROGRAMS]

#: no edit, and no name of the change either
_NEEDED = [
    # a turn takes what the one before it made
    (
        "fused-optimizer",
        "x, v = torch.randn(64), torch.zeros(64)\n",
        "for t in range(40):\n    v = v - 0.01 * x\n    x = x + 0.01 * v\ny = x\n",
    ),
    (
        "fused-optimizer",
        LISTS,
        "for n in range(1, 30):\n    ws[0] = ws[0] - 0.1 * gs[n] * ws[0]\ny = ws\n",
    ),
    (
        "fused-optimizer",
        LISTS,
        "for n in range(1, 30):\n    ws[n] = ws[n - 1] * 0.9 + gs[n] / 2\ny = ws\n",
    ),
    (
        "fused-optimizer",
        LISTS,
        "for n in range(30):\n    ws[n] = 0.5 * ws[n] + 0.5 * sum(ws)\ny = ws\n",
    ),
    # each layer takes what the one before it made
    (
        "experts-at-once",
        EXPERTS,
        "y = x\nfor w in ws:\n    y = torch.relu(y @ w)\n",
    ),
    # one loop is what could be done at once, and another one is what takes time
    (
        "fused-optimizer",
        "ema = [torch.randn(8, 8) for _ in range(3)]\n"
        "x, v = torch.randn(64), torch.zeros(64)\n",
        "for p in ema:\n    p.mul_(0.9)\n"
        "for _ in range(200):\n    v = v - 0.01 * x\n    x = x + 0.01 * v\n"
        "y = x, ema\n",
    ),
    (
        "fused-optimizer",
        LISTS + "n, h, s = 0, torch.randn(64), torch.zeros(64)\n"
        "def decay(ws):\n    for w in ws:\n        w.mul_(0.9)\n",
        "decay(ws)\nwhile n < 200:\n    h.sub_(0.1).div_(0.9)\n    n += 1\ny = h\n",
    ),
    # nothing is there before
    (
        "fused-optimizer",
        LISTS + "y = [None] * 30\n",
        "for n, w in enumerate(ws):\n    y[n] = w * 2 + 1\n",
    ),
    (
        "experts-at-once",
        "heads = nn.ModuleList(nn.Linear(32, 32) for _ in range(4)).eval()\n"
        "layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(24)).eval()\n"
        "x = torch.randn(48, 32)\n",
        "with torch.no_grad():\n    h = x\n"
        "    for layer in layers:\n        h = torch.relu(layer(h))\n"
        "    y = torch.stack([head(h) for head in heads])\n",
    ),
    (
        "experts-at-once",
        EXPERTS,
        "h = x\nfor _ in range(60):\n    h = torch.tanh(h @ ws[0])\n"
        "y = [h @ w for w in ws[:4]]\n",
    ),
    # nothing is scaled
    ("foreach-clip", LISTS, "y = [g.norm() for g in gs]\n"),
]

NEEDED = [Program(f"no {change}", change, *code) for change, *code in _NEEDED]

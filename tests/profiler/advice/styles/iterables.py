"""What goes over values without a loop: `map`, `accumulate`, generators, clauses."""

from __future__ import annotations

from tests.profiler.advice.styles.harness import Program

X = "from itertools import accumulate\nx, z = torch.randn(2, 96, 48)\n"
HEADS = (
    "heads = nn.ModuleDict(\n"
    "    {f'h{i}': nn.Sequential(nn.Linear(32, 4), nn.ReLU()) for i in range(24)}\n"
    ").requires_grad_(False)\nv = torch.randn(48, 32)\n"
)

ON_GPU = "x = torch.randn(N, 48, device=dev)\n"
LINES = "lines = [f'{i},{i + 0.5},{i * 2}' for i in range(N)]\n"

#: the change, the cells before, and the cell
_PROGRAMS = [
    (
        "whole-tensor",
        X,
        "y = torch.stack(list(map(lambda a, b: torch.dot(a, b) / a.norm(), x, z)))\n",
    ),
    (
        "whole-tensor",
        X,
        "def centred(row):\n"
        "    row = row - row.mean()\n"
        "    return row / row.norm()\n"
        "y = torch.stack([*map(centred, map(torch.exp, x))])\n",
    ),
    (
        "read-once",
        X,
        "def energy(row):\n    row = row * row\n    return row.sum().item()\n"
        "y = sum(energy(row) for row in x)\n",
    ),
    (
        "read-once",
        X,
        "def energy(row):\n    return row.square().mean().item()\n"
        "y = list(map(energy, x))\n",
    ),
    ("scan", X, "y = torch.stack([*accumulate(x, torch.maximum)])\n"),
    (
        "scan",
        X + "def survival(risks):\n"
        "    alive, kept = torch.ones_like(risks[0]), torch.empty_like(risks)\n"
        "    for year in range(len(risks)):\n"
        "        alive = alive * (1 - risks[year])\n"
        "        kept[year] = alive\n"
        "    return kept\n",
        "y = {name: survival(part) for name, part in zip('abc', x.chunk(3))}\n",
    ),
    ("scan", X, "sums = list(accumulate(x.unbind(1), lambda s, c: s + c))\ny = sums\n"),
    (
        "stack-results",
        ON_GPU,
        "def states(s, n):\n"
        "    while n > 0:\n"
        "        s = torch.tanh(s + 1)\n"
        "        yield s.cpu().numpy()\n"
        "        n -= 1\n"
        "y = [*states(x, 12)]\n",
    ),
    (
        "tensor-once",
        LINES,
        "def parsed(text):\n"
        "    for line in text:\n"
        "        yield torch.tensor([float(v) for v in line.split(',')]).to(dev)\n"
        "y = torch.stack(list(parsed(lines)))\n",
    ),
    (
        "whole-tensor",
        X,
        "y = {'norm': torch.zeros(96), 'top': torch.zeros(96)}\n"
        "for i, row in enumerate(x):\n"
        "    row = row - row.mean()\n"
        "    row = row / row.std()\n"
        "    y['norm'][i] = row.norm()\n"
        "    y['top'][i] = row.max()\n",
    ),
    (
        "print-once",
        X,
        "for step in range(12):\n"
        "    x = x.sin()\n"
        "    print('step {}: mean {:.3f}'.format(step, x.mean()))\n"
        "y = x\n",
    ),
    (
        "keep-mask",
        "x = torch.randn(5000)\n",
        "y = torch.zeros(6)\n"
        "for k in range(6):\n"
        "    chosen = torch.where(x > k / 9)[0]\n"
        "    y[k] = x[chosen].square().sum()\n",
    ),
    ("experts-at-once", HEADS, "y = {name: h(v) for name, h in heads.items()}\n"),
    ("experts-at-once", HEADS, "y = torch.cat([h(v) for h in heads.values()], 1)\n"),
    (
        "fused-optimizer",
        "ws = [nn.Parameter(torch.randn(8, 8)) for _ in range(40)]\n"
        "for w in ws:\n    w.grad = torch.sin(w.detach())\n",
        "opt = torch.optim.Adam(ws, lr=1e-3, foreach=False)\n"
        "opt.step()\nopt.step()\ny = list(map(torch.Tensor.detach, ws))\n",
    ),
]

_SIZES = {"N": 96}
#: some copy to a GPU that has no memory
PROGRAMS = [
    Program(change, change, setup, source, large=_SIZES, small=_SIZES)
    if setup in (ON_GPU, LINES)
    else Program(change, change, setup, source)
    for change, setup, source in _PROGRAMS
]

#: what looks like the programs above, and has no such edit
_KEPT = [
    ("scan", X, "y = list(accumulate(x, lambda s, row: 0.9 * s + row))\n"),
    (
        "whole-tensor",
        X,
        "def states(s):\n"
        "    for row in x:\n        s = torch.tanh(s) + row\n        yield s\n"
        "y = torch.stack(list(states(z[0])))\n",
    ),
]
KEPT = [Program(f"no {change}", change, *code) for change, *code in _KEPT]

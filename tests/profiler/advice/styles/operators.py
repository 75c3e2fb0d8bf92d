"""Programs whose operators can be replaced, as different people write them.

Each is (setup, source).
"""

from __future__ import annotations

from tests.profiler.advice.styles import layers
from tests.profiler.advice.styles.harness import Program

#: what a program's `y` is compared for; tensors are made by these setups
ROWS = "x = torch.randn(R, C, device=dev)\n"
PAIRS = "a = torch.randn(N, D, device=dev)\nb = torch.randn(M, D, device=dev)\n"
SAMPLES = "s = torch.randn(S, G, device=dev)\nw = torch.rand(S, device=dev)\n"
HALVES = (
    "p = torch.randn(P, Q, device=dev, dtype=torch.bfloat16)\n"
    "q = torch.randn(Q, O, device=dev, dtype=torch.bfloat16)\n"
)

TOPK = {
    "expression": (ROWS, "y = torch.sort(x, dim=1, descending=True)[0][:, :8]"),
    "named tuple": (
        f"{ROWS}from typing import NamedTuple\nclass Top(NamedTuple):\n"
        "    values: torch.Tensor\n    floor: torch.Tensor\n"
        "def strongest(codes, k=8):\n"
        "    ordered, _ = torch.sort(codes, dim=-1, descending=True)\n"
        "    return Top(ordered[:, :k].clone(), ordered[:, k - 1].clone())\n"
        "layers = [x, x + 1]\n",
        "tops = [strongest(one) for one in layers]\n"
        "y = torch.stack([t.values.sum(1) + t.floor for t in tops])",
    ),
    "narrow": (
        ROWS,
        "order = x.argsort(dim=-1, descending=True)\nnear = order.narrow(1, 0, 16)\n"
        "y = x.gather(1, near)",
    ),
    "class": (
        f"{ROWS}class Pool:\n    def __init__(self, k):\n        self.k = k\n"
        "    def __call__(self, scores):\n"
        "        ranked = scores.sort(descending=True)\n"
        "        return ranked.values[..., : self.k].mean(-1)\npool = Pool(8)\n",
        "y = pool(x)",
    ),
    "end": (ROWS, "y = x.sort(-1).values[:, -8:].mean(1)"),
    "one place": (ROWS, "y = torch.sort(x, dim=1).values[:, 7]"),
    "loop": (
        ROWS,
        "tops, places = [], []\nfor part in x.split(R // 2):\n"
        "    s, i = part.sort(dim=-1, descending=True)\n    tops.append(s[:, :5])\n"
        "    places.append(i[:, :5])\ny = torch.cat(tops) + torch.cat(places)",
    ),
    "flip": (ROWS, "y = x.sort(dim=1).values.flip(1)[:, :8]"),
    "same name": (
        ROWS,
        "def nearest(t):\n    r = torch.sort(t, dim=1)\n    r = r.indices\n"
        "    r = r[:, :10]\n    return r\ny = nearest(x)",
    ),
    "module": (
        f"{ROWS}class Keep(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.keep = 12\n"
        "    def forward(self, t):\n"
        "        values, _ = torch.sort(input=t, dim=-1, descending=True)\n"
        "        kept = values[..., : self.keep]\n"
        "        return kept.sum(-1)\nnet = nn.Sequential(Keep())\n",
        "with torch.no_grad():\n    y = net(x)",
    ),
    "dictionary": (
        f"{ROWS}sites = {{'a': x.flatten(), 'b': x.flatten() * 2}}\n",
        "best = {n: torch.sort(t, descending=True)[0][:10] for n, t in sites.items()}\n"
        "y = torch.stack([*best.values()])",
    ),
    "first": (ROWS, "y = torch.argsort(x, dim=1)[:, 0]"),
    "columns": (
        "x = torch.randn(C, R, device=dev)\n",
        "y = x.sort(dim=0, descending=True).values[:5]",
    ),
}

CDIST = {
    "expression": (PAIRS, "y = ((a[:, None] - b[None]) ** 2).sum(-1).sqrt()"),
    "same name": (
        PAIRS,
        "d = a.unsqueeze(1) - b.unsqueeze(0)\nd = d ** 2\nd = d.sum(dim=2)\n"
        "d = d.sqrt()\ny = d.min(1).values",
    ),
    "norm of a helper": (
        f"{PAIRS}def gaps(one, other):\n"
        "    return torch.norm(one[:, None] - other, dim=-1)\n",
        "y = gaps(a, b)",
    ),
    "method": (
        f"{PAIRS}class Codebook:\n    def __init__(self, centres):\n"
        "        self.centres = centres\n    def far(self, x):\n"
        "        delta = x[:, None, :] - self.centres[None, :, :]\n"
        "        return torch.linalg.norm(delta, dim=2)\nbook = Codebook(b)\n",
        "y = book.far(a).argmin(1)",
    ),
    "functions": (PAIRS, "y = torch.sum(torch.pow(torch.sub(a[:, None], b), 2), -1)"),
    "in place": (
        PAIRS,
        "diff = a[:, None] - b\ndiff.pow_(2)\nd2 = diff.sum(-1)\ny = (-d2).exp()",
    ),
    "views": (
        PAIRS,
        "y = torch.square(a.view(N, 1, D) - b.view(1, M, D)).sum(2)",
    ),
    "loop": (
        PAIRS,
        "near = []\nfor part in a.split(N // 2):\n    diff = part[:, None] - b\n"
        "    near.append((diff * diff).sum(2).argmin(1))\ny = torch.cat(near)",
    ),
    "comprehension": (
        PAIRS,
        "y = torch.stack([(p[:, None, :] - b).norm(dim=-1).min(1).values "
        "for p in a.split(N // 2)])",
    ),
    "module": (
        f"{PAIRS}class Basis(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.centers = nn.Parameter(b)\n"
        "        self.gamma = 0.1\n    def forward(self, x):\n"
        "        gap = x.unsqueeze(1) - self.centers\n"
        "        return torch.exp(-self.gamma * gap.pow(2).sum(-1))\nnet = Basis()\n",
        "with torch.no_grad():\n    y = net(a)",
    ),
    "batches": (
        "a = torch.randn(2, N, D, device=dev)\nb = torch.randn(2, M, D, device=dev)\n",
        "diff = a.unsqueeze(2) - b.unsqueeze(1)\ny = (diff ** 2).sum(-1)",
    ),
    "steps of a helper": (
        f"{PAIRS}def squared(one, other):\n    d = one[:, None] - other[None]\n"
        "    d *= d\n    total = d.sum(axis=-1)\n    return total\n",
        "y = [squared(part, b).min(1)[0] for part in a.split(N // 2)][0]",
    ),
}

OUTER = {
    "expression": (PAIRS, "y = (a[:, None] * b[None]).sum(-1)"),
    "weights": (
        f"{SAMPLES}class Cohort:\n    def __init__(self):\n"
        "        self.x, self.weight = s, w\n    def covariance(self):\n"
        "        w = self.weight / self.weight.sum()\n"
        "        centred = self.x - (w[:, None] * self.x).sum(0)\n"
        "        pairs = centred[:, :, None] * centred[:, None, :]\n"
        "        return (w[:, None, None] * pairs).sum(0)\n"
        "cohorts = {'a': Cohort(), 'b': Cohort()}\n",
        "c = {k: one.covariance() for k, one in cohorts.items()}\ny = c['a']",
    ),
    "mean": (SAMPLES, "outer = s[:, :, None] * s[:, None, :]\ny = outer.mean(0)"),
    "einsum": (SAMPLES, "y = torch.einsum('bi,bj->bij', s, s).sum(0)"),
    "functions": (
        PAIRS,
        "y = torch.sum(torch.mul(a.unsqueeze(1), b.unsqueeze(0)), dim=2)",
    ),
    "sum of a loop": (
        SAMPLES,
        "y = torch.zeros(G, G, device=dev)\nfor part in s.split(S // 2):\n"
        "    y += (part[:, :, None] * part[:, None, :]).sum(0)",
    ),
    "pooling": (
        "alpha = torch.rand(2, N, M, device=dev)\n"
        "values = torch.randn(2, M, D, device=dev)\n",
        "mixed = alpha.unsqueeze(-1) * values.unsqueeze(1)\ny = mixed.sum(2)",
    ),
    "module": (
        f"{PAIRS}class Scores(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.weight = nn.Parameter(b)\n"
        "        self.bias = nn.Parameter(torch.zeros(M, device=dev))\n"
        "    def forward(self, x):\n"
        "        return (x.unsqueeze(1) * self.weight).sum(-1) + self.bias\n"
        "net = Scores()\n",
        "with torch.inference_mode():\n    y = net(a)",
    ),
    "views": (
        PAIRS,
        "p = a.view(N, 1, D) * b.reshape(1, M, D)\ny = torch.sum(p, 2)",
    ),
    "kept axis": (
        f"{PAIRS}def scored(one, other):\n    both = one[:, None] * other[None]\n"
        "    return both.sum(dim=-1, keepdim=True)\n",
        "scores = {n: scored(a, b) for n in ('one', 'two')}\ny = scores['two']",
    ),
    "mask": (
        SAMPLES,
        "mask = w > 0.5\n"
        "y = (s[:, :, None] * s[:, None, :] * mask[:, None, None]).sum(0)",
    ),
    "same name": (
        SAMPLES,
        "def moment(t):\n    t = t - t.mean(0)\n"
        "    m = t.unsqueeze(2) * t.unsqueeze(1)\n"
        "    m = m.sum(0)\n    m = m / (len(t) - 1)\n    return m\ny = moment(s)",
    ),
}

FUSE = {
    "functions": (
        ROWS,
        "def linear(c):\n"
        "    return torch.where(c > 0.04, (c.abs() + 0.05) ** 2.4, c / 12.9)\n\n"
        "def curve(t):\n    return torch.where(t > 0.01, t ** 2, 7.8 * t + 0.1)\n\n"
        "def to_lab(v):\n    r, g = linear(v[0]), linear(v[1])\n"
        "    f, h = curve(0.4 * r + 0.6 * g), curve(0.2 * r + 0.8 * g)\n"
        "    return 116 * f - 16, 500 * (f - h)\n\nL, y = to_lab(x.view(2, -1))",
    ),
    "same name": (
        ROWS,
        "y = x * 2\ny = torch.tanh(y)\ny = y + 1\ny = y.sigmoid()",
    ),
    "loop": (
        ROWS,
        "done = []\nfor part in x.split(R // 2):\n    z = (part - 0.5) / 0.2\n"
        "    z = z.clamp(-1, 1)\n    done.append(torch.exp(-z * z) * 3 + 1)\n"
        "y = torch.cat(done)",
    ),
    "method": (
        f"{ROWS}class Tone:\n    gain = 1.5\n    def map(self, t):\n"
        "        t = t * self.gain\n"
        "        return (t * (2.5 * t + 0.03)) / (t * t + 1)\n"
        "tone = Tone()\n",
        "y = tone.map(x)",
    ),
    "module": (
        f"{ROWS}class Act(nn.Module):\n    def forward(self, t):\n"
        "        return 0.5 * t * (1 + torch.tanh(0.8 * (t + 0.04 * t ** 3)))\n"
        "act = Act()\n",
        "with torch.no_grad():\n    y = act(x)",
    ),
    "keywords": (
        f"{ROWS}def shade(t, *, gain=1.0, bias=0.0):\n"
        "    return ((t * gain + bias).sigmoid() * 2 - 1).abs()\n"
        "parts = {'a': x, 'b': x + 1}\n",
        "shaded = {k: shade(v, gain=2.0) for k, v in parts.items()}\ny = shaded['b']",
    ),
    "expression": (ROWS, "y = torch.where(x > 0, (x + 1).log() * 2, x.exp() - 1)"),
    "augmented": (ROWS, "y = x - x.mean()\ny *= 0.3\ny += 1.0\ny = y.sin() * y"),
    "early return": (
        ROWS,
        "def squash(t, hard=False):\n    if hard:\n        return t.clamp(-1, 1)\n"
        "    e = torch.exp(-t.abs())\n    return torch.sign(t) * (1 - e) / (1 + e)\n\n"
        "kept = []\nfor part in x.split(R // 2):\n    kept.append(squash(part))\n"
        "y = torch.stack(kept)",
    ),
    "norm": (
        ROWS,
        "mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True)\n"
        "normed = (x - mean) / (var + 1e-5).sqrt()\ny = normed * 1.1 + 0.2",
    ),
    "lambda": (
        ROWS,
        "swish = lambda z: z * torch.sigmoid(1.7 * z) + 0.1 * z.abs()\ny = swish(x)",
    ),
    "manager": (
        ROWS,
        "with torch.no_grad():\n    low = x.clamp(min=-1)\n    z = low * 2 - 1\n"
        "    y = z.tanh() + low.exp()",
    ),
    "dictionary": (
        f"{ROWS}parts = {{'a': x, 'b': x + 1}}\n",
        "out = {}\nfor name, part in parts.items():\n"
        "    out[name] = ((part - 0.1) / 0.3).tanh().square()\ny = out['a']",
    ),
    "class of the cell": (
        ROWS,
        "class Film:\n    def __init__(self, a):\n        self.a = a\n\n"
        "    def __call__(self, t):\n        top = t * (self.a * t + 0.03)\n"
        "        return top / (t * t + 0.6) + 0.1\n\nfilm = Film(2.5)\ny = film(x)",
    ),
}

PAD = {
    "expression": (HALVES, "y = p @ q"),
    "dictionary": (
        f"{HALVES}kinds = {{'a': p, 'b': p * 2}}\n",
        "means = {k: (v @ q).float().mean(0) for k, v in kinds.items()}\n"
        "y = means['b']",
    ),
    "module": (
        f"{HALVES}layer = nn.Linear(Q, O, device=dev, dtype=torch.bfloat16)\n",
        "with torch.no_grad():\n    y = layer(p)",
    ),
    "helper": (
        f"{HALVES}def scores(t):\n    return torch.matmul(t, q).relu()\n",
        "y = torch.cat([scores(t) for t in p.split(P // 2)])",
    ),
    "batches": (
        HALVES,
        "y = torch.bmm(p.view(2, P // 2, Q), q.expand(2, Q, O)).sum(0)",
    ),
    "transposed": (f"{HALVES}k = q.T.contiguous()\n", "y = torch.mm(p, k.t())"),
    "method": (
        f"{HALVES}class Head:\n    def __init__(self):\n        self.q = q\n"
        "    def __call__(self, t):\n        return t.matmul(self.q)\nhead = Head()\n",
        "y = head(p)",
    ),
    "einsum": (HALVES, "y = torch.einsum('ij,jk->ik', p, q)"),
    "addmm": (
        f"{HALVES}bias = torch.ones(O, device=dev, dtype=torch.bfloat16)\n",
        "y = torch.addmm(bias, p, q)",
    ),
    "linear": (f"{HALVES}k = q.T.contiguous()\n", "y = nn.functional.linear(p, k)"),
    "place": (
        f"{HALVES}y = torch.empty(P, O, device=dev, dtype=torch.bfloat16)\n",
        "for _ in range(2):\n    torch.mm(p, q, out=y)",
    ),
    "loop": (
        HALVES,
        "y = torch.zeros(P // 2, O, device=dev, dtype=torch.bfloat16)\n"
        "for part in p.split(P // 2):\n    y += part.mm(q)",
    ),
}

#: near misses: they look like the programs above, and their operators are needed
_KEPT = {
    "topk": {
        "both ends": (ROWS, "s = x.sort(1).values\ny = s[:, 0] + s[:, -1]"),
        "median": (ROWS, "y = x.sort(dim=1).values[:, C // 2]"),
        "each hundredth": (ROWS, "y = torch.sort(x, 1)[0][:, ::100]"),
        "other axis": (ROWS, "y = x.sort(dim=1).values[:2]"),
        "whole, of a helper": (
            f"{ROWS}def order(t):\n    s, i = torch.sort(t.flatten())\n"
            "    return s, i\n",
            "s, i = order(x)\ny = s[0] + s[-1]",
        ),
        "set in a branch": (
            ROWS,
            "s = torch.sort(x, dim=1).values\nif len(x) > 5:\n    s = s.cumsum(1)\n"
            "y = s[:, :8]",
        ),
    },
    "cdist": {
        "differences": (
            PAIRS,
            "d = a[:, None] - b[None]\ny = (d ** 2).sum(-1)\nz = d.mean(0)",
        ),
        "absolute": (PAIRS, "y = (a[:, None] - b).abs().sum(-1)"),
        "squares within a sum": (
            PAIRS,
            "y = ((a[:, None] - b) ** 2 / (b + 4)).sum(-1)",
        ),
        "set in a branch": (
            PAIRS,
            "d = a[:, None] - b\nif len(b) > 5:\n    d = d * 2\ny = (d ** 2).sum(-1)",
        ),
    },
    "matmul-not-outer": {
        "not linear": (PAIRS, "y = torch.relu(a[:, None] * b).sum(-1)"),
        "extremes": (
            PAIRS,
            "p = a[:, None] * b[None]\ny = p.sum(-1) + p.max(-1).values",
        ),
        "sums": (PAIRS, "y = (a[:, None] * b + 1).sum(-1)"),
        "weights of pairs": (
            SAMPLES,
            "e = torch.rand(S, G, G, device=dev)\n"
            "y = (s[:, :, None] * s[:, None, :] * e).sum(0)",
        ),
    },
    "fuse": {
        "one pass": (ROWS, "y = x * 2"),
        "numbers drawn": (ROWS, "y = (torch.rand_like(x) * 2 - 1).tanh()"),
    },
    **layers.KEPT,
    "pad": {
        "multiples of 8": (HALVES, "y = p[:, :16384].mm(q[:16384, :1016])"),
        "float32": (PAIRS, "y = a[:, :63] @ b[:, :63].T"),
    },
}

_PROGRAMS = {
    **layers.PROGRAMS,
    "topk": TOPK,
    "cdist": CDIST,
    "matmul-not-outer": OUTER,
    "fuse": FUSE,
    "pad": PAD,
}
_LARGE = {
    **{"R": 256, "C": 50_000, "N": 2048, "M": 1024, "D": 64, "S": 2048, "G": 320},
    **{"P": 4096, "Q": 20_531, "O": 1021},
    **{"L": 1024, "V": 8192, "T": 4096, "E": 512},
}
_SMALL = {
    **{"R": 4, "C": 500, "N": 60, "M": 40, "D": 6, "S": 50, "G": 8},
    **{"P": 16, "Q": 21, "O": 11},
    **{"L": 6, "V": 12, "T": 8, "E": 5},
}


def _programs(written: dict[str, dict[str, tuple[str, str]]]) -> list[Program]:
    return [
        Program(f"{change}: {name}", change, *code, large=_LARGE, small=_SMALL)
        for change, programs in written.items()
        for name, code in programs.items()
    ]


PROGRAMS, KEPT = _programs(_PROGRAMS), _programs(_KEPT)
NEEDED = _programs(layers.NEEDED)

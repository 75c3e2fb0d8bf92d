"""Programs of attention and of tables, as different people write them.

Each is (setup, source).
"""

from __future__ import annotations

HEADS = (
    "half = torch.bfloat16\n"
    "q = torch.randn(4, 8, L, 64, device=dev, dtype=half)\n"
    "k = torch.randn(4, 8, L, 64, device=dev, dtype=half)\n"
    "v = torch.randn(4, 8, L, 64, device=dev, dtype=half)\n"
)
IDS = (
    "ids = torch.randint(0, V, (T,), device=dev)\n"
    "table = torch.randn(V, E, device=dev)\n"
    "import torch.nn.functional as F\n"
)

SDPA = {
    "expression": (
        HEADS,
        "y = torch.softmax(q @ k.transpose(-2, -1) / 8.0, dim=-1) @ v",
    ),
    "same name": (
        HEADS + "from torch.nn import functional as F\nimport math\n",
        "s = torch.matmul(q, k.transpose(2, 3))\n"
        "s = s * 64 ** -0.5\n"
        "s = F.softmax(s, dim=-1)\n"
        "y = torch.matmul(s, v)",
    ),
    "helper": (
        HEADS + "from torch.nn import functional as F\n"
        "import math\n"
        "def attend(q, k, v, scale=None):\n"
        "    scale = scale or 1 / math.sqrt(q.size(-1))\n"
        "    scores = q @ k.mT * scale\n"
        "    weights = scores.softmax(-1)\n"
        "    return weights @ v\n",
        "y = attend(q, k, v)",
    ),
    "einsum": (
        HEADS,
        "att = torch.einsum('bhid,bhjd->bhij', q, k) / 8\n"
        "w = att.softmax(dim=-1)\n"
        "y = torch.einsum('bhij,bhjd->bhid', w, v)",
    ),
    "bmm": (
        HEADS,
        "q3, k3, v3 = (t.flatten(0, 1) for t in (q, k, v))\n"
        "s = torch.bmm(q3, k3.transpose(1, 2)) * 0.125\n"
        "y = torch.bmm(torch.softmax(s, -1), v3).view_as(q)",
    ),
    "module": (
        HEADS + "class Head(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.drop = nn.Dropout(0.0)\n"
        "    def forward(self, q, k, v):\n"
        "        att = (q @ k.transpose(-2, -1)) / (k.size(-1) ** 0.5)\n"
        "        att = torch.softmax(att, dim=-1)\n"
        "        att = self.drop(att)\n"
        "        return att @ v\n"
        "head = Head().eval()\n",
        "with torch.no_grad():\n    y = head(q, k, v)",
    ),
    "mask": (
        HEADS + "causal = torch.ones(L, L, device=dev, dtype=torch.bool).tril()\n",
        "scores = q @ k.transpose(-2, -1) / 8\n"
        "scores = scores.masked_fill(~causal, float('-inf'))\n"
        "y = scores.softmax(-1) @ v",
    ),
    "loop": (
        HEADS,
        "outs = []\n"
        "for b in range(4):\n"
        "    w = (q[b] @ k[b].transpose(-2, -1) / 8).softmax(-1)\n"
        "    outs.append(w @ v[b])\n"
        "y = torch.stack(outs)",
    ),
    "in place": (
        HEADS,
        "s = torch.matmul(q, k.transpose(-1, -2))\n"
        "s /= 8.0\n"
        "s = s.softmax(-1)\n"
        "y = s @ v",
    ),
}

_MASKED = (
    "class Attention(nn.Module):\n"
    "    def forward(self, q, k, v, mask=None, causal=False):\n"
    "        b, h, n, d = q.shape\n"
    "        scores = torch.matmul(q, k.transpose(-2, -1)) / d ** 0.5\n"
)
_WEIGHED = (
    "        weights = scores.softmax(dim=-1)\n"
    "        return torch.matmul(weights, v)\n"
    "attend = Attention()\n"
)
SDPA |= {
    "a softmax by hand": (
        HEADS,
        "s = q @ k.mT / 8\n"
        "e = torch.exp(s - s.max(-1, keepdim=True).values)\n"
        "y = (e / e.sum(-1, keepdim=True)) @ v",
    ),
    "a helper's softmax": (
        HEADS + "def softmax(x):\n"
        "    e = (x - x.amax(dim=-1, keepdim=True)).exp()\n"
        "    return e / e.sum(dim=-1, keepdim=True)\n"
        "def attend(q, k, v):\n"
        "    s = torch.matmul(q, k.transpose(-2, -1)) / 64**0.5\n"
        "    return torch.matmul(softmax(s), v)\n",
        "y = attend(q, k, v)",
    ),
    "exponents of the same name": (
        HEADS,
        "s = torch.exp(torch.einsum('bhid,bhjd->bhij', q, k) * 0.125)\n"
        "s = s / torch.sum(s, dim=-1, keepdim=True)\n"
        "y = torch.einsum('bhij,bhjd->bhid', s, v)",
    ),
    "a mask that is given": (
        HEADS + "seen = torch.rand(L, L, device=dev) > 0.2\n" + _MASKED + "        "
        "if mask is not None:\n"
        "            scores = scores.masked_fill(mask == 0, float('-inf'))\n"
        + _WEIGHED,
        "with torch.inference_mode():\n    y = attend(q, k, v, mask=seen)",
    ),
    "a branch that makes a mask": (
        HEADS + _MASKED + "        if causal:\n"
        "            i = torch.arange(scores.size(-1), device=scores.device)\n"
        "            scores.masked_fill_(i[None, :] > i[:, None], -1e9)\n" + _WEIGHED,
        "y = attend(q, k, v, causal=True)",
    ),
    "a mask of the scores' shape": (
        HEADS + _MASKED + "        ones = torch.ones(*scores.shape[-2:],\n"
        "                          device=scores.device)\n"
        "        low = torch.finfo(scores.dtype).min\n"
        "        scores = torch.where(ones.triu(2).bool(), low, scores)\n" + _WEIGHED,
        "y = attend(q, k, v)",
    ),
    "a bias between": (
        HEADS,
        "scores = torch.einsum('bhqd,bhkd->bhqk', q, k).mul_(0.125)\n"
        "hidden = torch.full((L, L), float('-inf'), device=dev).triu(diagonal=1)\n"
        "scores = scores + hidden\n"
        "weights = F.softmax(scores.float(), dim=3).type_as(q)\n"
        "y = torch.einsum('bhqk,bhkd->bhqd', weights, v)",
    ),
}

ONE_HOT = {
    "expression": (
        IDS,
        "y = F.one_hot(ids, V).float() @ table",
    ),
    "helper": (
        IDS + "def look(ids, table):\n"
        "    onehot = F.one_hot(ids, table.shape[0]).type_as(table)\n"
        "    return torch.matmul(onehot, table)\n",
        "y = look(ids, table)",
    ),
    "scatter": (
        IDS,
        "hot = torch.zeros(T, V, device=dev)\n"
        "hot.scatter_(1, ids.unsqueeze(1), 1.0)\n"
        "y = hot.mm(table)",
    ),
    "class": (
        IDS + "class Lookup:\n"
        "    def __init__(self, t):\n"
        "        self.table = t\n"
        "    def __call__(self, ids):\n"
        "        hot = F.one_hot(ids, len(self.table))\n"
        "        return hot.float().matmul(self.table)\n"
        "lookup = Lookup(table)\n",
        "y = torch.cat([lookup(part) for part in ids.split(T // 2)])",
    ),
    "loop": (
        IDS,
        "outs = []\n"
        "for part in ids.split(T // 2):\n"
        "    hot = F.one_hot(part, num_classes=V).to(torch.float32)\n"
        "    outs.append(hot @ table)\n"
        "y = torch.cat(outs)",
    ),
}

ONE_HOT |= {
    "rows of a helper's eye": (
        IDS + "def categories(ids, n):\n"
        "    return torch.eye(n, device=ids.device)[ids]\n"
        "def embed(ids, table):\n"
        "    return torch.matmul(categories(ids, len(table)), table)\n",
        "y = embed(ids, table).tanh()",
    ),
    "comparison": (
        IDS,
        "hot = ids.unsqueeze(1) == torch.arange(V, device=dev)\nhot = hot.float()\n"
        "y = hot @ table",
    ),
    "stored": (
        IDS,
        "hot = torch.zeros(T, V, device=dev)\n"
        "hot[torch.arange(T, device=dev), ids] = 1\ny = hot.mm(table).relu()",
    ),
    "sum of a method": (
        IDS + "class Book:\n    def __init__(self, table):\n"
        "        self.table = table\n"
        "    def look_up(self, ids):\n"
        "        hot = F.one_hot(ids, num_classes=self.table.size(0))\n"
        "        hot = hot.to(self.table.dtype)\n"
        "        return torch.einsum('nv,ve->ne', hot, self.table)\n"
        "book = Book(table)\n",
        "y = book.look_up(ids)",
    ),
}

NEED_WEIGHTS = {
    "keywords that are passed on": (
        "class Block(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.norm = nn.LayerNorm(E)\n"
        "        self.attn = nn.MultiheadAttention(E, 1, batch_first=True)\n"
        "    def forward(self, x, **more):\n        h = self.norm(x)\n"
        "        return x + self.attn(h, h, h, **more)[0]\n"
        "blocks = nn.ModuleList(Block() for _ in range(3))\n"
        "blocks.to(dev, torch.bfloat16)\n"
        "x = torch.randn(16, L, E, device=dev, dtype=torch.bfloat16)\n",
        "with torch.inference_mode():\n    y = x\n    for block in blocks:\n"
        "        y = block(y)",
    ),
}

PROGRAMS = {"sdpa": SDPA, "index-not-one-hot": ONE_HOT, "need-weights": NEED_WEIGHTS}

#: near misses: nothing of them may go
KEPT = {
    "index-not-one-hot": {
        "values that are stored": (
            IDS,
            "m = torch.zeros(T, V, device=dev)\n"
            "m[torch.arange(T, device=dev), ids] = torch.rand(T, device=dev)\n"
            "y = m @ table",
        ),
        "two in a row": (
            IDS,
            "m = torch.zeros(T, V, device=dev)\n"
            "m[torch.arange(T, device=dev), ids] = 1\n"
            "m[torch.arange(T, device=dev), ids.flip(0)] = 1\ny = m @ table",
        ),
        "ones of earlier turns": (
            IDS,
            "y = []\nm = torch.zeros(T, V, device=dev)\n"
            "for part in (ids, ids.flip(0)):\n"
            "    m.scatter_(1, part[:, None], 1)\n    y.append(m @ table)",
        ),
        "changed after its turn": (
            IDS,
            "y = []\nm = F.one_hot(ids, V).float()\n"
            "for _ in range(3):\n    y.append(m @ table)\n    m.mul_(0.5)",
        ),
        "written to memory": (
            IDS + "y = torch.empty(T, E, device=dev)\n",
            "torch.mm(F.one_hot(ids, V).float(), table, out=y)",
        ),
        "many in a row": (
            IDS,
            "m = (ids.unsqueeze(1) >= torch.arange(V, device=dev)).float()\n"
            "y = m @ table",
        ),
    },
    "sdpa": {
        "weights that are returned": (
            HEADS + "def attend(q, k, v, causal=True):\n    s = q @ k.mT / 8\n"
            "    if causal:\n        s = s.tril()\n"
            "    w = s.softmax(-1)\n    return w @ v, w\n",
            "y, w = attend(q, k, v)",
        ),
        "zeros are no mask": (
            HEADS + "def attend(q, k, v, causal=True):\n    s = q @ k.mT / 8\n"
            "    if causal:\n        s = s.tril()\n"
            "    return s.softmax(-1) @ v\n",
            "y = attend(q, k, v)",
        ),
        "scores that the branch reads": (
            HEADS + "def attend(q, k, v, sharp=True):\n    s = q @ k.mT / 8\n"
            "    if sharp:\n        m = s < s.mean()\n"
            "        s = s.masked_fill(m, float('-inf'))\n"
            "    return s.softmax(-1) @ v\n",
            "y = attend(q, k, v)",
        ),
    },
}

#: nothing of them is to name
NEEDED = {
    "sdpa": {
        "shares of a column": (
            HEADS,
            "e = torch.exp(q @ k.mT / 8)\ny = (e / e.sum(-2, keepdim=True)) @ v",
        ),
    },
    "index-not-one-hot": {
        "another product of its size": (
            IDS + "other = torch.randn(T, V, device=dev)\n",
            "m = (ids[:, None] == torch.arange(V, device=dev)).float()\n"
            "z = other @ table\ny = m.sum(), z",
        ),
        "rows by their gates, of a helper": (
            IDS + "gates = torch.rand(T, V, device=dev)\n"
            "def weighted(ids, table):\n"
            "    hot = torch.zeros(T, V, device=dev).scatter_(1, ids[:, None], 1.0)\n"
            "    return (hot * gates) @ table\n",
            "y = weighted(ids, table)",
        ),
    },
}

"""Work of the host as several people write it, with what each technique is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import structs

from tests.profiler.advice.styles.harness import Program

#: what an earlier cell defines, and the cell; of both, WORK and VALUE are a technique's
_WAYS = {
    "loop": ("", "y = []\nfor x in xs:\n    WORK\n    y.append(VALUE)\n"),
    "dict": (
        "",
        "y = {}\nfor name, x in enumerate(xs):\n    WORK\n    y[name] = VALUE\n",
    ),
    "index": (
        "",
        "y = []\nfor i in range(len(xs)):\n    x = xs[i]\n    WORK\n    y += [VALUE]\n",
    ),
    "main": (
        "",
        "def main(items):\n    found = []\n    with torch.no_grad():\n"
        "        for x in items:\n            WORK\n            found.append(VALUE)\n"
        "    return found\n\ny = main(xs)\n",
    ),
    "helper": (
        "def one(x, dim=-1, device=dev):\n    WORK\n    return VALUE\n",
        "y = [one(x) for x in xs]\n",
    ),
    "whole": (
        "@torch.no_grad()\ndef all_of(items, verbose=False):\n"
        "    if not len(items):\n        return []\n    found = []\n"
        "    for x in items:\n        WORK\n        found.append(VALUE)\n"
        "    return found\n",
        "y = all_of(items=xs)\n",
    ),
    "generator": (
        "def each(items):\n    for x in items:\n        WORK\n        yield VALUE\n",
        "y = []\nfor x in each(xs):\n    y.append(x)\n",
    ),
    "method": (
        "class Study:\n    def __init__(self, items):\n        self.items = items\n"
        "        self.found = []\n\n    def one(self, x):\n        WORK\n"
        "        self.found.append(VALUE)\n\n    def run(self):\n"
        "        for x in self.items:\n            self.one(x)\n",
        "study = Study(xs)\nstudy.run()\ny = study.found\n",
    ),
    "module": (
        "class Net(nn.Module):\n    def forward(self, x):\n        WORK\n"
        "        return VALUE\n\nnet = Net()\n",
        "with torch.no_grad():\n    y = [net(x) for x in xs]\n",
    ),
    "held": (
        "class Part:\n    def step(self, x):\n        WORK\n        return VALUE\n\n"
        "class Whole:\n    def __init__(self):\n        self.part = Part()\n"
        "    def __call__(self, x):\n        return self.part.step(x)\n\n"
        "whole = Whole()\n",
        "y = {}\nfor i, x in enumerate(xs):\n    y[f'x{i}'] = whole(x)\n",
    ),
}


class _Work(NamedTuple):
    """What one technique's cells do; sizes are those of a tensor of `xs`."""

    xs: str
    work: str
    value: str
    large: dict[str, int]


_ON_GPU = "xs = list(torch.rand(COUNT, K, K, device=dev))\n"
_SMALL = {"COUNT": 6, "K": 4}
_WORK = {
    "pinned": _Work(
        "xs = list(torch.rand(COUNT, K, K))\n",
        *("z = x.to(dev)", "z.sum()", {"COUNT": 8, "K": 2048}),
    ),
    "pinned-results": _Work(
        *(_ON_GPU, "z = x * 2 + 1", "z.cpu()", {"COUNT": 8, "K": 2048})
    ),
    "stack-results": _Work(
        *(_ON_GPU, "z = x * 2 + 1", "z.cpu().numpy()", {"COUNT": 8, "K": 128})
    ),
    "make-on-gpu": _Work(
        _ON_GPU,
        "f = torch.linspace(0, 1, K)\nfy, fx = torch.meshgrid(f, f, indexing='ij')\n"
        "wave = torch.polar(torch.ones(K, K), fx + fy)\nwave = wave.to(dev)",
        *("(wave * x).abs()", {"COUNT": 8, "K": 1024}),
    ),
    "stay-on-gpu": _Work(
        _ON_GPU,
        "a = x.cpu().numpy()\na = np.clip(a - np.float32(0.1), 0, 1)\n"
        "a = np.arcsinh(a / np.float32(0.02))\nz = torch.from_numpy(a).to(dev)",
        *("z + 1", {"COUNT": 8, "K": 1024}),
    ),
    "tensor-once": _Work(
        "xs = [[1, 2, 3], [4, 5], [6, 7, 8, 9]] * COUNT\n",
        *("i = torch.tensor(x, device=dev)", "i.sum() * 2", {"COUNT": 6}),
    ),
    "read-once": _Work(
        *(_ON_GPU, "z = x.square().mean()", "z.item()", {"COUNT": 8, "K": 2048})
    ),
    "print-once": _Work(
        _ON_GPU,
        "z = x.square().mean()\nprint('mean', z)",
        *("z + 1", {"COUNT": 20, "K": 2048}),
    ),
    "keep-mask": _Work(
        _ON_GPU,
        "m = x > 0.5\nd = x[m] - 2 * x[m]",
        *("d.square().mean()", {"COUNT": 20, "K": 64}),
    ),
    "sync-in-loop": _Work(
        _ON_GPU,
        "z = x * 2 + 1\ntorch.cuda.synchronize()",
        *("z", {"COUNT": 8, "K": 4096}),
    ),
}
#: of these no edit is known yet, or a trace alone does not tell whose work it is
_LEFT = {
    *(("pinned", "method"), ("stack-results", "method"), ("read-once", "method")),
    ("tensor-once", "index"),
}


def _program(name: str, way: str) -> Program:
    work = _WORK[name]
    setup, source = ("".join(_lines(part, work)) for part in _WAYS[way])
    setup = f"import math\nimport numpy as np\n{work.xs}{setup}"
    return Program(
        f"{name}: {way}", name, setup, source, large=work.large, small=_SMALL
    )


def _lines(text: str, work: _Work) -> Iterator[str]:
    for line in text.replace("VALUE", work.value).splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        parts = work.work.splitlines() if line.strip() == "WORK" else [line.strip()]
        yield from (f"{indent}{one}\n" for one in parts)


PROGRAMS = [
    _program(name, way) for name in _WORK for way in _WAYS if (name, way) not in _LEFT
]
_TIMED = (
    "import time\ny, took = [], []\nfor x in xs:\n    begun = time.time()\n"
    "    y.append(one(x))\n    took.append(time.time() - begun)\n"
)
#: what looks like the programs above, and is needed
NEEDED = [
    structs.replace(_program("sync-in-loop", "helper"), name="timed", source=_TIMED)
]

"""Liberal edits of loops: what they compute, and the loops that they leave alone."""

from __future__ import annotations

import contextlib
import io

import pytest
import torch

from warpbook_profiler.advice.candidates import liberal_edits
from warpbook_profiler.model.change import Change

SETUP = (
    "import numpy as np\n"
    "x, w = torch.randn(12, 6), torch.randn(6, 6)\n"
    "parts = {f'p{n}': torch.randn(4 + n % 3, 6) for n in range(12)}\n"
    "eye, layer = torch.eye(6), torch.nn.Linear(6, 3).requires_grad_(False)\n"
    "losses = [one.square().mean() for one in x]"
)


def named(name: str) -> Change:
    return Change(name, "", "", "unknown", None, None, None, None, None, "", "")


def edits(source: str, name: str) -> list[str]:
    return [one.code for one in liberal_edits(source, (named(name),), only_named=True)]


def after(source: str) -> tuple[dict[str, object], str]:
    names: dict[str, object] = {"torch": torch}
    torch.manual_seed(0)
    exec(SETUP, names)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(source, names)
    return names, printed.getvalue()


def is_like(one: object, other: object) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and torch.allclose(one, other, 1e-4, 1e-5)
    if isinstance(one, list | tuple) and type(one) is type(other):
        return len(one) == len(other) and all(map(is_like, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(is_like(one[k], other[k]) for k in one)
    if hasattr(one, "tolist"):
        return type(one) is type(other) and is_like(one.tolist(), other.tolist())
    if isinstance(one, float):
        return other == pytest.approx(one, 1e-4)
    return type(one) is type(other) and one == other


def agree(source: str, edited: str, *names: str) -> bool:
    before, printed = after(source)
    try:
        results, also = after(edited)
    except (RuntimeError, TypeError, ValueError, AttributeError):
        # what a trial refuses
        return False
    alike = [name for name in names if is_like(before[name], results[name])]
    return printed == also and alike == list(names)


@pytest.mark.parametrize(
    ("name", "source", "results"),
    [
        # what a turn reads, or prints, of the GPU
        (
            "stack-results",
            "name = 3\nlows = {name: (p @ w).sum(0).cpu().numpy()"
            " for name, p in parts.items()}\n",
            ("lows", "name"),
        ),
        (
            "read-once",
            "lows = {n: (one * n).item() for n, one in enumerate(losses) if n % 3}\n",
            ("lows",),
        ),
        (
            "read-once",
            "lows = both = {f'{n}': float(x[n].max() - n) for n in range(9)}\n",
            ("lows", "both"),
        ),
        (
            "stack-results",
            "rows = []\nfor name, p in parts.items():\n"
            "    rows.append((name, (p @ w).sum(0).cpu().numpy()))\n",
            ["rows"],
        ),
        (
            "read-once",
            "def fit(y):\n    seen, n = {}, 0\n    while n < 9:\n"
            "        y = torch.tanh(y @ w)\n        gap = y.abs().max()\n"
            "        if n % 3 == 0:\n            seen[n] = gap.item()\n"
            "        n += 1\n    return y, seen\ny, seen = fit(x)\n",
            ["y", "seen"],
        ),
        (
            "read-once",
            "total, right = 0.0, 0\nfor n, row in enumerate(x):\n"
            "    value = float((row @ w).norm())\n    total += value / (n + 1)\n"
            "    right += int(layer(row).argmax() == n % 3)\n",
            ["total", "right", "n", "row"],
        ),
        (
            "print-once",
            "y = x.clone()\nfor step in range(6):\n    y.mul_(0.5)\n"
            "    print(f'{step}: {y[0, 0]:.3f}', y.norm().item())\n    y = y @ w\n"
            "    print('then', round(y.mean().item(), 4))\n",
            ["y", "step"],
        ),
        # lists of Python become tensors before the batch
        (
            "whole-tensor",
            "lists = [{'a': [n, n + 1.5][: 1 + n % 2]} for n in range(9)]\n"
            "scores = [torch.tensor(one['a']).cumsum(0).sum() for one in lists]\n",
            ["scores"],
        ),
        # turns that are a batch
        (
            "whole-tensor",
            "scores = [layer(p).softmax(-1).amax(0) for p in parts.values()]\n",
            ["scores"],
        ),
        (
            "whole-tensor",
            "out, total = torch.zeros(12, 6), torch.zeros(6)\nfor i in range(1, 12):\n"
            "    turned = x[i] @ w\n    out[i] = turned + x[i - 1]\n"
            "    total += turned\n",
            ["out", "total"],
        ),
        (
            "batch-linalg",
            "def solve(parts):\n    found = {}\n    for name, p in parts.items():\n"
            "        gram, side = p.T @ p + eye, p.sum(0)\n"
            "        found[name] = torch.linalg.solve(gram, side)\n"
            "    return found\nfound = solve(parts)\n",
            ["found"],
        ),
        (
            "batch-linalg",
            "dets, kept = [], []\nfor p in parts.values():\n"
            "    q, r = torch.linalg.qr(p[:4, :4])\n"
            "    dets.append(r.diagonal().prod())\n"
            "    kept.append(q.T @ p[:4])\n",
            ["dets", "kept"],
        ),
        # running values
        (
            "scan",
            "low, kept, i = x[0].clone(), [], 1\nwhile i < len(x):\n"
            "    low = torch.minimum(low, x[i])\n    kept.append(x[i] - low)\n"
            "    i += 1\n",
            ["low", "kept", "i"],
        ),
        (
            "scan",
            "left, lit = torch.ones(6), torch.zeros(6)\nfor row in x:\n"
            "    left = left * (1 - row.sigmoid())\n    lit = lit + left * row\n",
            ["left", "lit", "row"],
        ),
        (
            "scan",
            "def crest(x):\n    level, out = torch.full((6,), -1.0), x.clone()\n"
            "    for t in range(len(x) - 1):\n"
            "        level = torch.logaddexp(level, x[t + 1] * w[0])\n"
            "        out[t] = level.exp()\n    return level, out\ncrests = crest(x)\n",
            ["crests"],
        ),
        # no turn at all
        *(
            (
                name,
                f"n, y, kept, out = 0, x[0], [], x.clone()\nfor i in range(n):\n"
                f"    {line}\n    kept.append((x[i] @ w).sum(){read})\n",
                ["y", "kept", "out", "n"],
            )
            for name, line, read in (
                *(("batch-linalg", "y += x[i] * 2", ""), ("read-once", "", ".item()")),
                ("whole-tensor", "out[i] = x[i] @ w", ""),
                ("scan", "y = torch.maximum(y, x[i]); out[i] = y * 2", ""),
            )
        ),
        (
            "scan",
            "y, kept = w[0], []\nfor i in range(5):\n"
            "    y = torch.maximum(y, x[i - 1])\n    kept.append(y * 2)\n",
            ["y", "kept", "i"],
        ),
        (
            "scan",
            "y, kept = w[0], []\nfor row in x[:0]:\n    pass\nrows = x[:0]\n"
            "for row in rows:\n    y = torch.maximum(y, row)\n"
            "    kept.append(y * row)\n",
            ["y", "kept"],
        ),
        # choices of the GPU
        (
            "branch-on-gpu",
            "best, at, best_row = float('inf'), -1, x[0]\nfor n in range(12):\n"
            "    loss = (x[n] @ w).square().sum().item()\n    if loss < best:\n"
            "        best, at = loss, n\n        best_row = x[n] * 2\n",
            ["best", "at", "best_row"],
        ),
        (
            "branch-on-gpu",
            "y, rate, up = x[0].clone(), 0.5, 0\nfor row in x:\n"
            "    step = rate * (row - y)\n    trial = y + step\n"
            "    if trial.norm() > y.norm() and not trial.sum() < 0:\n"
            "        rate *= 0.5\n        up += 1\n    else:\n        y = trial\n",
            ["y", "rate", "up"],
        ),
        # floats of Python have 64 bits, and a number stays what it was when it was read
        (
            "branch-on-gpu",
            "rate, best, far = 0.1, 1e9 + 0.1, 0.1\nfor row in x:\n"
            "    loss = (row @ w).square().sum()\n    if loss < 0:\n"
            "        rate *= 0.5\n    if loss.item() < best:\n"
            "        best = loss.item()\n        far = far * 3\n"
            "exact = [one.hex() for one in (rate, best, far)]\n",
            ["exact"],
        ),
        (
            "branch-on-gpu",
            "def watch(x, limit):\n    total, best = torch.zeros(()), -1\n"
            "    for i in range(12):\n        e = total.item()\n"
            "        total += x[i].square().sum()\n        if e > limit:\n"
            "            best = i\n    return total.item(), best\n"
            "seen = [watch(x, limit) for limit in (0.0, 20.0, 1e9)]\n",
            ["seen"],
        ),
        # Python chooses between what torch would make one dtype, shape or graph of
        (
            "branch-on-gpu",
            "wide, best, y = x[0], x[0], w.clone().requires_grad_()\nz = y\n"
            "for row in x:\n    s = (row @ w).sum()\n    if s > 0:\n"
            "        wide = s.clone()\n        best = row.double()\n"
            "        z = (s * 1e9).exp().exp() * y\n    else:\n        z = y * 2\n"
            "z.nan_to_num(0, 0, 0).sum().backward()\ngrad = y.grad\n",
            ["wide", "best", "grad"],
        ),
        # memory that is there before
        (
            "allocate-once",
            "y = x[:2]\nfor r in x:\n    y = torch.vstack([y, y.mean(0) + r])\n",
            ["y"],
        ),
        (
            "allocate-once",
            "seen, marks = x[:1], []\nfor row in x:\n"
            "    marks.append((seen @ row).amax())\n"
            "    seen = torch.cat([seen, row[None] @ w])\n",
            ["seen", "marks"],
        ),
        (
            "allocate-once",
            "def grow(h, n):\n    while n:\n"
            "        h = torch.cat((h, h[:, -1:] + n), dim=1)\n"
            "        n -= 1\n    return h\nh = grow(x, 7)\n",
            ["h"],
        ),
        (
            "allocate-once",
            "seen = torch.ones(1, dtype=torch.int32)\nfor row in x:\n"
            "    seen = torch.cat([seen, row[:2] * seen.sum()], 0)\n",
            ["seen"],
        ),
        # an older one stays, and what is left has rows in order
        (
            "allocate-once",
            "seen, kept = x[:1], []\nfor n in range(9):\n"
            "    seen = torch.cat([seen, x[n : n + 1]])\n"
            "    if n == 3:\n        kept.append(seen)\n",
            ["seen", "kept"],
        ),
        (
            "allocate-once",
            "out, n = x[:, :1], 0\nwhile out.shape[1] < 9:\n"
            "    out = torch.cat([out, x[:, n % 6, None]], dim=1)\n    n += 1\n"
            "flat = out.reshape(-1).view(-1)\n",
            ["out", "flat"],
        ),
    ],
)
def test_an_edited_loop_computes_the_same(
    name: str, source: str, results: list[str]
) -> None:
    found = edits(source, name)
    right = [one for one in found if agree(source, one, *results)]
    assert right, found


@pytest.mark.parametrize(
    ("name", "source"),
    [
        # what was read decides what comes next
        ("read-once", "y = x\nwhile y.norm().item() > 1:\n    y = y / 2\n"),
        ("read-once", "y = x\nfor r in x:\n    y = y * y.max().item()\n"),
        (
            "read-once",
            "for r in x:\n    v = (r @ w).sum()\n    if v > 0:\n        break\n",
        ),
        ("print-once", "for n in range(9):\n    print(n)\n"),
        (
            "print-once",
            "y = x\nfor n in range(9):\n    print(y)\n    y = y @ w\n"
            "    y = g(y) if print(y) else y\n",
        ),
        # a turn needs the one before it
        (
            "whole-tensor",
            "y = x[0]\nkept = []\nfor r in x:\n    y = y @ w\n    kept.append(y)\n",
        ),
        ("scan", "y = x[0]\nfor r in x:\n    y = torch.tanh(y + r)\n"),
        (
            "whole-tensor",
            "y = x[0].clone()\nfor r in x:\n    z = torch.tanh(y + r)\n    y += z\n",
        ),
        # it counts, and so does what it would compute
        ("whole-tensor", "y = []\nfor n in range(9):\n    y.append(x.roll(n).sum())\n"),
        ("scan", "y = x[0]\nfor r in x:\n    y = y * 0.9 + r\n"),
        ("scan", "y = x[0]\nfor r in x:\n    y = torch.maximum(r * y.sum(), y)\n"),
        (
            "scan",
            "y = x[0].clone()\nfor t in range(11):\n"
            "    y = torch.maximum(y, x[t])\n    x[t + 1] = y * 2\n",
        ),
        # rows from the end, and rows that Python does not come to
        *(
            (
                "scan",
                f"y, kept = x[0], []\nfor i in range({limits}):\n"
                f"    y = torch.maximum(y, {row})\n    kept.append(y * 2)\n",
            )
            for limits, row in (
                *(("-3, 0", "x[i]"), ("k, 5", "x[i]")),
                ("5", "(x[i] if i else w[0])"),
            )
        ),
        (
            "whole-tensor",
            "kept = []\nfor i in at:\n"
            "    kept.append((x[i] if i < 12 else w[0]) @ w)\n",
        ),
        # an arm does more than set names, or no tensor decides
        (
            "branch-on-gpu",
            "kept = []\nfor r in x:\n    s = r @ w\n"
            "    if s.sum() > 0:\n        kept.append(s)\n",
        ),
        (
            "branch-on-gpu",
            "y = x\nfor n in range(9):\n    if n % 2:\n        y = y @ w\n",
        ),
        # what is not chosen would read or write outside of a tensor, or more
        *(
            (
                "branch-on-gpu",
                "y = x[0]\nfor n, r in enumerate(x):\n    s = (r @ w).sum()\n"
                f"    if s > 0:\n        y = {arm}\n",
            )
            for arm in (
                *("x[s.long()]", "x[k]", "x.index_select(0, k)", "y.mul_(2)"),
                *("F.binary_cross_entropy(r, w[0])", "torch.bernoulli(r)", "my.exp(r)"),
                *("F.embedding_bag(r.long(), w)", "torch.ops.mine.lookup(r)"),
                *("todo.pop()", "time.time()", "x[n + 1]", "1 / k", "z.y"),
            )
        ),
        (
            "branch-on-gpu",
            "y = x[0]\nfor n in range(9):\n    s = (x[n] @ w).sum()\n"
            "    if n and torch.bernoulli(s):\n        y = s\n",
        ),
        # what is chosen is written in place, or is a tensor or a number
        *(
            (
                "branch-on-gpu",
                f"y = {first}\nfor n, r in enumerate(x):\n    s = (r @ w).sum()\n"
                f"    if s > 0:\n        {arm}\n    {line}\n",
            )
            for first, arm, line in (
                *(("x[0]", "y = s", "s += 1"), ("x[0]", "y = s", "y.mul_(2)")),
                *(("x[0]", "y += s", "pass"), ("x[0]", "y = r", "x[n] = 1")),
                ("x[0]", "y = s", "def f(v):\n        v.mul_(2)\n    f(s)"),
                *(("0.0", "y = s", "pass"), ("x[0]", "y = s", "v = y[:2]; v[0] = 1")),
            )
        ),
        ("branch-on-gpu", "for r in x:\n    if r.sum() > 0:\n        y = f(r)\n"),
        ("allocate-once", "for r in x:\n    y = torch.cat([r, w[0]])\n"),
        # it grows from an older one again, its memory is written, or read in order
        *(
            (
                "allocate-once",
                "y = x[:1]\nfor n, r in enumerate(x):\n"
                f"    y = torch.cat([y, r[None]]{axis})\n    {line}\n",
            )
            for axis, line in (
                ("", "y = y[:5] if n == reset else y"),
                ("", "first = y[0]\n    first.mul_(2)"),
                ("", "y[0] = 1"),
                (", 1", "z = y.view(-1)"),
            )
        ),
        ("allocate-once", "for r in x:\n    y = np.concatenate([y, r])\n"),
    ],
)
def test_other_loops_stay(name: str, source: str) -> None:
    assert not edits(source, name)


def test_what_an_edit_adds_is_not_edited_again() -> None:
    source = "for name, p in parts.items():\n    kept[name] = (p @ w).sum()\n"
    (first, *_) = edits(source, "whole-tensor")
    assert all("places" in one for one in edits(first, "whole-tensor"))
    assert not edits(first, "read-once")

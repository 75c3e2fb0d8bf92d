"""Edits of models' code: what each computes, and sources that have none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.profiler.advice.edited_cells import agrees
from tests.profiler.advice.program import Cell, changes_of
from tests.profiler.advice.test_host_loops import steps
from tests.profiler.advice.test_model_patterns import HALF, attends, decodes, routes
from warpbook_profiler.advice.code.cell_code import CellCode
from warpbook_profiler.advice.rewriting.growths import allocated
from warpbook_profiler.model.change import Change
from warpbook_profiler.techniques.host.cell_by_cell import cell_by_cell
from warpbook_profiler.techniques.models.experts_at_once import experts_at_once
from warpbook_profiler.techniques.models.gqa import gqa
from warpbook_profiler.techniques.models.static_cache import static_cache

HEADS = (
    "import torch.nn.functional as F\nq = torch.randn(2, 8, 1, 4)\n"
    "pairs = [torch.randn(2, 2, 2, 16, 4) for _ in range(3)]\nk, v = pairs[0]\n"
    "def repeat_kv(x, n):\n    return x.repeat_interleave(n, 1)"
)
WIDEN = (
    "def widen(x, n):\n"
    "    b, h, t, d = x.shape\n"
    "    return x[:, :, None].expand(b, h, n, t, d).reshape(b, h * n, t, d)\n"
    "def wider(x):\n    return x[:, :, None].expand(-1, -1, 4, -1, -1).flatten(1, 2)\n"
)
ATTEND = "F.scaled_dot_product_attention(q, {}, {})"
MANY = ATTEND.format("k", "v")


def wide_heads(source: str) -> Cell:
    cell, wide = Cell(source), (4, 8, 4, 4096, 128)
    for _ in range(4):
        for _ in range(2):
            with cell.operator("aten::repeat_interleave"), cell.operator("aten::clone"):
                cell.call("aten::copy_", 100_000, dims=(wide, wide), dtype=HALF)
        attends(cell, 256, 4096)
    cell.wait()
    return cell


def grouped(tmp_path: Path, source: str) -> Change:
    return changes_of(gqa, wide_heads(source).evidence(tmp_path))["gqa"]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (
            f"ys = []\nfor k, v in pairs:\n    k, v = widen(k, 4), widen(v, 4)\n"
            f"    ys.append({MANY})\n",
            ("ys", "k", "v"),
        ),
        (
            f"ys = []\nfor k, v in pairs:\n    k = widen(k, 4)\n    v = widen(v, 4)\n"
            f"    ys += [{MANY}]\n",
            ("ys", "k", "v"),
        ),
        (
            "keys = k.repeat_interleave(4, dim=1)\n"
            "values = v.repeat_interleave(4, dim=1)\n"
            f"y = {ATTEND.format('keys', 'values')}\n",
            ("y",),
        ),
        (
            "for _ in range(3):\n    wide = [\n"
            "        one[:, :, None].expand(-1, -1, 4, -1, -1).flatten(1, 2)\n"
            "        for one in (k, v)\n    ]\n"
            "    y = F.scaled_dot_product_attention(q, *wide)\n",
            ("y",),
        ),
        (
            "ys = []\nfor k, v in pairs:\n"
            "    k, v = (x.repeat_interleave(4, dim=1) for x in (k, v))\n"
            f"    ys += [{MANY}]\n",
            ("ys", "k", "v"),
        ),
        (
            "def attend(q, k, v):\n    k, v = map(wider, (k, v))\n"
            f"    return {MANY}\ny = attend(q, k, v)\n",
            ("y",),
        ),
        (
            "def attend(q, k, v):\n    k, v = widen(k, 4), widen(v, 4)\n"
            f"    return {MANY}\ny = attend(q, k, v)\n",
            ("y", "k", "v"),
        ),
        (
            "def attend(q, pairs):\n    for k, v in pairs:\n"
            "        n = q.shape[1] // k.shape[1]\n"
            "        k, v = widen(k, n), widen(v, n)\n"
            f"        q = q + {MANY}\n    return q\ny = attend(q, pairs)\n",
            ("y", "k", "v"),
        ),
        (
            "for at in range(3):\n    k, v = pairs[at]\n"
            "    n = q.shape[1] // len(k[0])\n"
            "    k = k.repeat_interleave(n, 1)\n    v = v.repeat_interleave(n, 1)\n"
            f"    y = {MANY}\n",
            ("y", "k", "v"),
        ),
        (
            "def wide(x, n=4):\n    a, h, t, d = x.shape\n    if n == 1:\n"
            "        return x\n    x = x[:, :, None, :, :].expand(a, h, n, t, d)\n"
            "    return x.reshape(a, n * h, t, d)\n"
            f"for k, v in pairs:\n    k, v = wide(k), wide(v)\n    y = {MANY}\n",
            ("y", "k", "v"),
        ),
    ],
)
def test_heads_with_names_of_their_own_stay_narrow(
    tmp_path: Path, source: str, names: tuple[str, ...]
) -> None:
    change = grouped(tmp_path, WIDEN + source)
    assert "enable_gqa=True" in change.code
    assert agrees(change, WIDEN + source, HEADS, *names)


@pytest.mark.parametrize(
    "source",
    [
        # somebody else takes the wide keys
        f"for k, v in pairs:\n    k, v = widen(k, 4), widen(v, 4)\n    y = {MANY}\n"
        "    n = k.sum()\n",
        # the last turn may end before they are wide
        f"for k, v in pairs:\n    if done():\n        break\n"
        f"    k, v = widen(k, 4), widen(v, 4)\n    y = {MANY}\n",
        # a turn reads what the one before it made wide
        f"m = 0\nfor _ in range(3):\n    m = k.sum()\n    k, v = pairs[1]\n"
        f"    k, v = widen(k, 4), widen(v, 4)\n    y = {MANY}\n",
        # which order the heads have is not in sight
        "wide = [repeat(x, 'b h t d -> b (g h) t d') for x in (k, v)]\n"
        "y = F.scaled_dot_product_attention(q, *wide)\n",
        # wider with each turn
        f"for _ in range(3):\n    k, v = widen(k, 4), widen(v, 4)\n    y = {MANY}\n",
        # values are made of wide keys
        "for k, v in pairs:\n    k = widen(k, 4)\n    v = widen(k, 4)\n"
        f"    y = {MANY}\n",
        # another cell may read what has these names
        f"k, v = pairs[1]\nk, v = widen(k, 4), widen(v, 4)\ny = {MANY}\n",
        # both are made of keys, or which are widened is not in the source
        "wide = [k.repeat_interleave(4, dim=1) for x in (k, v)]\n"
        "y = F.scaled_dot_product_attention(q, *wide)\n",
        "wide = [x.repeat_interleave(4, dim=1) for x in pairs[0]]\n"
        "y = F.scaled_dot_product_attention(q, *wide)\n",
        "wide = [x.repeat_interleave(4, dim=1) for x in (k, v)]\n"
        "y = F.scaled_dot_product_attention(q, *wide)\nn = wide[0].sum()\n",
        # tokens, not heads
        "keys = k.repeat_interleave(4, dim=2)\n"
        "values = v.repeat_interleave(4, dim=2)\n"
        f"y = {ATTEND.format('keys', 'values')}\n",
    ],
)
def test_heads_that_others_need_are_let_be(tmp_path: Path, source: str) -> None:
    assert not grouped(tmp_path, WIDEN + source).code


CACHE = (
    "import torch.nn.functional as F\n"
    "k0, v0 = torch.randn(2, 2, 3, 5, 4)\n"
    "new = [tuple(torch.randn(3, 2, 3, 1, 4)) for _ in range(7)]"
)
GROWS = (
    "k, v, ys = k0, v0, []\n"
    "{}:\n"
    "    {}k = torch.cat((k, a), dim=2)\n    v = torch.cat([v, b], 2)\n"
    "    ys.append(F.scaled_dot_product_attention(q, k, v)){}\n"
)


@pytest.mark.parametrize(
    "source",
    [
        GROWS.format("for q, a, b in new", "", ""),
        GROWS.format("for i, (q, a, b) in enumerate(new)", "", ""),
        GROWS.format("for q, a, b in iter(new)", "", "\n    if len(ys) > 4: break"),
        "at = 0\n"
        + GROWS.format("while at < 7", "q, a, b = new[at]\n    ", "\n    at += 1"),
    ],
)
def test_a_cache_grows_with_room_for_more(tmp_path: Path, source: str) -> None:
    cell = decodes(has_cats=True, grows=True, took=80_000, source=source)
    change = changes_of(static_cache, cell.evidence(tmp_path))["static-cache"]
    assert change.code.count("torch.cat") == 1
    assert agrees(change, source, CACHE, "ys", "k", "v")


@pytest.mark.parametrize(
    "after", ["\n    k.mul_(2)", "\n    k[:, :, 0] = 0", "\n    k = k[:, :, 1:]"]
)
def test_a_cache_that_is_written_is_let_be(tmp_path: Path, after: str) -> None:
    source = GROWS.format("for q, a, b in new", "", after)
    cell = decodes(has_cats=True, grows=True, took=80_000, source=source)
    change = changes_of(static_cache, cell.evidence(tmp_path))["static-cache"]
    assert "torch.cat((k, a), dim=2)" in (change.code or source)


MEMORY = (
    "class Memory:\n    def __init__(self, k):\n        self.k = k\n"
    "    def grow(self, a):\n        self.k = torch.cat((self.k, a), dim=-2)\n"
    "        return self.k\n"
)
KEEP = "    ys.append(F.scaled_dot_product_attention(q, {0}, {0}))\n"


@pytest.mark.parametrize(
    "source",
    [
        MEMORY + "ys, memory = [], Memory(k0)\nfor q, a, b in new:\n"
        "    k = memory.grow(a)\n" + KEEP.format("k"),
        # two go on from one another's memory, each its own way
        MEMORY + "ys, one, other = [], Memory(k0), Memory(k0)\n"
        "for at, (q, a, b) in enumerate(new):\n    k, v = one.grow(a), other.grow(b)\n"
        "    if at == 3:\n        other.k = one.k\n" + KEEP.format("k + v"),
        "ys, cache = [], [(k0, v0)]\nfor q, a, b in new:\n    k, v = cache[0]\n"
        "    cache[0] = torch.cat([k, a], dim=2), torch.cat([v, b], dim=2)\n"
        "    ys.append(F.scaled_dot_product_attention(q, *cache[0]))\n",
        "ys, past = [], (k0, v0)\nfor q, a, b in new:\n"
        "    past = (torch.cat((past[0], a), -2), torch.cat((past[1], b), -2))\n"
        "    ys.append(F.scaled_dot_product_attention(q, *past))\n",
        "ys, cache = [], {'k': k0}\nfor q, a, b in new:\n"
        "    cache['k'] = torch.cat([cache['k'], a], 2)\n" + KEEP.format("cache['k']"),
        "def grow(cache, layer, a):\n"
        "    cache[layer] = torch.cat([cache[layer], a], dim=2)\n"
        "    return cache[layer]\n"
        "ys, cache = [], [k0[:, :, :0]]\nfor q, a, b in new:\n"
        "    k = grow(cache, 0, a)\n" + KEEP.format("k"),
        "class Session:\n    def __init__(self, past):\n"
        "        self.past = [past]\n"
        "    def push(self, q, k, v):\n"
        "        k = torch.cat([self.past[0][0], k], dim=2)\n"
        "        v = torch.cat([self.past[0][1], v], dim=2)\n"
        "        self.past[0] = k, v\n"
        "        return F.scaled_dot_product_attention(q, k, v)\n"
        "session = Session((k0, v0))\nys = [session.push(*one) for one in new]\n",
        "def step(q, k, v, past):\n    old_k, old_v = past\n"
        "    k, v = torch.cat((old_k, k), 2), torch.cat((old_v, v), 2)\n"
        "    return F.scaled_dot_product_attention(q, k, v), (k, v)\n"
        "ys, past = [], (k0, v0)\nfor q, a, b in new:\n"
        "    y, past = step(q, a, b, past)\n    ys.append(y)\n",
        "cache, ys = [{'k': k0, 'v': v0}], []\n"
        "def attend(layer, q, k, v):\n    past = cache[layer]\n"
        "    keys = torch.cat([past['k'], k], -2)\n"
        "    values = torch.cat([past['v'], v], -2)\n"
        "    cache[layer] = {'k': keys, 'v': values}\n"
        "    return F.scaled_dot_product_attention(q, keys, values)\n"
        "for one in new:\n    ys.append(attend(0, *one))\n",
    ],
)
def test_what_an_object_holds_grows_with_room(tmp_path: Path, source: str) -> None:
    cell = decodes(has_cats=True, grows=True, took=80_000, source=source)
    change = changes_of(static_cache, cell.evidence(tmp_path))["static-cache"]
    assert "room" in change.code
    assert agrees(change, source, CACHE, "ys", "k0")
    # who writes into a memory would write into earlier ones
    written = f"{source}    cache[0][:, :, 0] = memory.k.mul_(past[0].zero_())\n"
    cell = decodes(has_cats=True, grows=True, took=80_000, source=written)
    change = changes_of(static_cache, cell.evidence(tmp_path))["static-cache"]
    assert not change.code


NETWORK = (
    "unit = torch.nn.{}Cell(4, 3)\nclass Net:\n    inner = unit\nnet = Net()\n"
    "xs, batches = torch.randn(7, 2, 4), torch.randn(2, 7, 4)\n"
    "h = c = torch.zeros(2, 3)\nout = torch.zeros(2, 7, 3)\nkept = []"
)


def network(tmp_path: Path, source: str, kind: str, between: str = "") -> str:
    cell = steps(f"aten::{kind.lower()}_cell", source, between)
    change = changes_of(cell_by_cell, cell.evidence(tmp_path))[f"whole-{kind.lower()}"]
    assert not change.code or agrees(
        change, source, NETWORK.format(kind), *"hc", "out", "kept"
    )
    return change.code


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("for x in xs:\n    h, c = unit(x, (h, c))\n    kept.append(c)", ""),
        ("for x in xs:\n    h, c = unit(x, (h, c))\n    kept.append(h)", "LSTM"),
        ("for x in xs[1:]:\n    h = unit(x, h)\n    kept.append(h)", ""),
        ("for x in batches.unbind(dim=1):\n    h = unit(x, h)", "GRU"),
        ("for x in torch.unbind(batches, 1):\n    h = net.inner(x, h)", "GRU"),
        ("for t in range(len(xs)):\n    h = unit(xs[t], h)\n    out[:, t] = h", "GRU"),
        (
            "for t in range(batches.shape[1]):\n    h = unit(batches[:, t], h)\n"
            "    out[:, t] = h\n    kept.append(h)",
            "GRU",
        ),
        ("for t in range(5):\n    h, c = unit(xs[t], (h, c))", "LSTM"),
        ("for t in range(5):\n    h = unit(xs[t + 1], h)", ""),
        # the next input is made of the last output
        ("for t in range(5):\n    h = unit(xs[t], h)\n    xs[t + 1] += h.sum()", ""),
        ("for x in xs:\n    h = unit(x, h)\n    unit = unit", ""),
        # what is kept is one memory then
        ("for x in xs:\n    h = unit(x, h)\n    kept.append(h)\nkept[0].zero_()", ""),
        ("for x in xs:\n    h = unit(x, h)\n    kept.append(h)\nkept[-1] += 1", ""),
        (
            "t = 1\nwhile t < len(xs):\n    h = unit(xs[t], h)\n    kept.append(h)\n"
            "    t += 1\nout = t",
            "GRU",
        ),
        ("T = xs.size(0)\nfor t in range(2, T):\n    h = unit(xs[t], h)", "GRU"),
        (
            "def run(xs, h):\n    T, wide = xs.shape[:2]\n"
            "    for t in range(T):\n        h = unit(xs[t], h)\n    return h\n"
            "h = run(xs, h)",
            "",
        ),
        # of no steps, too
        (
            "def run(xs, h):\n    for x in xs:\n        h = unit(x, h)\n    return h\n"
            "h, kept = run(xs, h), run(xs[:0], h)",
            "GRU",
        ),
        (
            "def run(xs, h):\n    T, rows, wide = xs.shape\n"
            "    for t in range(T):\n        h = unit(xs[t], h)\n    return h\n"
            "h, kept = run(xs, h), run(xs[:0], h)",
            "GRU",
        ),
        # numbers that are no places, or may not be
        ("for t in range(-3, 0):\n    h = unit(xs[t], h)", ""),
        ("t = -2\nwhile t != 2:\n    h = unit(xs[t], h)\n    t += 1", ""),
        ("T = 4.5\nt = 0\nwhile t < T:\n    h = unit(xs[t], h)\n    t += 1", ""),
        ("T = torch.tensor(4)\nfor t in range(T):\n    h = unit(xs[t], h)", ""),
        ("for t in range(n):\n    h = unit(xs[t], h)", ""),
        ("T = len(xs)\nxs = xs[1:]\nfor t in range(T):\n    h = unit(xs[t], h)", ""),
        ("h = None\nfor x in xs:\n    h = unit(x, h)", ""),
        ("for x in xs:\n    net.h = unit(x, net.h)", ""),
        ("for x in xs:\n    h[0] = unit(x, h[0])", ""),
        ("unit.register_forward_hook(f)\nfor x in xs:\n    h = unit(x, h)", ""),
        ("for x in xs:\n    h = unit(x, h)\n    if h.sum() > 9:\n        break", ""),
    ],
)
def test_steps_of_a_network_become_one_call(
    tmp_path: Path, source: str, kind: str
) -> None:
    code = network(tmp_path, source, kind or "GRU")
    assert bool(code) == bool(kind)
    assert not code or "allow_tf32" in code


def test_a_join_of_two_dtypes_is_as_wide_as_both() -> None:
    source = (
        "seen = torch.ones(1, dtype=torch.int32)\nfor row in rows:\n"
        "    seen = torch.cat([seen, row * seen.sum()], 0)\n"
    )
    names = {"torch": torch, "rows": torch.rand(4, 2)}
    before, after = dict(names), dict(names)
    exec(source, before)
    exec(allocated(CellCode(source)), after)
    assert before["seen"].dtype == after["seen"].dtype
    assert torch.equal(before["seen"], after["seen"])


def test_a_module_that_has_a_cell_and_more_is_let_be(tmp_path: Path) -> None:
    source = "for x in xs:\n    h = net.inner(x, h)"
    assert network(tmp_path, source, "GRU")
    assert not network(tmp_path, source, "GRU", between="aten::native_layer_norm")


EXPERTS = (
    "import torch.nn.functional as F\nhalf = {'dtype': torch.bfloat16}\n"
    "ups, downs = torch.randn(3, 8, 16, **half), torch.randn(3, 16, 8, **half)\n"
    "x, p = torch.randn(20, 8, **half), torch.randn(20, 3, **half).softmax(-1)\n"
    "w, best = p.max(-1)\nout, tables = torch.zeros_like(x), list(ups)"
)
BRAIN = "c10::BFloat16"


@pytest.mark.parametrize(
    ("source", "is_edited"),
    [
        (
            "w, chosen = p.max(-1)\nfor e in range(len(ups)):\n"
            "    mine = chosen == e\n    h = F.silu(x[mine] @ ups[e])\n"
            "    out[mine] = h @ downs[e] * w[mine, None]",
            True,
        ),
        (
            "chosen = p.argmax(dim=-1)\n"
            "for e, (up, down) in enumerate(zip(ups, downs)):\n"
            "    at = torch.where(e == chosen)[0]\n"
            "    if at.numel() == 0:\n        continue\n"
            "    h = F.gelu(x[at] @ down.mT).mul(2.0) @ up.mT\n"
            "    out.index_add_(0, at, h * w[at].unsqueeze(-1))",
            True,
        ),
        (
            "chosen = p.argmax(-1)\nfor e, up in enumerate(ups):\n"
            "    at = (chosen == e).nonzero().squeeze(1)\n"
            "    out[at] += x[at] @ up @ downs[e]",
            True,
        ),
        # other choices than the best, tokens that are mixed, what the loop changes
        ("for e in range(3):\n    at = best == e\n    out[at] = x[at] @ ups[e]", False),
        (
            "chosen = p.argmax(-1)\nfor e in range(3):\n    at = chosen == e\n"
            "    h = x[at] @ ups[e]\n    out[at] = (h - h.mean(0)) @ downs[e]",
            False,
        ),
        (
            "chosen = p.argmax(-1)\nfor e in range(3):\n    at = chosen == e\n"
            "    out[at] = out[at] + x[at] @ ups[e] @ downs[e]",
            False,
        ),
        (
            "chosen = p.argmax(-1)\nchosen[:2] = -1\nfor e in range(3):\n"
            "    at = chosen == e\n    out[at] = x[at] @ ups[e] @ downs[e]",
            False,
        ),
        (
            "chosen = p.argmax(-1)\nfor e in range(3):\n    at = chosen == e\n"
            "    h = x[at] @ ups[e]\n    out[at] = h @ downs[e]\nlast = h.sum()",
            False,
        ),
        (
            "chosen = p.argmax(-1)\nfor e in range(3):\n    at = chosen >= e\n"
            "    out[at] = x[at] @ ups[e] @ downs[e]",
            False,
        ),
    ],
)
def test_experts_are_grouped(tmp_path: Path, source: str, is_edited: bool) -> None:
    def change(experts: int = 48, dtype: str = BRAIN) -> Change:
        cell = routes(experts, 85, 6_000, source=source, dtype=dtype)
        return changes_of(experts_at_once, cell.evidence(tmp_path))["experts-at-once"]

    assert bool(change().code) == is_edited
    if is_edited:
        assert agrees(change(), source, EXPERTS, "out")
    # not all experts, or float16
    assert not change(experts=40).code
    assert not change(dtype=HALF).code

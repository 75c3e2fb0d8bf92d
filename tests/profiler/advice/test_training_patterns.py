"""Rules for training and inference as a whole: what shows them, and their edits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.profiler.advice.edited_cells import agrees
from tests.profiler.advice.program import Cell
from tests.profiler.advice.test_model_patterns import (
    change_of,
    holds,
    is_faster,
    nothing_of,
)
from warpbook_profiler.techniques.models.checkpointing import checkpoint_off
from warpbook_profiler.techniques.models.ddp_settings import ddp_settings
from warpbook_profiler.techniques.models.foreach_clip import foreach_clip
from warpbook_profiler.techniques.models.foreach_ema import foreach_ema
from warpbook_profiler.techniques.models.inference import no_autograd


def clips(
    source: str | None, tensors: int, at_once: bool = False, is_large: bool = False
) -> Cell:
    cell, size = Cell(source), (12_288, 8_192) if is_large else (192, 192)
    each = 95_000 if is_large else 2_000
    norms = ["norms"] if at_once else range(tensors)
    for _ in norms:
        with cell.operator("aten::linalg_vector_norm", dims=(size,)):
            cell.kernel(each)
        cell.python(2_000)
    cell.call("aten::stack", 3_000)
    for _ in norms:
        cell.call("aten::mul_", 2 * each, dims=(size, ()))
        cell.python(2_000)
    cell.wait()
    return cell


CLIP = (
    "total = 0.0\n"
    "for p in ps:\n"
    "    if p.grad is not None:\n"
    "        total += p.grad.norm().item() ** 2\n"
    "for p in ps: p.grad.mul_(total)\n"
    "torch.cuda.synchronize()\n"
)


def test_gradients_clipped_one_by_one(tmp_path: Path) -> None:
    change = change_of(foreach_clip, "foreach-clip", clips(CLIP, 200), tmp_path)
    assert is_faster(change, clips(None, 200, at_once=True))
    assert change.code.splitlines()[1:5] == [
        "normed = [p.grad for p in ps if p.grad is not None]",
        "for norm in (torch.stack(torch._foreach_norm(normed)).tolist() "
        "if normed else []): total += norm ** 2",
        "scaled = [p.grad for p in ps]",
        "if scaled: torch._foreach_mul_(scaled, total)",
    ]
    nothing_of(foreach_clip, clips(CLIP, 8), tmp_path)
    nothing_of(foreach_clip, clips(CLIP, 20, is_large=True), tmp_path)


def test_a_norm_may_be_a_sum_of_squares_of_no_gradients(tmp_path: Path) -> None:
    source = (
        "def clip(ps):\n    total = torch.zeros(())\n    for p in ps:\n"
        "        if p.grad is not None:\n"
        "            total = total + p.grad.pow(2).sum()\n    for p in ps:\n"
        "        if p.grad is not None:\n            p.grad.mul_(2 / total.sqrt())\n"
        "    return total\ny = [clip(ps), clip([]), *(p.grad for p in ps)]\n"
    )
    setup = (
        "ps = [torch.ones(3, requires_grad=True) for _ in range(4)]\n"
        "sum((p * n).sum() for n, p in enumerate(ps)).backward()\n"
    )
    change = change_of(foreach_clip, "foreach-clip", clips(source, 200), tmp_path)
    assert "_foreach_norm" in change.code and "_foreach_mul_" in change.code
    assert agrees(change, source, setup, "y")


GRADS = (
    "ps = [torch.nn.Parameter(torch.randn(3, 4)) for _ in range(5)]\n"
    "for p in ps[:4]:\n    p.grad = torch.randn(3, 4)\n"
)
SCALE = "for p in ps:\n    if p.grad is not None:\n        p.grad.mul_(1 / norm)\n"
SUMS = [
    "total = 0.0\nfor p in ps:\n    if p.grad is not None:\n"
    "        total = total + p.grad.pow(2).sum()\nnorm = total.sqrt()\n",
    "total = torch.zeros(())\nfor p in ps:\n    if p.grad is None:\n        continue\n"
    "    total += p.grad.norm() ** 2\nnorm = total ** 0.5\n",
    "norm = 0\nfor name, g in [('x', p.grad) for p in ps if p.grad is not None]:\n"
    "    norm = norm + torch.linalg.vector_norm(g)\n",
]


@pytest.mark.parametrize("source", SUMS)
def test_norms_of_gradients_are_summed_at_once(tmp_path: Path, source: str) -> None:
    cell = clips(source + SCALE, 200)
    change = change_of(foreach_clip, "foreach-clip", cell, tmp_path)
    assert ".sum()" in change.code and "for norm" not in change.code
    assert agrees(change, source + SCALE, GRADS, "norm")


@pytest.mark.parametrize(
    "source",
    [
        # another name looks at the sum's memory, or a gradient does
        "logs = torch.zeros(3)\ntotal = logs[0]\n"
        "for p in ps: total += p.grad.norm() ** 2\nnorm = total.sqrt()\n",
        "def clip(ps, total):\n    for p in ps: total += p.grad.norm() ** 2\n"
        "    return total.sqrt()\nnorm = clip(ps, logs[0])\n",
        # norms that are taken later, not always, or after another call
        "norm_of = lambda qs: torch.stack([p.grad.norm() for p in qs]).norm()\n"
        "norm = norm_of(ps)\n",
        "norm = torch.stack([p.grad.norm() for p in ps]).norm() "
        "if all(p.grad is not None for p in ps) else torch.zeros(())\n",
        "all_norms = (p.grad.norm() for p in ps)\nhalve(ps)\nnorm = sum(all_norms)\n",
        "norm = halve(ps) + sum(p.grad.norm() for p in ps)\n",
        "norm = ready(ps) and torch.stack([p.grad.norm() for p in ps]).norm()\n",
        # a turn that depends on the one before it
        "total = 0.0\nfor p in ps:\n    if total < 5:\n"
        "        total += p.grad.norm()\nnorm = total\n",
        "total = 0.0\nfor p in ps: total += p.grad.norm() * weight(p)\nnorm = total\n",
        "total = 0.0\nfor p in later(ps): total += p.grad.norm()\nnorm = total\n",
    ],
)
def test_norms_that_another_time_would_be_others_stay(
    tmp_path: Path, source: str
) -> None:
    source += "for p in ps: p.grad.mul_(0.5)\n"
    change = change_of(foreach_clip, "foreach-clip", clips(source, 200), tmp_path)
    assert not change.code


@pytest.mark.parametrize(
    "scaled",
    [
        # the factor is a gradient's own number, or may be
        "for p in ps: p.grad.mul_(ps[0].grad.max())\n",
        "rate = ps[0].grad[0, 0]\nfor p in ps: p.grad.mul_(rate)\n",
        "rate = ps[0].grad[0, 0]\nfor p in ps: p.grad.mul_(1 / rate)\n",
        "for p in ps: p.grad.mul_(factor())\n",
        "for p in ps:\n    if ps[0].grad.sum() > 1: p.grad.mul_(0.5)\n",
    ],
)
def test_factors_that_another_time_would_be_others_stay(
    tmp_path: Path, scaled: str
) -> None:
    source = SUMS[1] + scaled
    change = change_of(foreach_clip, "foreach-clip", clips(source, 200), tmp_path)
    assert not change.code


@pytest.mark.parametrize("added", ["p.grad.norm() ** 2 / 2", "2 * p.grad.norm() ** 2"])
def test_a_sum_of_something_else_goes_through_all_norms(
    tmp_path: Path, added: str
) -> None:
    source = SUMS[1].replace("p.grad.norm() ** 2", added) + SCALE
    change = change_of(foreach_clip, "foreach-clip", clips(source, 200), tmp_path)
    assert "for norm_ in (torch._foreach_norm(" in change.code
    assert agrees(change, source, GRADS, "norm")


def averages(
    source: str | None, names: tuple[str, ...], tensors: int, scans: bool = False
) -> Cell:
    cell, size = Cell(source), (160, 160)
    for _ in range(tensors):
        cell.views(*["aten::select"] * scans)
        for name in names:
            cell.call(name, 2_000, dims=(size, size) if "mul" not in name else (size,))
        cell.python(3_000)
    cell.wait()
    return cell


@pytest.mark.parametrize(
    ("turn", "names"),
    [
        ("old.mul_(0.9).add_(new, alpha=0.1)", ("aten::mul_", "aten::add_")),
        ("old.mul_(1 - r)\n    old.add_(r * new)", ("aten::mul_", "aten::add_")),
        ("old.copy_(d * old + (1 - d) * new)", ("aten::mul_", "aten::add_")),
        ("old.data.lerp_(new.data, 0.1)", ("aten::lerp_",)),
    ],
)
def test_averages_moved_one_by_one(
    tmp_path: Path, turn: str, names: tuple[str, ...]
) -> None:
    source = f"for old, new in zip(a, b):\n    {turn}\ntorch.cuda.synchronize()"
    cell = averages(source, names, 100)
    change = change_of(foreach_ema, "foreach-ema", cell, tmp_path)
    assert is_faster(change, averages(None, ("aten::_foreach_lerp_",), 1))
    # at best it has its lists from before
    assert change.low_ns is not None and change.low_ns < 450 * 100
    data, weight = ".data" * ("data" in turn), "0.1"
    weight = "r" if "r *" in turn else "1 - d" if "1 - d" in turn else weight
    assert change.code == (
        f"pairs = [(old{data}, new{data}) for old, new in zip(a, b)]\n"
        "if pairs: torch._foreach_lerp_([old_ for old_, new_ in pairs], "
        f"[new_ for old_, new_ in pairs], {weight})\ntorch.cuda.synchronize()"
    )


@pytest.mark.parametrize(
    ("turn", "is_edited"),
    [
        ("a = [d * old + (1 - d) * new for old, new in zip(a, b)]", True),
        ("a = [old.lerp(new.float(), 0.1) for old, new in zip(a, b)]", True),
        ("s = {k: s[k] + 0.1 * (v - s[k]) for k, v in t.items() if k > 1}", True),
        ("s = {k: torch.lerp(s[k], v, 1 - d) for k, v in t.items()}", True),
        ("for k, v in t.items():\n        s[k] = 0.1 * v + s[k] * 0.9", True),
        ("for i, v in enumerate(b):\n        a[i] = (1 - d) * v + a[i] * d", True),
        # shares that are not one together, or of each its own; another's average
        ("a = [d * old + d * new for old, new in zip(a, b)]", False),
        ("a = [i * old + (1 - i) * new for i, (old, new) in pairs()]", False),
        ("for k, v in t.items():\n        s[k] = 0.1 * v + 0.9 * t[k]", False),
        ("for k, v in t.items():\n        s[0] = 0.1 * v + s[0] * 0.9", False),
        # of the one before, which just moved; Python's numbers; a name that is read
        ("for i in range(1, 5):\n        a[i] = 0.9 * a[i] + 0.1 * a[i - 1]", False),
        (
            "s = {k: 0.9 * s[k] + 0.1 * t[k] for k in t}\n"
            "    m = {k: 0.9 * v + 0.1 for k, v in m.items()}\n"
            "    m = [0.9 * v + 0.1 * v for v in m]",
            False,
        ),
        ("for k in t:\n        s[k] = 0.1 * t[k] + s[k] * 0.9\n    z = k", False),
        ("a = [d * o + (1 - d) * n for o, n in zip(a[:0], b)]", True),
        # a key that comes twice moves twice
        ("for k, v in [*t.items()] * 2:\n        s[k] = 0.1 * v + s[k] * 0.9", False),
    ],
)
def test_averages_that_are_made_anew(
    tmp_path: Path, turn: str, is_edited: bool
) -> None:
    setup = (
        "d, (a, b) = 0.9, [list(torch.randn(5, 3)) for _ in range(2)]\n"
        "s, t = dict(enumerate(a)), dict(enumerate(b))\n"
        "def pairs(): return enumerate(zip(a, b))"
    )
    source = f"for _ in range(2):\n    {turn}"
    cell = averages(source, ("aten::mul", "aten::mul", "aten::add"), 100)
    change = change_of(foreach_ema, "foreach-ema", cell, tmp_path)
    assert bool(change.code) == is_edited
    if is_edited:
        assert agrees(change, source, setup, "s" if ".items()" in turn else "a")


@pytest.mark.parametrize(
    "source",
    [
        # a turn takes what the one before it moved
        "for old, new in zip(a[1:], a):\n    old.lerp_(new, 0.1)\nf()",
        "for i in range(1, 9):\n    a[i].lerp_(a[i - 1], 0.1)\nf()",
        "for i, old in enumerate(a):\n    old.lerp_(a[i - 1], 0.1)\nf()",
        "for old, new in zip(a, b):\n    old.lerp_(new + a[0], 0.1)\nf()",
        "for old, new in zip(a, b):\n    old.lerp_(mean_of(new), 0.1)\nf()",
    ],
)
def test_averages_of_averages_stay(tmp_path: Path, source: str) -> None:
    cell = averages(source, ("aten::lerp_",), 100)
    assert not change_of(foreach_ema, "foreach-ema", cell, tmp_path).code


@pytest.mark.parametrize(
    "source",
    [
        "for k in a:\n    a[k].lerp_(b[k], 0.1)\nf()",
        "for p in ps:\n    p.average.lerp_(p.data, 0.1)\nf()",
        "for k, v in net.state_dict().items():\n    a[k].lerp_(v.float(), 0.1)\nf()",
        "for (_, old), new in zip(a.items(), net.parameters()):\n"
        "    old.lerp_(new, 0.1)\nf()",
    ],
)
def test_averages_of_others_move_at_once(tmp_path: Path, source: str) -> None:
    cell = averages(source, ("aten::lerp_",), 100)
    change = change_of(foreach_ema, "foreach-ema", cell, tmp_path)
    assert "_foreach_lerp_" in change.code


def test_sums_are_no_averages(tmp_path: Path) -> None:
    nothing_of(foreach_ema, averages(None, ("aten::add_",), 100), tmp_path)
    nothing_of(foreach_ema, averages(None, ("aten::mul_", "aten::add_"), 9), tmp_path)
    scan = averages(None, ("aten::mul_", "aten::add_"), 100, scans=True)
    nothing_of(foreach_ema, scan, tmp_path)
    # two factors that are not one together
    source = "for x, y in zip(a, b):\n    x.mul_(0.9).add_(y, alpha=1)\nf()"
    cell = averages(source, ("aten::mul_", "aten::add_"), 100)
    assert not change_of(foreach_ema, "foreach-ema", cell, tmp_path).code


def infers(source: str | None, is_recorded: bool, took: int) -> Cell:
    cell = Cell(source)
    for number in range(100):
        sequence = number if is_recorded else None
        with cell.operator("aten::linear", sequence=sequence):
            cell.python(8_000)
            cell.kernel(took)
    cell.wait()
    return cell


def test_records_of_autograd_that_nothing_follows(tmp_path: Path) -> None:
    source = "y = net(x)\ntorch.cuda.synchronize()"
    change = change_of(
        no_autograd, "no-autograd", infers(source, True, 3_000), tmp_path
    )
    assert change.low_ns is not None
    assert change.code == (
        "with torch.no_grad():\n    y = net(x)\ntorch.cuda.synchronize()"
    )
    nothing_of(no_autograd, infers(source, False, 3_000), tmp_path)
    nothing_of(no_autograd, infers(source, True, 90_000), tmp_path)
    nothing_of(no_autograd, infers("net(x).backward()", True, 3_000), tmp_path)


def reduces(has_search: bool, talks: int, source: str | None = None) -> Cell:
    cell, gather = Cell(source), "evaluate_function: torch::autograd::AccumulateGrad"
    for part in range(4):
        with cell.operator(
            "DistributedDataParallel.forward", category="user_annotation"
        ):
            for _ in range(10):
                cell.call("aten::mm", 5_000)
            if has_search:
                name = "torch.distributed.ddp.reducer::search_unused_parameters"
                with cell.operator(name):
                    cell.python(300_000)
        for _ in range(10):
            with cell.operator(f"autograd::engine::{gather}", thread=77):
                cell.call("aten::add_", 3_000)
                if part >= 4 - talks:
                    cell.call("torch::distributed::reducer::mul_out", 3_000)
        if part >= 4 - talks:
            with cell.operator("c10d::allreduce_", thread=77):
                cell.kernel(200_000, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")
    with cell.operator("Optimizer.step#AdamW.step", category="user_annotation"):
        cell.call("aten::_fused_adamw_", 20_000)
    cell.wait()
    return cell


DDP = "for part in parts:\n    net(part).sum().backward()\nadam.step()"


def test_ranks_that_talk_more_than_once_a_step(tmp_path: Path) -> None:
    change = change_of(ddp_settings, "ddp-settings", reduces(True, 4, DDP), tmp_path)
    assert holds(change, reduces(False, 1))
    assert change.code.splitlines()[1:4] == [
        "for at, part in enumerate(parts):",
        "    with net.no_sync() if at + 1 < len(parts) else contextlib.nullcontext():",
        "        net(part).sum().backward()",
    ]
    nothing_of(ddp_settings, reduces(False, 1), tmp_path)


def trains(again: bool, took: int, source: str | None = None) -> Cell:
    cell, rows = Cell(source), ((8192, 2048), (2048, 8192))
    for number in range(6):
        cell.call("aten::mm", took, dims=rows, sequence=number)
    for number in range(6):
        step = "autograd::engine::evaluate_function: MmBackward0"
        with cell.operator(step, thread=77, sequence=number):
            if again:
                cell.call("aten::mm", took, dims=rows, sequence=10 + number)
            for _ in range(2):
                cell.call("aten::mm", 500_000, dims=((2048, 8192), (8192, 2048)))
    cell.wait()
    return cell


def test_activations_that_are_computed_again(tmp_path: Path) -> None:
    source = "for f in fs:\n    h = checkpoint(f, h, use_reentrant=False)\nh.backward()"
    cell = trains(True, 500_000, source)
    change = change_of(checkpoint_off, "checkpoint-off", cell, tmp_path)
    assert holds(change, trains(False, 500_000))
    assert "    h = f(h)\n" in change.code
    nothing_of(checkpoint_off, trains(True, 10_000, source), tmp_path)
    # no room for what would be kept
    cell.memory_bytes = 64 << 20
    nothing_of(checkpoint_off, cell, tmp_path)
    nothing_of(checkpoint_off, trains(False, 500_000), tmp_path)

"""Rules for models: what shows them in a trace, what does not, and their edits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.profiler.advice.program import Cell, changes_of
from warpbook_profiler.advice.proposal import Rule
from warpbook_profiler.model.change import Change
from warpbook_profiler.techniques.gpu.attention import attention
from warpbook_profiler.techniques.models.experts_at_once import experts_at_once
from warpbook_profiler.techniques.models.fold_bn import fold_bn
from warpbook_profiler.techniques.models.gqa import gqa
from warpbook_profiler.techniques.models.need_weights import need_weights
from warpbook_profiler.techniques.models.static_cache import static_cache
from warpbook_profiler.techniques.models.use_cache import use_cache

HALF = "c10::Half"


def change_of(rule: Rule, name: str, cell: Cell, tmp_path: Path) -> Change:
    (found, *others) = changes_of(rule, cell.evidence(tmp_path)).items()
    assert (found[0], others) == (name, [])
    return found[1]


def nothing_of(rule: Rule, cell: Cell, tmp_path: Path) -> None:
    assert not changes_of(rule, cell.evidence(tmp_path))


def is_faster(change: Change, fixed: Cell) -> bool:
    """Tell whether a gain is told, and not too much of one."""
    assert change.low_ns is not None
    assert change.speed_low is not None
    return fixed.window_ns < change.low_ns and change.speed_low > 1.5


def holds(change: Change, fixed: Cell) -> bool:
    assert change.low_ns is not None
    assert change.high_ns is not None
    return change.low_ns <= fixed.window_ns <= change.high_ns


def normed(has_norms: bool = True, trains: str = "False", bias: bool = True) -> Cell:
    cell = Cell("with torch.no_grad():\n    y = net(x)\ntorch.cuda.synchronize()")
    image, channels = (64, 64, 112, 112), (64,)
    for _ in range(6):
        cell.call("aten::cudnn_convolution", 200_000, dims=(image, (64, 64, 3, 3)))
        if bias:
            cell.call("aten::add_", 50_000, dims=(image, (1, 64, 1, 1)))
        if has_norms:
            scalars = ["", "", "", "", "", trains, "0.1", "1e-05"]
            cell.call(
                "aten::native_batch_norm",
                2_000,
                100_000,
                dims=(image, *(channels,) * 4, (), (), ()),
                scalars=scalars,
                dtype=HALF,
            )
    cell.wait()
    return cell


def test_norms_that_fold_into_convolutions(tmp_path: Path) -> None:
    change = change_of(fold_bn, "fold-bn", normed(), tmp_path)
    assert holds(change, normed(has_norms=False))
    assert "Six" not in change.evidence and "6 batch norms" in change.evidence
    # only the runs of a trial tell what the modules are
    assert not change.code
    nothing_of(fold_bn, normed(trains="True"), tmp_path)
    # the bias that the convolution gets then is a slower pass than such a norm
    change = change_of(fold_bn, "fold-bn", normed(bias=False), tmp_path)
    assert change.gains_nothing and "bias" in change.reason


def attends(
    cell: Cell,
    query: int,
    key: int,
    causal: str = "False",
    took: int = 100_000,
    batch: int = 4,
) -> None:
    dims = tuple((batch, tokens, 32, 128) for tokens in (query, key, key))
    with cell.operator("aten::scaled_dot_product_attention"):
        scalars = [""] * 8 + [causal]
        cell.call(
            "aten::_flash_attention_forward",
            took,
            dims=dims,
            dtype=HALF,
            scalars=scalars,
        )


GQA = (
    "for _ in range(4):\n"
    "    y = F.scaled_dot_product_attention(\n"
    "        q, k.repeat_interleave(4, dim=1), v.repeat_interleave(4, dim=1))\n"
)


def widens(source: str | None, copied: tuple[int, ...] | None, took: int) -> Cell:
    cell = Cell(source)
    for _ in range(4):
        for _ in range(2 * (copied is not None)):
            with cell.operator("aten::repeat_interleave"), cell.operator("aten::clone"):
                cell.call("aten::copy_", took, dims=(copied, copied), dtype=HALF)
        attends(cell, 256, 4096)
    cell.wait()
    return cell


def test_heads_that_are_copied_for_queries(tmp_path: Path) -> None:
    wide = (4, 8, 4, 4096, 128)
    change = change_of(gqa, "gqa", widens(GQA, wide, 100_000), tmp_path)
    assert holds(change, widens(None, None, 0))
    assert "        q, k, v, enable_gqa=True)" in change.code
    nothing_of(gqa, widens(GQA, (4, 8, 4, 64, 128), 100_000), tmp_path)


def test_query_heads_read_a_shared_head_from_the_cache(tmp_path: Path) -> None:
    """On an H200: 16 sequences of 16 queries, 490 µs with and 395 µs without copies."""
    cell, fixed = Cell(GQA), Cell()
    for one, took in ((cell, 490_000), (fixed, 395_000)):
        for _ in range(4):
            for _ in range(2 * (one is cell)):
                with one.operator("aten::clone"):
                    wide = (16, 8, 4, 8192, 128)
                    one.call("aten::copy_", 1_128_000, dims=(wide, wide), dtype=HALF)
            attends(one, 16, 8192, took=took, batch=16)
        one.wait()
    change = changes_of(gqa, cell.evidence(tmp_path, is_timed=False))["gqa"]
    assert change.time_ns == pytest.approx(fixed.window_ns, rel=0.05)


def decodes(has_cats: bool, grows: bool, took: int, source: str | None = None) -> Cell:
    cell = Cell(source)
    for token in range(20):
        for _ in range(2):
            cell.call("aten::mm", 4_000)
            # of a position: small, and no join of keys
            cell.call("aten::cat", 2_000)
            for _ in range(2 * has_cats):
                cell.call("aten::cat", took)
            for _ in range(2 * (not has_cats)):
                cell.call("aten::copy_", 2_500)
            attends(cell, 1, 4_096 + token * grows)
    cell.wait()
    return cell


def test_a_gain_that_the_host_may_hide_is_named_without_a_promise(
    tmp_path: Path,
) -> None:
    """The host, slow below the profiler, may take as long as the GPU before."""
    cell = Cell()
    for token in range(20):
        for _ in range(2):
            cell.python(185_000)
            cell.call("aten::mm", 4_000)
            for _ in range(2):
                cell.call("aten::cat", 80_000)
            attends(cell, 1, 4_096 + token)
    cell.wait()
    change = change_of(static_cache, "static-cache", cell, tmp_path)
    assert (change.basis, change.time_ns) == ("predicted", None)
    assert change.speed_low == 1.0 and (change.speed_high or 0.0) > 1.3


def test_a_cache_that_is_joined_for_each_token(tmp_path: Path) -> None:
    cell = decodes(has_cats=True, grows=True, took=80_000)
    change = change_of(static_cache, "static-cache", cell, tmp_path)
    assert holds(change, decodes(has_cats=False, grows=True, took=0))
    nothing_of(static_cache, decodes(True, grows=True, took=2_500), tmp_path)
    nothing_of(static_cache, decodes(True, grows=False, took=80_000), tmp_path)


DECODING = (
    "k, q = k0, q0\n"
    "for token in range(20):\n"
    "    k = torch.cat([k, 2 * q], dim=-2); n = k.shape[2]\n"
    "    q = torch.softmax(q @ k.mT, -1) @ k\n"
)


def test_a_cache_that_is_allocated_once_holds_the_same(tmp_path: Path) -> None:
    cell = decodes(has_cats=True, grows=True, took=80_000, source=DECODING)
    change = change_of(static_cache, "static-cache", cell, tmp_path)
    assert change.code.count("torch.cat") == 1
    torch = pytest.importorskip("torch")
    results = []
    for source in (DECODING, change.code):
        names = {"torch": torch, "k0": torch.arange(6.0).view(1, 1, 3, 2)}
        names["q0"] = torch.ones(1, 1, 1, 2)
        exec(source, names)
        results.append(torch.cat([names["k"], names["q"]], dim=-2))
        assert names["n"] == 23
    assert torch.equal(*results)


def writes(causal: str, chooses: bool, has_cache: bool = False) -> Cell:
    cell = Cell(None)
    for token in range(10):
        rows = 1 if has_cache and token else 8 * (1_000 + token)
        took = 10_000 if rows == 1 else 600_000
        for _ in range(6):
            cell.call("aten::mm", took, dims=((rows, 4096), (4096, 4096)), dtype=HALF)
        length = 1_000 + token
        attends(cell, length, length, causal, 3_000 if rows == 1 else 100_000)
        if chooses:
            cell.call("aten::argmax", 3_000)
            cell.call("aten::cat", 3_000)
    cell.wait()
    return cell


def test_a_text_that_is_read_again_for_each_token(tmp_path: Path) -> None:
    change = change_of(use_cache, "use-cache", writes("True", chooses=True), tmp_path)
    assert holds(change, writes("True", chooses=True, has_cache=True))
    nothing_of(use_cache, writes("False", chooses=True), tmp_path)
    nothing_of(use_cache, writes("True", chooses=False), tmp_path)


LAYER = "answers{} = reader(q, k, k){}\ntorch.cuda.synchronize()"


def weighs(source: str | None, is_read: bool = False) -> Cell:
    cell, scores = Cell(source), (128, 1024, 1024)
    cell.call("aten::addmm", 60_000)
    product = (128, 1024, 64), (128, 64, 1024)
    cell.call("aten::bmm", 150_000, dims=product, dtype=HALF)
    cell.call("aten::_softmax", 150_000, dims=(scores,), dtype=HALF)
    product = scores, (128, 1024, 64)
    cell.call("aten::bmm", 150_000, dims=product, dtype=HALF)
    cell.call("aten::addmm", 60_000)
    cell.call("aten::mean", 100_000, dims=((8, 16, 1024, 1024),), dtype=HALF)
    if is_read:
        cell.call("aten::amax", 10_000, dims=((8, 1024, 1024),), dtype=HALF)
    cell.wait()
    return cell


@pytest.mark.parametrize(
    ("names", "index", "edited"),
    [("", "[0]", "[0]"), (", _", "", ""), (", w", "", None)],
)
def test_weights_that_nobody_takes(tmp_path: Path, names, index, edited) -> None:
    cell = weighs(LAYER.format(names, index))
    change = change_of(need_weights, "need-weights", cell, tmp_path)
    assert change.low_ns is not None
    assert change.low_ns < cell.window_ns / 2
    # what has a name may be taken by another cell
    told = "" if edited is None else f"(q, k, k, need_weights=False){edited}\n"
    assert told in change.code
    assert bool(told) == bool(change.code)
    assert not changes_of(attention, cell.evidence(tmp_path))


@pytest.mark.parametrize(
    "source", [None, LAYER.format(", w", "") + "\nw.amax(-1)", LAYER.format("", "")]
)
def test_weights_that_are_taken(tmp_path: Path, source: str | None) -> None:
    nothing_of(need_weights, weighs(source, is_read=True), tmp_path)


def routes(
    experts: int,
    rows: int,
    took: int,
    at_once: bool = False,
    source: str | None = None,
    dtype: str = HALF,
) -> Cell:
    cell = Cell(source)
    cell.python(120_000 * at_once)
    if source is not None:
        cell.call("aten::max", 3_000, dims=((4_096, 48),))
        cell.views("aten::select")
    for _ in range(1 if at_once else experts):
        cell.call("aten::eq", 2_000)
        with cell.operator("aten::index"):
            cell.call("aten::nonzero", 3_000, dims=((4_096,),))
            cell.copy("DtoH", 8)
            cell.kernel(3_000)
        for depth, width in ((512, 1024), (1024, 512)):
            dims = (rows, depth), (depth, width)
            cell.call("aten::mm", took, dims=dims, dtype=dtype)
        cell.call("aten::index_put_", 3_000)
        cell.python(10_000)
    cell.wait()
    return cell


def test_experts_one_after_the_other(tmp_path: Path) -> None:
    cell = routes(48, 85, 6_000)
    change = change_of(experts_at_once, "experts-at-once", cell, tmp_path)
    assert holds(change, routes(48, 85, 40_000, at_once=True))
    nothing_of(experts_at_once, routes(2, 85, 6_000), tmp_path)

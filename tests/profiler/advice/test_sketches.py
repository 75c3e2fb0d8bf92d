"""Sketches beside real traces: Python that may be pasted, in the names of the cell."""

from __future__ import annotations

import ast

import pytest

from tests.profiler.advice.exam_changes import sketches_of
from warpbook_profiler.advice.attention_code import attention_code
from warpbook_profiler.advice.cell_code import CellCode

ATTENTION = "torch.nn.functional.scaled_dot_product_attention"


@pytest.mark.parametrize(
    ("name", "change", "line"),
    [
        ("attention_by_hand", "sdpa", f"y = {ATTENTION}(q, q, q)"),
        (
            "masked_attention_by_hand",
            "sdpa",
            f"y = {ATTENTION}(q, k, v, attn_mask=~future)",
        ),
        (
            "sdpa_by_the_math_backend",
            "sdpa-backend",
            "    y = F.scaled_dot_product_attention(q, k, v)",
        ),
        (
            "numpy_in_the_middle",
            "pinned",
            'batch = torch.from_numpy(h).to("cuda", non_blocking=True)',
        ),
        ("batches_from_pageable", "pinned", 'b = b.to("cuda", non_blocking=True)'),
        (
            "results_read_back_in_a_loop",
            "pinned-results",
            "    result.copy_(x * 2, non_blocking=True)  # in place of (x * 2).cpu()",
        ),
        ("indices_from_nonzero", "keep-mask", "x.masked_fill_(x > 2.0, 2.5)"),
        ("wait_on_side_stream", "one-stream", "b = a @ a"),
        ("pinning_each_batch", "pin-once", "    y = b.to(dev, non_blocking=True)"),
        ("cupy_chain", "cupy-fuse", "    return cp.sqrt(cp.abs(u * 2 + 1) - u) * 3"),
        ("jax_without_jit", "jax-jit", "v = step(v, u)"),
        # one graph for all steps, as it is predicted
        ("lstm_cell_by_cell", "cuda-graph", "            h, c = lstm_cell(x, (h, c))"),
    ],
)
def test_a_sketch_keeps_what_the_cell_computes(
    name: str, change: str, line: str
) -> None:
    sketch = sketches_of(name)[change]
    ast.parse(sketch)
    assert line in sketch.splitlines()


@pytest.mark.parametrize(
    ("name", "change", "line"),
    [
        (
            "training_steps_of_a_small_mlp",
            "cuda-graph",
            'm = torch.compile(m, mode="reduce-overhead")',
        ),
        (
            "half_conv_depthwise",
            "channels-last",
            "m = m.to(memory_format=torch.channels_last)",
        ),
        (
            "adam_loop_over_tensors",
            "fused-optimizer",
            "o = torch.optim.AdamW(..., fused=True)",
        ),
    ],
)
def test_a_sketch_names_model_and_optimizer(name: str, change: str, line: str) -> None:
    assert line in sketches_of(name)[change].splitlines()


@pytest.mark.parametrize(
    ("source", "model"),
    [
        ("for x, y in data:\n    loss = criterion(net(x), y)", "net"),
        ("warm(x)\nfor x in data:\n    print(len(x))\n    net(x)", "net"),
        ("with profiler(1):\n    y = net(x)", "net"),
        ("y = torch.relu(x)\nprint(y)\nz = Linear(4)\nstart()", None),
        (None, None),
    ],
)
def test_the_model_of_a_source(source: str | None, model: str | None) -> None:
    call = CellCode(source).model_call()
    assert (call and call.name) == model


def test_a_scale_of_ones_own_is_not_lost() -> None:
    assert "# scale=" in sketches_of("attention_by_hand")["sdpa"]


@pytest.mark.parametrize(
    "source",
    [
        "out = (query @ keys.mT * s).softmax(-1) @ values",
        "s = torch.bmm(query, keys.transpose(-2, -1))\np = s.softmax(-1)\n"
        "out = torch.bmm(p, values)",
        "p = F.softmax(query.matmul(keys.swapaxes(-1, -2)), dim=-1)\n"
        "out = p.matmul(values)",
    ],
)
def test_attention_is_named_as_its_cell_does(source: str) -> None:
    assert attention_code(CellCode(source)) == ("out", "query", "keys", "values", "")


def test_keys_with_axes_of_their_own_are_turned_once_more() -> None:
    source = "y = (q @ k.permute(0, 2, 3, 1)).softmax(-1) @ v"
    named = attention_code(CellCode(source))
    assert named is not None and named.key == "k.permute(0, 2, 3, 1).mT"


@pytest.mark.parametrize(
    "source", [None, "y = (", "y = a @ b", "p = x.softmax(-1)", "p = p @ p", "p = p"]
)
def test_no_attention_has_no_names(source: str | None) -> None:
    assert attention_code(CellCode(source)) is None


@pytest.mark.parametrize("terms", [300, 3_000])
@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("boolean_masks", "for x in xs:\n    y = x[x > 0].sum()"),
        ("loss_item_each_step", "for x in xs:\n    t += x.item()\n    y = x"),
        ("pinning_each_batch", "for b in hb:\n    y = b.pin_memory()"),
        ("wait_on_side_stream", "s.wait_stream(t)\ny = a"),
        ("product_of_odd_sizes", "y = a @ b"),
    ],
)
def test_code_nested_deeply_stops_no_advice(name: str, source: str, terms: int) -> None:
    assert sketches_of(name, source + " + a" * terms) is not None

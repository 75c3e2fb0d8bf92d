"""Attention by hand in a source, written as one call where it is sure to be one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from warpbook_profiler.advice.attention.fused_call import fused_attention
from warpbook_profiler.advice.code.cell_code import CellCode

CALL = "torch.nn.functional.scaled_dot_product_attention"


@pytest.mark.parametrize(
    ("source", "result"),
    [
        (
            "out = (query @ keys.mT * 0.5).softmax(-1) @ values",
            f"out = {CALL}(query, keys, values, scale=0.5)",
        ),
        (
            "s = torch.bmm(q, k.transpose(-2, -1))\np = s.softmax(-1)\n"
            "out = torch.bmm(p, v)",
            f"out = {CALL}(q, k, v, scale=1.0)",
        ),
        (
            "p = F.softmax(q.matmul(k.swapaxes(-1, -2)), dim=-1)\nout = p.matmul(v)",
            f"out = {CALL}(q, k, v, scale=1.0)",
        ),
        (
            "s = q @ k.permute(0, 2, 1)\ns = s / math.sqrt(64)\n"
            "s = s.masked_fill(m == 0, -math.inf)\n"
            "p = torch.softmax(s, dim=-1)  # weights\no = (p @ v).transpose(1, 2)",
            f"# weights\no = ({CALL}(q, k.permute(0, 2, 1).mT, v, "
            "attn_mask=~(m == 0), scale=1 / math.sqrt(64))).transpose(1, 2)",
        ),
    ],
)
def test_attention_is_written_as_one_call(source: str, result: str) -> None:
    assert fused_attention(CellCode(source)).removeprefix("import torch\n") == result


@pytest.mark.parametrize("scale", ["0.5", "r"])
def test_all_attentions_of_a_cell_are_written(scale: str) -> None:
    source = (
        "a = ((q @ k.mT) * 0.5).softmax(-1) @ v\n"
        f"b = ((k @ q.mT) * {scale}).softmax(-1) @ v\n"
    )
    code = fused_attention(CellCode(source))
    assert code.count(CALL) == (2 if scale == "0.5" else 1)


@pytest.mark.parametrize(
    "source",
    [
        # queries b i h d, whose sums have the heads first
        "s = torch.einsum('bihd,bjhd->bhij', q, k) * (width // 2) ** -0.5\n"
        "p = s.softmax(dim=-1)\ny = torch.einsum('bhij,bjhd->bihd', p, k)",
        # keys come first, and one product is written as such
        "s = torch.einsum('b j h d, b i h d -> b h i j', k, q) / scale\n"
        "y = s.softmax(-1) @ k.transpose(1, 2)",
        "a, b = q.transpose(1, 2), k.transpose(1, 2)\n"
        "y = torch.einsum('...ij,...jd->...id', (scale * a @ b.mT).softmax(-1), b)",
    ],
)
def test_sums_over_axes_are_attention(source: str) -> None:
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    setup = "q, k = torch.randn(2, 3, 5, 2, 4)\nwidth, scale = 8, 2.0"
    code = fused_attention(CellCode(source), has_number=True)
    assert CALL in code
    for names, text in ((before, source), (after, code)):
        names["torch"] = torch
        torch.manual_seed(0)
        exec(f"{setup}\n{text}", names)
    torch.testing.assert_close(before["y"], after["y"])


@pytest.mark.parametrize(
    "source",
    [
        None,
        "y = (",
        "y = a @ b",
        # a scale that may be a tensor, a bias, another axis, weights that are read
        "y = (q @ k.mT * s).softmax(-1) @ v",
        "y = einsum('bhij,bhjd->bhid', (q @ k.mT).softmax(-1), v)",
        # keys of one head for all, weights whose rows are summed, a repeated axis
        "s = torch.einsum('bhid,bjd->bhij', q, k)\ny = s.softmax(-1) @ v",
        "y = torch.einsum('bhij,bhid->bhjd', (q @ k.mT).softmax(-1), v)",
        "s = torch.einsum('bid,bjd->bij', q, k)\n"
        "y = torch.einsum('bii,bid->bid', s.softmax(-1), v)",
        "s = torch.einsum('bid,bjd->bij', q, k) * w\ny = s.softmax(-1) @ v",
        "y = (q @ k.mT + bias).softmax(-1) @ v",
        "y = (q @ k.mT).softmax(-2) @ v",
        "y = (q @ k.mT).masked_fill(m, -1e9).softmax(-1) @ v",
        "p = (q @ k.mT).softmax(-1)\ny = p @ v\nprint(p)",
        "s = q @ k.mT\np = s.softmax(-1)\ny = p @ v\nshow(s)",
        "p = (q @ k.mT).softmax(-1)\nk = k + 1\ny = p @ v",
        "p = F.dropout((q @ k.mT).softmax(-1), 0.1)\ny = p @ v",
        "p = p @ p\n" * 2_000 + "y = p.softmax(-1) @ p",
    ],
)
def test_what_is_not_sure_is_let_be(source: str | None) -> None:
    assert not fused_attention(CellCode(source))

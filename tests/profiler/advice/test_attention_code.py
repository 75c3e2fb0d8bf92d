"""Attention by hand in a source, written as one call where it is sure to be one."""

from __future__ import annotations

import pytest

from warpbook_profiler.advice.attention_code import fused_attention
from warpbook_profiler.advice.cell_code import CellCode

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


@pytest.mark.parametrize(
    "source",
    [
        None,
        "y = (",
        "y = a @ b",
        # a scale that may be a tensor, a bias, another axis, weights that are read
        "y = (q @ k.mT * s).softmax(-1) @ v",
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

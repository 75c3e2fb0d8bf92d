"""Calls of fused attention among a trace's operators."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_profiler.advice.operators import Operators
from warpbook_profiler.facts.traffic import ITEM_BYTES

#: a window with more is judged by these
_MOST_FUSED = 20_000
#: fused attentions, by where their sizes have the heads, and which scalar tells that
#: later tokens are left out
_FUSED = {
    "aten::_flash_attention_forward": (2, 8),
    "aten::_efficient_attention_forward": (2, 9),
    "aten::_cudnn_attention_forward": (1, 10),
    "aten::_scaled_dot_product_flash_attention": (1, 4),
    "aten::_scaled_dot_product_efficient_attention": (1, 6),
    "aten::_scaled_dot_product_cudnn_attention": (1, 6),
}
_CAUSAL = ("True", "1")


class Fused(NamedTuple):
    """One call of fused attention; sizes are batch, heads, tokens and a head's."""

    position: int
    query: tuple[int, ...]
    key: tuple[int, ...]
    dtype: str
    #: later tokens are left out, or a mask leaves some out
    is_masked: bool

    @property
    def key_bytes(self) -> int:
        """Give the bytes of the keys; values have as many."""
        return math.prod(self.key) * ITEM_BYTES.get(self.dtype, 4)


def fused_attentions(operators: Operators) -> Iterator[Fused]:
    """Find calls of fused attention of which the sizes are known."""
    chosen = operators.launching[operators.named(*_FUSED)[operators.launching]]
    for position in chosen[:_MOST_FUSED].tolist():
        heads_at, causal_at = _FUSED[operators.name(position)]
        called = operators.operands(position)
        sizes = called.dims[:2]
        if [len(one) for one in sizes] != [4, 4]:
            continue
        query, key = (
            one if heads_at == 1 else (one[0], one[2], one[1], one[3]) for one in sizes
        )
        is_causal = called.scalars[causal_at : causal_at + 1] in [(t,) for t in _CAUSAL]
        has_mask = "efficient" in operators.name(position) and any(called.dims[3:4])
        yield Fused(position, query, key, called.dtypes[0], is_causal or has_mask)

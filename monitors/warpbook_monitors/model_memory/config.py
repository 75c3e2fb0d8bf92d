"""What configurations of Transformers have in common, and how they become blocks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Annotated, Any

import msgspec

from warpbook_monitors.model_memory.description import Block, Stored
from warpbook_monitors.model_memory.layer import Few, Size
from warpbook_monitors.model_memory.layers import AnyLayer, Embedding, Logits, Norm

_MOST_BLOCKS = 298
_Text = Annotated[str, msgspec.Meta(max_length=100)]


class _Quantization(msgspec.Struct, frozen=True):
    quant_method: _Text = ""
    bits: int = 0
    load_in_4bit: bool = False
    load_in_8bit: bool = False


class Config(msgspec.Struct, kw_only=True):
    """A configuration; `name` and `source` are of our own."""

    model_type: str
    name: str = ""
    name_or_path: str = msgspec.field(name="_name_or_path", default="")
    source: str = ""
    quantization_config: _Quantization = _Quantization()

    @property
    def stored_as(self) -> Stored:
        """What its weights are published in; a way that is not known is 16 bits."""
        way = self.quantization_config
        if way.quant_method == "mxfp4":
            return "mxfp4"
        if way.quant_method in ("fp8", "fbgemm_fp8"):
            return "fp8"
        if way.bits == 4 or way.load_in_4bit:
            return "int4"
        return "int8" if way.bits == 8 or way.load_in_8bit else "bf16"

    def fields(self) -> dict[str, Any]:
        """Return blocks and sizes of the `Model`."""
        raise NotImplementedError


def edge(name: str, *inner: AnyLayer) -> Block:
    return Block(name, inner, edge=True)


class DecoderConfig(Config, kw_only=True):
    """Embeddings, layers that may differ, and a head."""

    hidden_size: Size
    num_hidden_layers: Few
    num_attention_heads: Few
    vocab_size: Size
    attention_bias: bool = False
    max_position_embeddings: Size = 4096
    tie_word_embeddings: bool = False

    def fields(self) -> dict[str, Any]:
        hidden, rows = self.hidden_size, self.vocab_size
        blocks = [
            Block(name, inner, len(list(same)))
            for (name, inner), same in groupby(self.layers())
        ]
        if len(blocks) > _MOST_BLOCKS:
            words = f"layers that alternate {len(blocks)} times"
            raise ValueError(f"{words} are too many: at most {_MOST_BLOCKS}")
        head = Norm(hidden), Logits(hidden, rows, self.tie_word_embeddings)
        ends = edge("embeddings", Embedding(rows, hidden)), edge("head", *head)
        whole = ends[0], *blocks, ends[1]
        return {"blocks": whole, "tokens": self.max_position_embeddings}

    def layers(self) -> Iterator[tuple[str, tuple[AnyLayer, ...]]]:
        """Yield the name of each layer's block, and the layer."""
        raise NotImplementedError


def head_size(hidden: int, heads: int) -> int:
    """Return the size of a head where a configuration has none.

    Raises:
        ValueError: the hidden size is no multiple.
    """
    if hidden % heads:
        raise ValueError(
            f"hidden size {hidden} is not a multiple of {heads} heads: correct one, or "
            "add `head_dim`"
        )
    return hidden // heads

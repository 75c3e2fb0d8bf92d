"""A model as data: blocks of layers, in the order of the forward pass."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from warpbook_monitors.model_memory.attentions import Attention, LatentAttention
from warpbook_monitors.model_memory.images import Convolution
from warpbook_monitors.model_memory.layer import Few, NoneOrMore, Size
from warpbook_monitors.model_memory.layers import AnyLayer, Logits

#: what weights are stored in
Stored = Literal["fp32", "bf16", "fp16", "fp8", "int8", "int4", "mxfp4"]
_Text = Annotated[str, msgspec.Meta(max_length=300)]


class Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Layers that follow one another, and how often they do.

    Attributes:
        name: as the table has it.
        layers: in the order of the forward pass.
        times: how often they are repeated.
        edge: embeddings or a head: never recomputed, nor moved to another stage.
    """

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
    layers: Annotated[tuple[AnyLayer, ...], msgspec.Meta(min_length=1, max_length=30)]
    times: Few = 1
    edge: bool = False

    def parameters(self, tensor: int = 1) -> int:
        """Count the parameters of all its repetitions on a tensor-parallel GPU."""
        return self.times * sum(layer.parameters(tensor) for layer in self.layers)


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model.

    Attributes:
        name: as people write it.
        source: where the figures are published.
        blocks: in the order of the forward pass.
        tokens: of a sequence, where nothing else is said.
        most_tokens: that its table of positions has; 0 where there is no such table.
        fixed_tokens: it takes sequences of `tokens` and no other length.
        side: of its images in pixels; 0 if it reads text.
        stored_as: what its weights are published in.
    """

    name: _Text
    source: _Text
    blocks: Annotated[tuple[Block, ...], msgspec.Meta(min_length=1, max_length=300)]
    tokens: Size = 1
    most_tokens: NoneOrMore = 0
    fixed_tokens: bool = False
    side: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    stored_as: Stored = "bf16"

    @property
    def parameters(self) -> int:
        return sum(block.parameters() for block in self.blocks)

    @property
    def layers(self) -> list[AnyLayer]:
        """Each once, however often it is repeated."""
        return [layer for block in self.blocks for layer in block.layers]

    @property
    def attentions(self) -> list[Attention | LatentAttention]:
        kinds = Attention | LatentAttention
        return [layer for layer in self.layers if isinstance(layer, kinds)]

    @property
    def is_decoder(self) -> bool:
        """Whether it decodes token by token, with a cache."""
        return any(layer.causal for layer in self.attentions)

    @property
    def is_text(self) -> bool:
        heads = any(isinstance(layer, Logits) for layer in self.layers)
        return heads or bool(self.attentions)

    @property
    def is_split_by_tensor(self) -> bool:
        """Whether tensor parallelism has anything to split."""
        has_images = any(isinstance(layer, Convolution) for layer in self.layers)
        return not has_images or bool(self.attentions)

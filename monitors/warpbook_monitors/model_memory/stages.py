"""The blocks of a model on the stages of a pipeline."""

from __future__ import annotations

import msgspec

from warpbook_monitors.model_memory.description import Block
from warpbook_monitors.model_memory.layer import divided
from warpbook_monitors.model_memory.layers import Embedding, Logits


class Stage(msgspec.Struct, frozen=True):
    """What of a model is on one stage.

    Attributes:
        number: from 0 on.
        blocks: in the order of the forward pass.
    """

    number: int
    blocks: tuple[Block, ...]

    @property
    def tied(self) -> tuple[Logits, ...]:
        """The logits here that take their matrix from the embedding."""
        layers = (layer for block in self.blocks for layer in block.layers)
        return tuple(
            layer for layer in layers if isinstance(layer, Logits) and layer.tied
        )

    def parameters(self, tensor: int) -> int:
        """Count those on a tensor-parallel GPU.

        A stage without the embedding has a copy of a tied matrix, as in Megatron-LM
        (Narayanan et al. 2021, arXiv:2104.04473).
        """
        count = sum(block.parameters(tensor) for block in self.blocks)
        layers = (layer for block in self.blocks for layer in block.layers)
        if any(isinstance(layer, Embedding) for layer in layers):
            return count
        return count + sum(tied_parameters(layer, tensor) for layer in self.tied)


def tied_parameters(layer: Logits, tensor: int) -> int:
    """Count the matrix that tied logits share, split by the vocabulary."""
    return divided(layer.vocabulary, tensor) * layer.hidden


def stages_of(blocks: tuple[Block, ...], count: int) -> list[Stage]:
    """Cut the repeated blocks into stages of equal depth; edges stay where they are."""
    stages: list[list[Block]] = [[] for _ in range(count)]
    depth = sum(block.times for block in blocks if not block.edge)
    done = place = 0
    for block in blocks:
        if block.edge:
            stages[place].append(block)
            continue
        left = block.times
        while left:
            place = done * count // depth
            # the first layer whose layer * count // depth is of the next stage
            end = divided((place + 1) * depth, count)
            here = min(left, end - done)
            stages[place].append(msgspec.structs.replace(block, times=here))
            done += here
            left -= here
    return [Stage(number, tuple(own)) for number, own in enumerate(stages)]

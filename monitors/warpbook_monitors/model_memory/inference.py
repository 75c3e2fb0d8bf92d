"""The memory of inference: weights, cached keys and values, and one layer's work."""

from __future__ import annotations

import msgspec

from warpbook_monitors.model_memory.description import Block, Model
from warpbook_monitors.model_memory.layers import Embedding, Logits, divided
from warpbook_monitors.model_memory.plan import BITS, Plan
from warpbook_monitors.model_memory.training import stages_of


class InferenceMemory(msgspec.Struct, frozen=True):
    """What one GPU of a stage needs for a batch whose sequences are all there.

    Attributes:
        stage: from 0 on; 0 where there is no pipeline.
        parameters: of this GPU.
        weights_bytes: of them; scales of int8 and int4 are not counted.
        cache_bytes: keys and values of all layers, of all tokens.
        working_bytes: activations of the largest layer, with all tokens at once.
        peak_bytes: the sum.
    """

    stage: int
    parameters: int
    weights_bytes: int
    cache_bytes: int
    working_bytes: int
    peak_bytes: int


def inference_memory(model: Model, plan: Plan) -> tuple[InferenceMemory, ...]:
    """Give the memory of each stage; the options have been checked."""
    stages = stages_of(model.blocks, plan.pipeline)
    return tuple(
        _stage(model, plan, number, blocks) for number, blocks in enumerate(stages)
    )


def _stage(
    model: Model, plan: Plan, number: int, blocks: list[Block]
) -> InferenceMemory:
    on = plan.inference_pass(model)
    parameters = sum(block.parameters(plan.tensor) for block in blocks)
    layers = [layer for block in blocks for layer in block.layers]
    if not any(isinstance(layer, Embedding) for layer in layers):
        parameters += sum(
            divided(layer.vocabulary, plan.tensor) * layer.hidden
            for layer in layers
            if isinstance(layer, Logits) and layer.tied
        )
    weights = divided(parameters * BITS[plan.dtype], 8)
    cache = (
        sum(
            block.times * layer.cache_bytes(on, plan.tensor, BITS[plan.kv_dtype] // 8)
            for block in blocks
            for layer in block.layers
        )
        if model.is_decoder
        else 0
    )
    working = max(layer.forward_bytes(on, plan.tensor) for layer in layers)
    return InferenceMemory(
        number, parameters, weights, cache, working, weights + cache + working
    )

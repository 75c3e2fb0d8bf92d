"""The memory of inference: weights, cached keys and values, and one layer's work."""

from __future__ import annotations

import msgspec

from warpbook_monitors.model_memory.description import Model
from warpbook_monitors.model_memory.layer import divided
from warpbook_monitors.model_memory.plan import BITS, Plan
from warpbook_monitors.model_memory.stages import Stage, stages_of


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
    return tuple(
        _stage_memory(model, plan, stage)
        for stage in stages_of(model.blocks, plan.pipeline)
    )


def _stage_memory(model: Model, plan: Plan, stage: Stage) -> InferenceMemory:
    on = plan.inference_pass(model)
    parameters = stage.parameters(plan.tensor)
    layers = [layer for block in stage.blocks for layer in block.layers]
    weights = divided(parameters * BITS[plan.dtype], 8)
    cache = (
        sum(
            block.times * layer.cache_bytes(on, plan.tensor, BITS[plan.kv_dtype] // 8)
            for block in stage.blocks
            for layer in block.layers
        )
        if model.is_decoder
        else 0
    )
    working = max(layer.forward_bytes(on, plan.tensor) for layer in layers)
    return InferenceMemory(
        stage.number, parameters, weights, cache, working, weights + cache + working
    )

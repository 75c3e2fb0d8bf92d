"""What one GPU of each stage of a pipeline needs, in training and in inference."""

from __future__ import annotations

import msgspec

from warpbook_monitors.model_memory.description import Block, Model, Stored
from warpbook_monitors.model_memory.layer import Adapters, Pass, divided
from warpbook_monitors.model_memory.plan import Plan, stored_in
from warpbook_monitors.model_memory.stage import (
    StageMemory,
    parameters_of,
    weights_bytes,
)
from warpbook_monitors.model_memory.training import trained_stage, widths_of


def stage_memories(model: Model, plan: Plan) -> list[StageMemory]:
    """Return the memory of each stage; the options have been checked."""
    stored = stored_in(model, plan)
    sizes = plan.batch, plan.tokens or model.tokens, plan.side or model.side
    widths, adapters = widths_of(plan), None
    if plan.lora:
        only = plan.lora_targets == "attention"
        adapters = Adapters(plan.lora, widths.weight, only)
    on = Pass(
        *(*sizes, widths.element, widths.norm, plan.flash, plan.tensor),
        is_fused_norm=plan.fused_norms,
        adapters=adapters,
    )
    stages = enumerate(_cut(model.blocks, plan.pipeline))
    if plan.inference:
        is_cached = model.is_decoder
        return [served_stage(*stage, plan, on, stored, is_cached) for stage in stages]
    return [trained_stage(*stage, plan, on, stored) for stage in stages]


def _cut(blocks: tuple[Block, ...], count: int) -> list[list[Block]]:
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
    return stages


#: of a cached element
_BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8}


def served_stage(
    number: int,
    blocks: list[Block],
    plan: Plan,
    on: Pass,
    stored: Stored,
    is_cached: bool,
) -> StageMemory:
    """Return the memory of a stage.

    A forward pass has all tokens at once, or those of a chunk. The pool of the graphs
    has what a pass of one token of each sequence needs, for as long as they are there;
    graphs of smaller batches are in the same memory.
    """
    elements = sum(
        block.times * layer.needs(on).cached_elements
        for block in blocks
        for layer in block.layers
    )
    cached = elements * _BITS[plan.kv_dtype] // 8 * is_cached
    at_once = on
    if 0 < plan.chunk < on.all_tokens:
        at_once = _pass_of(on, plan.chunk)
    parts = {
        "weights": weights_bytes(blocks, plan.tensor, stored),
        "cache of keys and values": cached,
    }
    buffers = _buffers_bytes(blocks, at_once)
    graphs = _buffers_bytes(blocks, _pass_of(on, on.batch)) if plan.graphs else 0
    needed = {**parts, "CUDA graphs": graphs, "temporary: compute buffers": buffers}
    held = {**parts, "CUDA graphs": graphs, "temporaries": buffers}
    parameters, peak_bytes = parameters_of(blocks, plan.tensor), sum(held.values())
    return StageMemory(number, parameters, 1, needed, {}, held, peak_bytes)


def _pass_of(on: Pass, tokens: int) -> Pass:
    """Return a pass of so many tokens, the same number of each sequence."""
    batch = min(on.batch, tokens)
    sizes = {"batch": batch, "tokens": divided(tokens, batch), "keys": on.tokens}
    return msgspec.structs.replace(on, **sizes)


def _buffers_bytes(blocks: list[Block], on: Pass) -> int:
    """Return what the layer needs that needs most, in a pass that keeps nothing."""
    layers = (layer for block in blocks for layer in block.layers)
    return max(layer.needs(on).forward_bytes for layer in layers)

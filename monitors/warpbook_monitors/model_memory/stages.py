"""What one GPU of each stage of a pipeline needs, in training and in inference."""

from __future__ import annotations

import msgspec

from warpbook_monitors.model_memory.description import Block, Model
from warpbook_monitors.model_memory.layer import Adapters, Pass, divided
from warpbook_monitors.model_memory.plan import Plan, stored_in
from warpbook_monitors.model_memory.serving import served_stage
from warpbook_monitors.model_memory.stage import StageMemory
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

"""Whether a plan fits a GPU, and what to change first if it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from warpbook_monitors.model_memory.description import Model
from warpbook_monitors.model_memory.inference import inference_memory
from warpbook_monitors.model_memory.plan import Plan, PlanError, check_plan
from warpbook_monitors.model_memory.training import training_memory

#: what gains less is no advice
_LEAST_GAIN = 0.02
_MOST_TENSOR = 8
_MOST_DATA = 1024


class PlanChange(msgspec.Struct, frozen=True):
    """One thing to change, and what the GPU needs after it and those before it."""

    options: str
    words: str
    peak_bytes: int


class Fit(msgspec.Struct, frozen=True):
    """Whether the heaviest GPU has room.

    Attributes:
        is_enough: it has.
        capacity_bytes: of the GPU.
        reserved_bytes: kept free of it, for the CUDA context and fragmentation.
        changes: what to do instead, in this order; empty if it fits.
        would_fit: with all changes.
    """

    is_enough: bool
    capacity_bytes: int
    reserved_bytes: int
    changes: tuple[PlanChange, ...] = ()
    would_fit: bool = True


#: fields of the plan that change, the same as options, and why; None: no more of it
_Step = tuple[dict[str, Any], str, str]
_Way = Callable[[Plan], "_Step | None"]


def fit_of(
    model: Model, plan: Plan, is_inference: bool, capacity: int, reserved: int
) -> Fit:
    """Say whether it fits, else what to change.

    The first way that is enough alone is the answer. Where none is, they are taken
    together in the order of what they cost.
    """
    room = capacity - reserved
    if _peak(model, plan, is_inference) <= room:
        return Fit(True, capacity, reserved)
    ways = _INFERENCE if is_inference else _TRAINING
    for way in ways:
        _, change = _followed(way, model, plan, is_inference, room)
        if change is not None and change.peak_bytes <= room:
            return Fit(False, capacity, reserved, (change,))
    changes: list[PlanChange] = []
    for way in ways:
        plan, change = _followed(way, model, plan, is_inference, room)
        if change is not None:
            changes.append(change)
            if change.peak_bytes <= room:
                break
    would_fit = _peak(model, plan, is_inference) <= room
    return Fit(False, capacity, reserved, tuple(changes), would_fit)


def _peak(model: Model, plan: Plan, is_inference: bool) -> int:
    if is_inference:
        return max(stage.peak_bytes for stage in inference_memory(model, plan))
    return max(stage.peak_bytes for stage in training_memory(model, plan))


def _followed(
    way: _Way, model: Model, plan: Plan, is_inference: bool, room: int
) -> tuple[Plan, PlanChange | None]:
    """Go one way as far as it helps, or until it is enough."""
    peak = _peak(model, plan, is_inference)
    change = None
    while peak > room and (step := way(plan)) is not None:
        fields, options, words = step
        further = msgspec.structs.replace(plan, **fields)
        try:
            check_plan(model, further)
        except PlanError:
            break
        needed = _peak(model, further, is_inference)
        if needed > (1 - _LEAST_GAIN) * peak:
            break
        plan, peak = further, needed
        change = PlanChange(options, words, needed)
    return plan, change


def _flash(plan: Plan) -> _Step | None:
    if plan.flash:
        return None
    return {"flash": True}, "without --no-flash", "FlashAttention, which is faster, too"


def _fused(plan: Plan) -> _Step | None:
    if plan.fused:
        return None
    return {"fused": True}, "--fused", "a fused optimizer (fused=True in torch.optim)"


def _accumulate(plan: Plan) -> _Step | None:
    if plan.batch == 1 or plan.micro_batches > 5000:
        return None
    batch, count = (
        plan.batch // 2,
        -(-plan.batch * plan.micro_batches // (plan.batch // 2)),
    )
    return (
        {"batch": batch, "micro_batches": min(count, 10_000)},
        f"--batch {batch} --micro-batches {min(count, 10_000)}",
        "smaller micro-batches, whose gradients add up",
    )


def _checkpoint(plan: Plan) -> _Step | None:
    if plan.checkpoint == "full":
        return None
    words = "activations computed anew: one more forward pass"
    return {"checkpoint": "full"}, "--checkpoint full", words


def _zero(plan: Plan) -> _Step | None:
    if plan.zero == 3 or plan.data == 1:
        return None
    stage = plan.zero + 1
    words = "split among the GPUs that there are"
    return {"zero": stage}, f"--zero {stage}", words


def _adam8bit(plan: Plan) -> _Step | None:
    if plan.optimizer != "adam":
        return None
    words = "Adam with states of 8 bits (bitsandbytes)"
    return {"optimizer": "adam8bit"}, "--optimizer adam8bit", words


def _tensor(plan: Plan) -> _Step | None:
    count = 2 * plan.tensor
    if count > _MOST_TENSOR:
        return None
    return {"tensor": count}, f"--tp {count}", "layers split among GPUs with NVLink"


def _sharded(plan: Plan) -> _Step | None:
    count = 2 * plan.data
    if count > _MOST_DATA:
        return None
    words = "more GPUs, and all split among them (FSDP)"
    return {"data": count, "zero": 3}, f"--dp {count} --zero 3", words


def _smaller_batch(plan: Plan) -> _Step | None:
    if plan.batch == 1:
        return None
    batch = plan.batch // 2
    return {"batch": batch}, f"--batch {batch}", "fewer sequences at once"


def _small_cache(plan: Plan) -> _Step | None:
    if plan.kv_dtype in ("fp8", "int8"):
        return None
    return {"kv_dtype": "fp8"}, "--kv-dtype fp8", "cached keys and values in 8 bits"


def _quantized(plan: Plan) -> _Step | None:
    if plan.dtype == "int4":
        return None
    dtype = "int4" if plan.dtype == "int8" else "int8"
    return {"dtype": dtype}, f"--dtype {dtype}", "quantized weights"


#: in the order of what they cost in time, then in accuracy, then in GPUs
_TRAINING: tuple[_Way, ...] = (
    _flash,
    _fused,
    _accumulate,
    _checkpoint,
    _zero,
    _adam8bit,
    _tensor,
    _sharded,
)
_INFERENCE: tuple[_Way, ...] = (
    _flash,
    _small_cache,
    _smaller_batch,
    _quantized,
    _tensor,
)

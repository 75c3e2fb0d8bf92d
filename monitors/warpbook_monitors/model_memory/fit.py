"""Whether a plan fits a GPU, and what to change first if it does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from warpbook_monitors.model_memory.description import Model
from warpbook_monitors.model_memory.plan import Plan, PlanError, check_plan, options_of
from warpbook_monitors.model_memory.stages import stage_memories

#: kept free, for the CUDA context and fragmentation
RESERVED_BYTES = 2**30
#: what gains less is no advice
_LEAST_GAIN = 0.02
_MOST_TENSOR, _MOST_DATA, _MOST_MICRO_BATCHES = 8, 1024, 10_000
_SIZE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) ?([KMGT])(i?)B", re.IGNORECASE)
_MOST_BYTES = 10**15
#: by the GB that a GPU is sold with: a GPU of them, and its memory in MiB as
#: `nvidia-smi` tells it (memory.total), which is the least of those with that number
SOLD_AS = {
    8: ("RTX 4060", 8_188),
    10: ("RTX 3080", 10_240),
    12: ("RTX 4070", 12_282),
    16: ("T4", 15_360),
    20: ("RTX 4000 Ada", 20_475),
    24: ("L4", 23_034),
    32: ("RTX 5090", 32_607),
    40: ("A100", 40_960),
    48: ("L40S", 46_068),
    80: ("H100", 81_559),
    94: ("H100 NVL", 95_830),
    96: ("GH200", 97_871),
    141: ("H200", 143_771),
    180: ("B200", 183_359),
    192: ("B200", 183_359),
}


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


def read_gpu_size(text: str) -> int:
    """Return the bytes of a GPU's memory: "80GB" is what a GPU sold so has.

    Another number of GB is of 1000, "80GiB" is of 1024.

    Raises:
        ValueError: it is no size, too small or too large; the message says so.
    """
    given = _SIZE.fullmatch(text.strip())
    if given is None:
        raise ValueError(f"{text[:40]!r} is not a size: write 80GB or 24GiB")
    number, prefix, binary = given.groups()
    power = "KMGT".index(prefix.upper()) + 1
    size_bytes = int(float(number) * (1024 if binary else 1000) ** power)
    if power == 3 and not binary and float(number).is_integer():
        _, mib = SOLD_AS.get(int(float(number)), ("", 0))
        size_bytes = mib << 20 or size_bytes
    if size_bytes > _MOST_BYTES:
        raise ValueError(f"{text[:40]!r} is more than 1000TB")
    if size_bytes <= RESERVED_BYTES:
        raise ValueError(f"{text[:40]!r} is too little: 1GiB of it is kept free")
    return size_bytes


def as_sold(size_bytes: int) -> str:
    """Name the GPU that `read_gpu_size` takes a size from; empty for other sizes."""
    for gb, (gpu, mib) in SOLD_AS.items():
        if size_bytes == mib << 20:
            return f"{gb} GB as the {gpu} has"
    return ""


def fit_of(model: Model, plan: Plan, capacity_bytes: int) -> Fit:
    """Say whether it fits, else what to change.

    The first way that is enough alone is the answer. Where none is, they are taken
    together in the order of what they cost.
    """
    sizes = capacity_bytes, RESERVED_BYTES
    room = capacity_bytes - RESERVED_BYTES
    if _peak(model, plan) <= room:
        return Fit(True, *sizes)
    ways = _INFERENCE if plan.inference else _TRAINING
    for words, way in ways:
        further, peak = _followed(way, model, plan, room)
        if peak <= room:
            change = PlanChange(options_of(further, plan), words, peak)
            return Fit(False, *sizes, (change,))
    changes = []
    for words, way in ways:
        further, peak = _followed(way, model, plan, room)
        if further != plan:
            changes.append(PlanChange(options_of(further, plan), words, peak))
            plan = further
    return Fit(False, *sizes, tuple(changes), _peak(model, plan) <= room)


def _peak(model: Model, plan: Plan) -> int:
    return max(stage.peak_bytes for stage in stage_memories(model, plan))


_Fields = dict[str, Any]
#: fields of a plan that change; the same as they are if there is no more of it
_Way = _Fields | Callable[[Plan], _Fields]


def _followed(way: _Way, model: Model, plan: Plan, room: int) -> tuple[Plan, int]:
    """Go one way as far as it helps, or until it is enough; return its peak, too."""
    peak = _peak(model, plan)
    while peak > room:
        fields = way if isinstance(way, dict) else way(plan)
        further = msgspec.structs.replace(plan, **fields)
        try:
            check_plan(model, further)
        except PlanError:
            break
        needed = _peak(model, further)
        if needed > (1 - _LEAST_GAIN) * peak:
            break
        plan, peak = further, needed
    return plan, peak


def _accumulate(plan: Plan) -> _Fields:
    batch = max(plan.batch // 2, 1)
    count = -(-plan.batch * plan.micro_batches // batch)
    is_possible = count <= _MOST_MICRO_BATCHES
    return {"batch": batch, "micro_batches": count} if is_possible else {}


def _smaller_adam(plan: Plan) -> _Fields:
    return {"optimizer": "adam8bit"} if plan.optimizer == "adam" else {}


def _more_zero(plan: Plan) -> _Fields:
    return {"zero": min(plan.zero + 1, 3)}


def _tensor(plan: Plan) -> _Fields:
    count = 2 * plan.tensor
    return {"tensor": count} if count <= _MOST_TENSOR else {}


def _sharded(plan: Plan) -> _Fields:
    count = 2 * plan.data
    return {"data": count, "zero": 3} if count <= _MOST_DATA else {}


def _small_cache(plan: Plan) -> _Fields:
    return {} if plan.kv_dtype == "int8" else {"kv_dtype": "fp8"}


def _fewer(plan: Plan) -> _Fields:
    return {"batch": max(plan.batch // 2, 1)}


_FLASH = ("FlashAttention, which is also faster", {"flash": True})
_SPLIT = ("layers split across GPUs with NVLink", _tensor)
#: with their words, in the order of what they cost in time, in accuracy, and in GPUs
_TRAINING: tuple[tuple[str, _Way], ...] = (
    _FLASH,
    ("a fused optimizer (fused=True in torch.optim)", {"fused": True}),
    ("smaller micro-batches with gradient accumulation", _accumulate),
    ("recomputed activations: one more forward pass", {"checkpoint": "full"}),
    ("sharded across the available GPUs", _more_zero),
    ("Adam with states of 8 bits (bitsandbytes)", _smaller_adam),
    _SPLIT,
    ("more GPUs, with everything sharded across them (FSDP)", _sharded),
)
_INFERENCE: tuple[tuple[str, _Way], ...] = (
    _FLASH,
    ("cached keys and values in 8 bits", _small_cache),
    ("fewer tokens in a forward pass", {"chunk": 8192}),
    ("fewer sequences at once", _fewer),
    ("weights in 8 bits", {"dtype": "int8"}),
    ("weights in 4 bits", {"dtype": "int4"}),
    _SPLIT,
)

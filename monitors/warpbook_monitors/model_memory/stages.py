"""What one GPU of each stage of a pipeline needs, in training and in inference.

The peak of a step of training is the largest of some moments: before the backward pass
of each block, and in the optimizer. Activations are freed as the backward pass goes
through the blocks, and gradients come in their place, unless they stay from one step to
the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from warpbook_monitors.model_memory.description import Block, Model
from warpbook_monitors.model_memory.layers import (
    Embedding,
    Logits,
    Pass,
    divided,
)
from warpbook_monitors.model_memory.plan import Plan


class _Widths(NamedTuple):
    """Bytes of a weight, its gradient, each of its optimizer states, its fp32 copy and
    the copy that autocast makes; of an activation, and of one that a norm keeps.
    """

    weight: int
    gradient: int
    state: int
    master: int
    cast: int
    element: int
    norm: int


#: `mixed` is Micikevicius et al. 2017 (arXiv:1710.03740), its bytes those of ZeRO
#: (Rajbhandari et al. 2019, section 3.1: 2 + 2 + 12 for Adam); `autocast` is that of
#: torch.amp, which computes norms in fp32 and caches 16-bit copies of weights; `bf16`
#: keeps all in 16 bits, as torch.optim does for such parameters
_WIDTHS = {
    "fp32": _Widths(4, 4, 4, 0, 0, 4, 4),
    "bf16": _Widths(2, 2, 2, 0, 0, 2, 2),
    "mixed": _Widths(2, 2, 4, 4, 0, 2, 2),
    "autocast": _Widths(4, 4, 4, 0, 2, 2, 4),
}
#: of a weight or of a cached element in inference
_BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4}


class StageMemory(msgspec.Struct, frozen=True):
    """What one GPU of a stage needs in a step of training, or to serve a batch.

    Attributes:
        stage: from 0 on; 0 where there is no pipeline.
        parameters: of this GPU, before ZeRO splits them.
        micro_batches: in flight at most.
        needed: bytes of all that is needed, not all at once, by what it is.
        activations: those of them by kind of layer.
        held: bytes at the moment of the peak, by what they are.
        peak_bytes: their sum: the most that is needed at once.
        peak_block: in whose backward pass that is; None in the optimizer, and in
            inference.
    """

    stage: int
    parameters: int
    micro_batches: int
    needed: dict[str, int]
    activations: dict[str, int]
    held: dict[str, int]
    peak_bytes: int
    peak_block: str | None = None


def stage_memories(model: Model, plan: Plan) -> list[StageMemory]:
    """Return the memory of each stage; the options have been checked."""
    widths = _WIDTHS[plan.precision]
    if plan.inference:
        # activations have 16 bits, or those of fp32
        widths = _WIDTHS["fp32" if plan.dtype == "fp32" else "bf16"]
    sizes = plan.batch, plan.tokens or model.tokens, plan.side or model.side
    on = Pass(*sizes, widths.element, widths.norm, plan.flash, plan.tensor)
    stages = enumerate(_cut(model.blocks, plan.pipeline))
    if plan.inference:
        return [_served(*stage, plan, on, model.is_decoder) for stage in stages]
    return [_trained(*stage, plan, on) for stage in stages]


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


def _tied(blocks: list[Block]) -> list[Logits]:
    """List the logits that take their matrix from the embedding."""
    layers = (layer for block in blocks for layer in block.layers)
    return [layer for layer in layers if isinstance(layer, Logits) and layer.tied]


def _shared(layer: Logits, tensor: int) -> int:
    """Count the matrix that tied logits share, split by the vocabulary."""
    return divided(layer.vocabulary, tensor) * layer.hidden


def _parameters(blocks: list[Block], tensor: int) -> int:
    """Count those of a stage on a tensor-parallel GPU.

    A stage without the embedding has a copy of a tied matrix, as in Megatron-LM
    (Narayanan et al. 2021, arXiv:2104.04473).
    """
    count = sum(block.parameters(tensor) for block in blocks)
    layers = (layer for block in blocks for layer in block.layers)
    if any(isinstance(layer, Embedding) for layer in layers):
        return count
    return count + sum(_shared(layer, tensor) for layer in _tied(blocks))


def _served(
    number: int, blocks: list[Block], plan: Plan, on: Pass, is_decoder: bool
) -> StageMemory:
    parameters = _parameters(blocks, plan.tensor)
    needs = [
        (block.times, layer.needs(on)) for block in blocks for layer in block.layers
    ]
    cached = sum(times * layer.cached_elements for times, layer in needs)
    parts = {
        "weights": divided(parameters * _BITS[plan.dtype], 8),
        "cache of keys and values": cached * _BITS[plan.kv_dtype] // 8 * is_decoder,
    }
    # with all tokens at once
    working = max(layer.forward_bytes for _, layer in needs)
    needed = {**parts, "temporary: the largest layer": working}
    held = {**parts, "temporaries": working}
    return StageMemory(number, parameters, 1, needed, {}, held, sum(held.values()))


def _trained(number: int, blocks: list[Block], plan: Plan, on: Pass) -> StageMemory:
    widths, parameters = _WIDTHS[plan.precision], _parameters(blocks, plan.tensor)
    # ZeRO splits optimizer states from stage 1 on, gradients from 2 on, and weights
    # from 3 on among the GPUs of data parallelism (Rajbhandari et al. 2019)
    updated, reduced, stored = (
        divided(parameters, plan.data) if plan.zero >= stage else parameters
        for stage in (1, 2, 3)
    )
    weights = (widths.weight + widths.cast) * stored
    gradients = widths.gradient * reduced
    states = _states_bytes(plan.optimizer, widths.state, updated)

    def parts(weights: int, gradients: int, kept: int) -> dict[str, int]:
        return {
            "weights": weights,
            "gradients": gradients,
            "optimizer states": states,
            "master weights": widths.master * updated,
            "activations": kept,
        }

    # 1F1B (Narayanan et al. 2021) has p - i micro-batches on stage i
    flight = min(plan.micro_batches, plan.pipeline - number)
    passes = [_backward_of(block, plan, on, bool(_tied(blocks))) for block in blocks]
    kinds = Counter[str]()
    for own in passes:
        for kind, size in own.kinds.items():
            kinds[kind] += flight * own.times * size
    gathered = _gathered_bytes(blocks, plan)
    moments: list[tuple[dict[str, int], str | None]] = [
        ({**parts(weights, done, kept), "temporaries": gathered + working}, name)
        for done, kept, working, name in _moments(passes, plan, gradients, kinds)
    ]
    # with master weights an fp32 copy of the gradients; torch.optim's Adam (`foreach`,
    # its default on CUDA) has the roots of the second moments at once; autocast's
    # copies are gone
    has_roots = plan.optimizer == "adam" and not plan.fused
    step = (widths.master + widths.state * has_roots) * updated
    now = parts(widths.weight * stored, gradients, 0)
    moments.append(({**now, "temporaries": step}, None))
    held, peak_block = max(moments, key=lambda moment: sum(moment[0].values()))
    needed = {
        **parts(weights, gradients, kinds.total()),
        "temporary: logits and loss": sum(own.logits for own in passes),
        "temporary: gathered by ZeRO 3": gathered,
        "temporary: optimizer": step,
    }
    peak_bytes, place = sum(held.values()), (number, parameters, flight)
    return StageMemory(*place, needed, dict(+kinds), held, peak_bytes, peak_block)


def _moments(
    passes: list[_Backward], plan: Plan, gradients: int, kinds: Counter[str]
) -> Iterator[tuple[int, int, int, str]]:
    """Return gradients, activations and temporaries before each block's backward.

    Between the first and the last repetition of a block all three change evenly, so
    that only these two are looked at. Gradients stay where micro-batches add up, or
    where data parallelism has them in buckets (Li et al. 2020, section 3.2).
    """
    stay = plan.micro_batches > 1 or plan.data > 1
    done, remaining = gradients if stay else 0, kinds.total()
    for own in reversed(passes):
        gradient, kept = 0 if stay else own.gradients, own.kinds.total()
        for count in (0, own.times - 1):
            now = done + count * gradient, remaining - count * kept
            yield *now, own.working, own.name
        done += own.times * gradient
        remaining -= own.times * kept
    yield done, remaining, 0, passes[0].name


def _gathered_bytes(blocks: list[Block], plan: Plan) -> int:
    """Return the weights of two blocks, and the gradients of one, under ZeRO 3.

    One computes while the next is gathered (Zhao et al. 2023, PyTorch FSDP, section
    3.3.2).
    """
    if plan.zero < 3:
        return 0
    widths = _WIDTHS[plan.precision]
    largest = max(
        divided(block.parameters(plan.tensor), block.times) for block in blocks
    )
    return largest * (2 * widths.weight + widths.gradient)


def _states_bytes(optimizer: str, width: int, count: int) -> int:
    """Return none for SGD, one for momentum, two for Adam (Kingma and Ba 2014).

    Adam in 8 bits is two bytes, and two fp32 scales for each 256 elements (Dettmers
    et al. 2021, section 2; bitsandbytes' block size).
    """
    if optimizer == "adam8bit":
        return 2 * count + 8 * divided(count, 256)
    return {"sgd": 0, "momentum": 1, "adam": 2}[optimizer] * width * count


class _Backward(NamedTuple):
    """Bytes of the backward pass of each repetition of a block."""

    name: str
    times: int
    #: that are kept for it, by kind of layer
    kinds: Counter[str]
    #: that it needs beside them
    working: int
    #: those that it makes; a tied matrix's are the head's
    gradients: int
    #: logits, and what their loss needs
    logits: int


def _backward_of(block: Block, plan: Plan, on: Pass, is_tied: bool) -> _Backward:
    """Return what is kept and made, and the gradients within the largest layer.

    Beside these is what is computed anew: with full checkpointing the block's
    activations of its input (Chen et al. 2016), with selective one attention's scores.
    """
    first, tensor = block.layers[0], plan.tensor
    is_selective = plan.checkpoint == "selective"
    # sequence parallelism splits the rest (Korthikanti et al., section 4.2)
    others = tensor if plan.sequence_parallel else 1
    kinds = Counter[str]()
    working = logits = cores = 0
    count = divided(block.parameters(tensor), block.times)
    for layer in block.layers:
        needs = layer.needs(on)
        split = needs.split_bytes + needs.core_bytes * (not is_selective)
        whole = divided(needs.whole_bytes, others)
        kinds[layer.kind] += whole + divided(split, tensor)
        working = max(working, needs.backward_bytes)
        cores = max(cores, needs.core_bytes)
        if isinstance(layer, Logits):
            logits += needs.backward_bytes
            count += _shared(layer, tensor) if layer.tied else 0
        elif isinstance(layer, Embedding) and is_tied:
            count -= layer.parameters(tensor)
    gradient = _WIDTHS[plan.precision].gradient
    if plan.checkpoint == "full" and not block.edge:
        reads = divided(first.needs(on).input_bytes, others)
        working += max(kinds.total() - reads, 0)
        kinds = Counter({"block inputs": reads})
    elif is_selective:
        working += divided(cores, tensor)
    elif is_tied and isinstance(first, Embedding):
        # its gradient is made, and then added to that of the logits
        working += gradient * first.parameters(tensor)
    made = gradient * count
    return _Backward(block.name, block.times, kinds, working, made, logits)

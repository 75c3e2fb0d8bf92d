"""What one GPU of a stage needs in a step of training.

The peak of a step of training is the largest of some moments: before the backward pass
of each block, and in the optimizer. Activations are freed as the backward pass goes
through the blocks, and gradients come in their place, unless they stay from one step to
the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from warpbook_monitors.model_memory.description import Block, Stored
from warpbook_monitors.model_memory.layer import Adapters, Pass, divided
from warpbook_monitors.model_memory.layers import Embedding, Logits
from warpbook_monitors.model_memory.plan import Plan
from warpbook_monitors.model_memory.stage import (
    StageMemory,
    parameters_of,
    shared_matrix,
    tied_logits,
    weights_bytes,
)


class Widths(NamedTuple):
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
WIDTHS = {
    "fp32": Widths(4, 4, 4, 0, 0, 4, 4),
    "bf16": Widths(2, 2, 2, 0, 0, 2, 2),
    "mixed": Widths(2, 2, 4, 4, 0, 2, 2),
    "autocast": Widths(4, 4, 4, 0, 2, 2, 4),
}
#: peft's default: adapters and all of theirs in fp32, beside frozen 16 bits
_FP32_ADAPTERS = WIDTHS["bf16"]._replace(weight=4, gradient=4, state=4)


def widths_of(plan: Plan) -> Widths:
    """Return those of what is trained, and of activations."""
    if plan.lora and plan.precision == "mixed":
        return _FP32_ADAPTERS
    return WIDTHS[plan.precision]


def trained_stage(
    number: int, blocks: list[Block], plan: Plan, on: Pass, stored_as: Stored
) -> StageMemory:
    """Return the memory of a stage, whose frozen weights are stored so."""
    widths, parameters = widths_of(plan), parameters_of(blocks, plan.tensor)
    trained, frozen = parameters, 0
    if on.adapters is not None:
        trained = sum(
            block.times * _adapter_parameters(block, on.adapters) for block in blocks
        )
        parameters += trained
        frozen = weights_bytes(blocks, plan.tensor, stored_as)
    # ZeRO splits optimizer states from stage 1 on, gradients from 2 on, and weights
    # from 3 on among the GPUs of data parallelism (Rajbhandari et al. 2019)
    updated, reduced, stored = (
        divided(trained, plan.data) if plan.zero >= stage else trained
        for stage in (1, 2, 3)
    )
    frozen = divided(frozen, plan.data) if plan.zero == 3 else frozen
    weights = (widths.weight + widths.cast) * stored + frozen
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
    passes = [
        _backward_of(block, plan, on, bool(tied_logits(blocks))) for block in blocks
    ]
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
    now = parts(widths.weight * stored + frozen, gradients, 0)
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
    widths = WIDTHS[plan.precision]
    largest = max(
        divided(block.parameters(plan.tensor), block.times) for block in blocks
    )
    return largest * (2 * widths.weight + widths.gradient * (not plan.lora))


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
            count += shared_matrix(layer, tensor) if layer.tied else 0
        elif isinstance(layer, Embedding) and is_tied:
            count -= layer.parameters(tensor)
    gradient = widths_of(plan).gradient
    if on.adapters is not None:
        count = _adapter_parameters(block, on.adapters)
        working += _restored_bytes(block, plan.dtype)
    if plan.checkpoint == "full" and not block.edge:
        reads = divided(first.needs(on).input_bytes, others)
        working += max(kinds.total() - reads, 0)
        kinds = Counter({"block inputs": reads})
    elif is_selective:
        working += divided(cores, tensor)
    elif is_tied and isinstance(first, Embedding) and on.adapters is None:
        # its gradient is made, and then added to that of the logits
        working += gradient * first.parameters(tensor)
    made = gradient * count
    return _Backward(block.name, block.times, kinds, working, made, logits)


def _adapter_parameters(block: Block, adapters: Adapters) -> int:
    """Count those of one repetition."""
    return sum(layer.adapter_parameters(adapters) for layer in block.layers)


def _restored_bytes(block: Block, dtype: str) -> int:
    """Return the 16 bits of the largest frozen matrix, of which 8 or 4 are stored.

    bitsandbytes restores one for its product (Dettmers et al. 2023, arXiv:2305.14314).
    """
    if dtype not in ("int8", "int4"):
        return 0
    linears = (pair for layer in block.layers for pair in layer.linears())
    return 2 * max((inputs * outputs for inputs, outputs in linears), default=0)

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
    AnyLayer,
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
    stages = [
        _Stage(number, blocks, plan, on)
        for number, blocks in enumerate(_cut(model.blocks, plan.pipeline))
    ]
    if plan.inference:
        return [stage.serving(model.is_decoder) for stage in stages]
    return [stage.training() for stage in stages]


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


class _Stage:
    """The blocks of a stage on one of its tensor-parallel GPUs."""

    def __init__(self, number: int, blocks: list[Block], plan: Plan, on: Pass) -> None:
        self._number, self._blocks, self._plan, self._on = number, blocks, plan, on
        self._widths = _WIDTHS[plan.precision]
        self._parameters = _parameters(blocks, plan.tensor)

    def serving(self, is_decoder: bool) -> StageMemory:
        plan = self._plan
        needs = [
            (block.times, layer.needs(self._on))
            for block in self._blocks
            for layer in block.layers
        ]
        cached = sum(times * layer.cached_elements for times, layer in needs)
        parts = {
            "weights": divided(self._parameters * _BITS[plan.dtype], 8),
            "cache of keys and values": cached * _BITS[plan.kv_dtype] // 8 * is_decoder,
        }
        # with all tokens at once
        working = max(layer.forward_bytes for _, layer in needs)
        needed = {**parts, "temporary: the largest layer": working}
        held = {**parts, "temporaries": working}
        place = self._number, self._parameters, 1
        return StageMemory(*place, needed, {}, held, sum(held.values()))

    def training(self) -> StageMemory:
        plan, widths, parameters = self._plan, self._widths, self._parameters
        # ZeRO splits optimizer states from stage 1 on, gradients from 2 on, and weights
        # from 3 on among the GPUs of data parallelism (Rajbhandari et al. 2019)
        updated, reduced, stored = (
            divided(parameters, plan.data) if plan.zero >= stage else parameters
            for stage in (1, 2, 3)
        )
        weights = (widths.weight + widths.cast) * stored
        gradients = widths.gradient * reduced
        states, master = self._states_bytes(updated), widths.master * updated
        # 1F1B (Narayanan et al. 2021) has p - i micro-batches on stage i
        flight = min(plan.micro_batches, plan.pipeline - self._number)
        kinds = Counter[str]()
        for part in self._blocks:
            for kind, size in self._kept(part).items():
                kinds[kind] += flight * part.times * size
        kinds = +kinds
        activations = kinds.total()
        gathered, step = self._gathered_bytes(), self._step_bytes(updated)

        def parts(weights: int, gradients: int, kept: int) -> dict[str, int]:
            return {
                "weights": weights,
                "gradients": gradients,
                "optimizer states": states,
                "master weights": master,
                "activations": kept,
            }

        moments: list[tuple[dict[str, int], str | None]] = [
            ({**parts(weights, done, kept), "temporaries": gathered + working}, name)
            for done, kept, working, name in self._backward(activations, gradients)
        ]
        # in the optimizer autocast's copies are gone
        end = parts(widths.weight * stored, gradients, 0)
        moments.append(({**end, "temporaries": step}, None))
        held, block = max(moments, key=lambda moment: sum(moment[0].values()))
        logits = (
            layer.needs(self._on).backward_bytes
            for part in self._blocks
            for layer in part.layers
            if isinstance(layer, Logits)
        )
        needed = {
            **parts(weights, gradients, activations),
            "temporary: logits and loss": sum(logits),
            "temporary: gathered by ZeRO 3": gathered,
            "temporary: optimizer": step,
        }
        peak_bytes, place = sum(held.values()), (self._number, parameters, flight)
        return StageMemory(*place, needed, dict(kinds), held, peak_bytes, block)

    def _states_bytes(self, count: int) -> int:
        """Return none for SGD, one for momentum, two for Adam (Kingma and Ba 2014).

        Adam in 8 bits is two bytes, and two fp32 scales for each 256 elements (Dettmers
        et al. 2021, section 2; bitsandbytes' block size).
        """
        if self._plan.optimizer == "adam8bit":
            return 2 * count + 8 * divided(count, 256)
        states = {"sgd": 0, "momentum": 1, "adam": 2}[self._plan.optimizer]
        return states * self._widths.state * count

    def _step_bytes(self, count: int) -> int:
        """Return what the optimizer needs for a moment.

        With master weights that is an fp32 copy of the gradients; torch.optim's Adam
        (`foreach`, its default on CUDA) has the roots of the second moments at once.
        """
        has_roots = self._plan.optimizer == "adam" and not self._plan.fused
        return (self._widths.master + has_roots * self._widths.state) * count

    def _gathered_bytes(self) -> int:
        """Return the weights of two blocks, and the gradients of one, under ZeRO 3.

        One computes while the next is gathered (Zhao et al. 2023, PyTorch FSDP,
        section 3.3.2).
        """
        if self._plan.zero < 3:
            return 0
        largest = max(
            divided(block.parameters(self._plan.tensor), block.times)
            for block in self._blocks
        )
        return largest * (2 * self._widths.weight + self._widths.gradient)

    def _whole(self, size_bytes: int) -> int:
        """Return whole, or with SP whole / t (Korthikanti et al., section 4.2)."""
        plan = self._plan
        return (
            divided(size_bytes, plan.tensor) if plan.sequence_parallel else size_bytes
        )

    def _kept_of(self, layer: AnyLayer) -> int:
        needs = layer.needs(self._on)
        is_anew = self._plan.checkpoint == "selective"
        split = needs.split_bytes + (0 if is_anew else needs.core_bytes)
        return self._whole(needs.whole_bytes) + divided(split, self._plan.tensor)

    def _recomputes(self, block: Block) -> bool:
        return self._plan.checkpoint == "full" and not block.edge

    def _input_bytes(self, block: Block) -> int:
        return self._whole(block.layers[0].needs(self._on).input_bytes)

    def _kept(self, block: Block) -> Counter[str]:
        """Return what a repetition keeps, by kind of layer.

        That is e·T·h with full checkpointing (Chen et al. 2016).
        """
        if self._recomputes(block):
            return Counter({"block inputs": self._input_bytes(block)})
        kinds = Counter[str]()
        for layer in block.layers:
            kinds[layer.kind] += self._kept_of(layer)
        return kinds

    def _working(self, block: Block) -> int:
        """Return what a block's backward pass needs beside what was kept.

        Gradients within its largest layer, and what is computed anew: with full
        checkpointing the block's activations, with selective one attention's scores.
        """
        needs = [layer.needs(self._on) for layer in block.layers]
        most = max(of_layer.backward_bytes for of_layer in needs)
        if self._recomputes(block):
            anew = sum(self._kept_of(layer) for layer in block.layers)
            return most + max(anew - self._input_bytes(block), 0)
        if self._plan.checkpoint == "selective":
            core = max(of_layer.core_bytes for of_layer in needs)
            return most + divided(core, self._plan.tensor)
        if _tied(self._blocks) and isinstance(block.layers[0], Embedding):
            # its gradient is made, and then added to that of the logits
            table = block.layers[0].parameters(self._plan.tensor)
            return most + self._widths.gradient * table
        return most

    def _gradients_of(self, block: Block) -> int:
        """Return the gradients of a repetition; a tied matrix's are the head's."""
        tensor = self._plan.tensor
        count = divided(block.parameters(tensor), block.times)
        for layer in block.layers:
            if isinstance(layer, Logits) and layer.tied:
                count += _shared(layer, tensor)
            elif isinstance(layer, Embedding) and _tied(self._blocks):
                count -= layer.parameters(tensor)
        return self._widths.gradient * count

    def _backward(
        self, remaining: int, gradients: int
    ) -> Iterator[tuple[int, int, int, str]]:
        """Return gradients, activations and temporaries before each block's backward.

        Between the first and the last repetition of a block all three change evenly, so
        that only these two are looked at. Gradients stay where micro-batches add up, or
        where data parallelism has them in buckets (Li et al. 2020, section 3.2).
        """
        stay = self._plan.micro_batches > 1 or self._plan.data > 1
        done = gradients if stay else 0
        for block in reversed(self._blocks):
            kept, working = self._kept(block).total(), self._working(block)
            own = 0 if stay else self._gradients_of(block)
            for before in (0, block.times - 1):
                before_bytes = remaining - before * kept
                yield done + before * own, before_bytes, working, block.name
            done += block.times * own
            remaining -= block.times * kept
        yield done, remaining, 0, self._blocks[0].name

"""The memory of a step of training, on each stage of a pipeline.

The step's peak is the largest of some moments: before the backward pass of each block,
and in the optimizer. Activations are freed as the backward pass goes
through the blocks, and gradients come in their place, unless they stay from one step to
the next.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from warpbook_monitors.model_memory.description import Block, Model
from warpbook_monitors.model_memory.layer import Pass, Saved, divided
from warpbook_monitors.model_memory.layers import AnyLayer, Embedding, Logits
from warpbook_monitors.model_memory.plan import WIDTHS, Plan, Widths
from warpbook_monitors.model_memory.stages import Stage, stages_of, tied_parameters


class KindBytes(msgspec.Struct, frozen=True):
    """Activations of one kind of layers."""

    kind: str
    size_bytes: int


class AtPeak(msgspec.Struct, frozen=True):
    """What one GPU holds at the moment of its peak; the parts sum to it.

    Attributes:
        weights_bytes: weights, with the copies that autocast makes.
        gradients_bytes: those that are there already.
        states_bytes: optimizer states.
        master_bytes: fp32 copies of weights.
        activations_bytes: those that are still kept.
        temporary_bytes: what the moment itself needs.
    """

    weights_bytes: int
    gradients_bytes: int
    states_bytes: int
    master_bytes: int
    activations_bytes: int
    temporary_bytes: int

    @property
    def total_bytes(self) -> int:
        return sum(msgspec.structs.astuple(self))


class StageMemory(msgspec.Struct, frozen=True):
    """What one GPU of a stage needs in a step of training.

    Attributes:
        stage: from 0 on; 0 where there is no pipeline.
        parameters: of this GPU, before ZeRO splits them.
        weights_bytes: weights, with the copies that autocast makes.
        gradients_bytes: all of them.
        states_bytes: optimizer states.
        master_bytes: fp32 copies of weights.
        activations_bytes: kept for backward passes, of all micro-batches in flight.
        activations: the same by kind of layer.
        micro_batches: in flight at most.
        logits_bytes: logits and what their loss needs; 0 where there are none.
        gathered_bytes: weights and gradients that ZeRO 3 has as a whole for a moment.
        step_bytes: temporaries of the optimizer.
        peak_bytes: the most that is needed at once; not the sum of the others.
        peak_at: the moment: `backward` of a block, or `optimizer`.
        peak_block: the name of that block; None in the optimizer.
        held: what is in memory at that moment.
    """

    stage: int
    parameters: int
    weights_bytes: int
    gradients_bytes: int
    states_bytes: int
    master_bytes: int
    activations_bytes: int
    activations: tuple[KindBytes, ...]
    micro_batches: int
    logits_bytes: int
    gathered_bytes: int
    step_bytes: int
    peak_bytes: int
    peak_at: str
    peak_block: str | None
    held: AtPeak


def training_memory(model: Model, plan: Plan) -> tuple[StageMemory, ...]:
    """Give the memory of each stage; the options have been checked."""
    return tuple(
        _StageStep(stage, plan, plan.training_pass(model)).memory()
        for stage in stages_of(model.blocks, plan.pipeline)
    )


class _StageStep:
    """A step on one of the tensor-parallel GPUs of a stage."""

    def __init__(self, stage: Stage, plan: Plan, on: Pass) -> None:
        self._stage = stage
        self._blocks = stage.blocks
        self._plan = plan
        self._on = on
        self._widths: Widths = WIDTHS[plan.precision]

    def memory(self) -> StageMemory:
        parameters = self._stage.parameters(self._plan.tensor)
        weights = self._weights_bytes(parameters)
        gradients = self._widths.gradient * self._shard(parameters, 2)
        states = self._states_bytes(self._shard(parameters, 1))
        master = self._widths.master * self._shard(parameters, 1)
        flight = self._in_flight()
        kinds = self._kinds(flight)
        activations = sum(kinds.values())
        gathered = self._gathered_bytes()
        step = self._step_bytes(self._shard(parameters, 1))
        moments = [
            (AtPeak(weights, done, states, master, kept, gathered + working), block)
            for done, kept, working, block in self._backward(activations, gradients)
        ]
        peak, at = max(moments, key=lambda moment: moment[0].total_bytes)
        # autocast's copies are gone by then
        copies = self._widths.cast * self._shard(parameters, 3)
        end = AtPeak(weights - copies, gradients, states, master, 0, step)
        is_backward = peak.total_bytes >= end.total_bytes
        held = peak if is_backward else end
        return StageMemory(
            stage=self._stage.number,
            parameters=parameters,
            weights_bytes=weights,
            gradients_bytes=gradients,
            states_bytes=states,
            master_bytes=master,
            activations_bytes=activations,
            activations=tuple(KindBytes(*item) for item in kinds.items()),
            micro_batches=flight,
            logits_bytes=sum(
                layer.backward_bytes(self._on, self._plan.tensor)
                for block in self._blocks
                for layer in block.layers
                if isinstance(layer, Logits)
            ),
            gathered_bytes=gathered,
            step_bytes=step,
            peak_bytes=held.total_bytes,
            peak_at="backward" if is_backward else "optimizer",
            peak_block=at.name if is_backward else None,
            held=held,
        )

    def _shard(self, parameters: int, stage: int) -> int:
        """Give what ZeRO leaves on a GPU from a stage on (Rajbhandari et al. 2019).

        Stage 1 splits optimizer states, 2 gradients, and 3 weights among d GPUs.
        """
        plan = self._plan
        return divided(parameters, plan.data) if plan.zero >= stage else parameters

    def _weights_bytes(self, parameters: int) -> int:
        width = self._widths
        return (width.weight + width.cast) * self._shard(parameters, 3)

    def _states_bytes(self, count: int) -> int:
        """Give none for SGD, one for momentum, two for Adam (Kingma and Ba 2014).

        Adam in 8 bits is two bytes, and two fp32 scales for each 256 elements (Dettmers
        et al. 2021, section 2; bitsandbytes' block size).
        """
        width = self._widths.state
        return {
            "sgd": 0,
            "momentum": width * count,
            "adam": 2 * width * count,
            "adam8bit": 2 * count + 8 * divided(count, 256),
        }[self._plan.optimizer]

    def _step_bytes(self, count: int) -> int:
        """Give what the optimizer needs for a moment.

        With master weights that is an fp32 copy of the gradients; torch.optim's Adam
        (`foreach`, its default on CUDA) has the roots of the second moments at once.
        """
        copies = self._widths.master * count
        if self._plan.optimizer == "adam" and not self._plan.fused:
            return copies + self._widths.state * count
        return copies

    def _gathered_bytes(self) -> int:
        """Give the weights of two blocks, and the gradients of one, under ZeRO 3.

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

    def _in_flight(self) -> int:
        """Give p - i micro-batches on stage i, by 1F1B (Narayanan et al. 2021)."""
        return min(self._plan.micro_batches, self._plan.pipeline - self._stage.number)

    def _on_gpu(self, saved: Saved) -> int:
        """Give whole + split / t; with SP all / t (Korthikanti et al., section 4.2)."""
        tensor = self._plan.tensor
        split = divided(saved.split_bytes + saved.core_bytes, tensor)
        if self._plan.sequence_parallel:
            return split + divided(saved.whole_bytes, tensor)
        return split + saved.whole_bytes

    def _kept(self, layer: AnyLayer) -> Saved:
        saved = layer.saved(self._on)
        if self._plan.checkpoint == "selective":
            return msgspec.structs.replace(saved, core_bytes=0)
        return saved

    def _block_input(self, block: Block) -> int:
        whole = block.layers[0].input_bytes(self._on)
        return self._on_gpu(Saved(whole_bytes=whole))

    def _recomputes(self, block: Block) -> bool:
        return self._plan.checkpoint == "full" and not block.edge

    def _kept_of_block(self, block: Block) -> int:
        """Give e·T·h for each with full checkpointing (Chen et al. 2016), else all."""
        if self._recomputes(block):
            return self._block_input(block)
        return sum(self._on_gpu(self._kept(layer)) for layer in block.layers)

    def _kinds(self, flight: int) -> dict[str, int]:
        kinds: dict[str, int] = {}
        for block in self._blocks:
            if self._recomputes(block):
                rows = [("block inputs", self._block_input(block))]
            else:
                rows = [
                    (
                        str(type(layer).__struct_config__.tag),
                        self._on_gpu(self._kept(layer)),
                    )
                    for layer in block.layers
                ]
            for kind, size in rows:
                if size:
                    total = kinds.get(kind, 0) + flight * block.times * size
                    kinds[kind] = total
        return kinds

    def _working(self, block: Block) -> int:
        """Give what a block's backward pass needs beside what was kept.

        Gradients within its largest layer, and what is computed anew: with full
        checkpointing the block's activations, with selective one attention's scores.
        """
        on, tensor = self._on, self._plan.tensor
        most = max(layer.backward_bytes(on, tensor) for layer in block.layers)
        if self._recomputes(block):
            anew = sum(self._on_gpu(layer.saved(on)) for layer in block.layers)
            return most + max(anew - self._block_input(block), 0)
        if self._plan.checkpoint == "selective":
            cores = (layer.saved(on).core_bytes for layer in block.layers)
            return most + divided(max(cores), tensor)
        if self._stage.tied and isinstance(block.layers[0], Embedding):
            # its gradient is made, and then added to that of the logits
            table = block.layers[0].parameters(tensor)
            return most + self._widths.gradient * table
        return most

    def _gradients_of(self, block: Block) -> int:
        """Give the gradients of a repetition; those of a tied matrix are the head's."""
        tensor = self._plan.tensor
        count = divided(block.parameters(tensor), block.times)
        for layer in block.layers:
            if isinstance(layer, Logits) and layer.tied:
                count += tied_parameters(layer, tensor)
            elif isinstance(layer, Embedding) and self._stage.tied:
                count -= layer.parameters(tensor)
        return self._widths.gradient * count

    def _backward(
        self, remaining: int, gradients: int
    ) -> Iterator[tuple[int, int, int, Block]]:
        """Give gradients, activations and temporaries before each block's backward.

        Between the first and the last repetition of a block all three change evenly, so
        that only these two are looked at. Gradients stay where micro-batches add up, or
        where data parallelism has them in buckets (Li et al. 2020, section 3.2).
        """
        stay = self._plan.micro_batches > 1 or self._plan.data > 1
        done = gradients if stay else 0
        for block in reversed(self._blocks):
            kept, working = self._kept_of_block(block), self._working(block)
            gradient_bytes = 0 if stay else self._gradients_of(block)
            yield done, remaining, working, block
            most = block.times - 1
            yield done + most * gradient_bytes, remaining - most * kept, working, block
            done += block.times * gradient_bytes
            remaining -= block.times * kept
        yield done, remaining, 0, self._blocks[0]

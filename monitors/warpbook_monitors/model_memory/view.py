"""A model's memory as it is shown: computed once, drawn by terminal and notebook.

Every text is ready to show. Names come from descriptions: views escape them.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from warpbook_monitors import units
from warpbook_monitors.model_memory.fit import Fit
from warpbook_monitors.model_memory.inference import InferenceMemory
from warpbook_monitors.model_memory.plan import Plan
from warpbook_monitors.model_memory.report import ModelMemory
from warpbook_monitors.model_memory.training import StageMemory
from warpbook_monitors.plain_text import shortened

_MOST_NAME = 40
#: what GPUs hold at the peak, in the order of the bar, with the letter that a terminal
#: draws it with
_LETTERS = {
    "weights": "W",
    "gradients": "G",
    "optimizer states": "S",
    "master weights": "M",
    "activations": "A",
    "cache of keys and values": "C",
    "temporaries": "T",
}


class Row(msgspec.Struct, frozen=True):
    """A line of the table; what is indented is a part of the line before it."""

    label: str
    text: str
    is_part: bool = False


class Segment(msgspec.Struct, frozen=True):
    """What is held at the peak, of one kind."""

    label: str
    letter: str
    size_bytes: int
    #: "237 MiB"
    text: str
    #: of the peak
    share: str


class Bar(msgspec.Struct, frozen=True):
    """The peak against a GPU's memory; the segments sum to it."""

    #: the peak, and of how much it is where that is known
    title: str
    segments: tuple[Segment, ...]
    peak_bytes: int
    #: None where no GPU was given
    capacity_bytes: int | None

    @property
    def scale_bytes(self) -> int:
        """Give what the whole length stands for."""
        return max(self.peak_bytes, self.capacity_bytes or 0, 1)


class MemoryView(msgspec.Struct, frozen=True):
    """The heaviest GPU of a plan, from its title to what to change."""

    title: str
    #: which GPU it is; empty where there is one
    where: str
    rows: tuple[Row, ...]
    bar: Bar
    #: whether it fits, and what to change first; empty where no GPU was given
    fit: tuple[str, ...]


def view_of_memory(memory: ModelMemory, plan: Plan) -> MemoryView:
    """Put what was computed into words.

    Args:
        memory: of the plan.
        plan: what was asked.
    """
    if memory.training:
        stage = max(memory.training, key=lambda one: one.peak_bytes)
        title, rows = _training_title(memory, plan), tuple(_training_rows(stage))
        number, stages = stage.stage, len(memory.training)
        held = _held_in_training(stage)
        peak_bytes = stage.peak_bytes
    else:
        serving = max(memory.inference, key=lambda one: one.peak_bytes)
        title, rows = _inference_title(memory, plan), tuple(_inference_rows(serving))
        number, stages = serving.stage, len(memory.inference)
        held = _held_in_inference(serving)
        peak_bytes = serving.peak_bytes
    capacity = None if memory.fit is None else memory.fit.capacity_bytes
    return MemoryView(
        title,
        _where(memory, number, stages),
        rows,
        _bar(held, peak_bytes, capacity),
        () if memory.fit is None else tuple(_fit_lines(memory.fit)),
    )


def _bar(held: dict[str, int], peak_bytes: int, capacity: int | None) -> Bar:
    title = f"At the peak: {units.size(peak_bytes)}"
    if capacity is not None:
        share = units.share(peak_bytes / capacity)
        title += f" of {units.size(capacity)}, {share}"
    segments = tuple(
        Segment(
            label,
            _LETTERS[label],
            size_bytes,
            units.size(size_bytes),
            units.share(size_bytes / max(peak_bytes, 1)),
        )
        for label, size_bytes in held.items()
        if size_bytes
    )
    return Bar(title, segments, peak_bytes, capacity)


def _held_in_training(stage: StageMemory) -> dict[str, int]:
    held = stage.held
    return {
        "weights": held.weights_bytes,
        "gradients": held.gradients_bytes,
        "optimizer states": held.states_bytes,
        "master weights": held.master_bytes,
        "activations": held.activations_bytes,
        "temporaries": held.temporary_bytes,
    }


def _held_in_inference(stage: InferenceMemory) -> dict[str, int]:
    return {
        "weights": stage.weights_bytes,
        "cache of keys and values": stage.cache_bytes,
        "temporaries": stage.working_bytes,
    }


def _work(memory: ModelMemory) -> str:
    if memory.side:
        return f"{memory.batch:,} images of {memory.side:,} × {memory.side:,}"
    return f"{memory.batch:,} × {memory.tokens:,} tokens"


def _training_title(memory: ModelMemory, plan: Plan) -> str:
    words = [f"Training on {_work(memory)}", f"{plan.precision} precision"]
    words.append(plan.optimizer + (" (fused)" if plan.fused else ""))
    if plan.checkpoint != "none":
        words.append(f"{plan.checkpoint} checkpointing")
    if not plan.flash:
        words.append("no FlashAttention")
    return ", ".join(words)


def _inference_title(memory: ModelMemory, plan: Plan) -> str:
    return (
        f"Inference of {_work(memory)}, weights in {plan.dtype}, "
        f"cache in {plan.kv_dtype}"
    )


def _where(memory: ModelMemory, stage: int, stages: int) -> str:
    if stages > 1:
        return (
            f"On each GPU of stage {stage + 1} of {stages}, the heaviest; "
            f"{memory.gpus:,} GPUs in all:"
        )
    return f"On each of {memory.gpus:,} GPUs:" if memory.gpus > 1 else ""


def _training_rows(stage: StageMemory) -> Iterator[Row]:
    yield Row("weights", units.size(stage.weights_bytes))
    yield Row("gradients", units.size(stage.gradients_bytes))
    yield Row("optimizer states", units.size(stage.states_bytes))
    yield Row("master weights", units.size(stage.master_bytes))
    flight = (
        f", {stage.micro_batches} micro-batches in flight"
        if stage.micro_batches > 1
        else ""
    )
    yield Row(f"activations{flight}", units.size(stage.activations_bytes))
    for kind in stage.activations:
        yield Row(kind.kind, units.size(kind.size_bytes), is_part=True)
    yield Row("temporary: logits and loss", units.size(stage.logits_bytes))
    if stage.gathered_bytes:
        yield Row("temporary: gathered by ZeRO 3", units.size(stage.gathered_bytes))
    yield Row("temporary: optimizer", units.size(stage.step_bytes))
    if stage.peak_block is None:
        moment = "in the optimizer"
    else:
        moment = f"in the backward pass of: {shortened(stage.peak_block, _MOST_NAME)}"
    yield Row(f"peak, {moment}", units.size(stage.peak_bytes))


def _inference_rows(stage: InferenceMemory) -> Iterator[Row]:
    yield Row("weights", units.size(stage.weights_bytes))
    yield Row("cache of keys and values", units.size(stage.cache_bytes))
    yield Row("temporary: the largest layer", units.size(stage.working_bytes))
    yield Row("peak", units.size(stage.peak_bytes))


def _fit_lines(fit: Fit) -> Iterator[str]:
    capacity = units.size(fit.capacity_bytes)
    kept = units.size(fit.reserved_bytes)
    answer = "yes" if fit.is_enough else "no"
    yield f"Fits {capacity}, with {kept} kept free: {answer}"
    if fit.is_enough:
        return
    if not fit.changes:
        yield "No change that is known here makes it fit: take a smaller model."
        return
    yield "Change first:" if fit.would_fit else "Not even with all of these:"
    for change in fit.changes:
        needed = units.size(change.peak_bytes)
        yield f"  {change.options}: {change.words}; then {needed}"

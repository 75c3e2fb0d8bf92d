"""What the calculator says of a model and a plan: figures, and how they are shown.

Every text is ready to show. Names come from descriptions: views escape them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from warpbook_monitors import units
from warpbook_monitors.model_memory.description import Model, Stored
from warpbook_monitors.model_memory.fit import Fit, as_sold, fit_of
from warpbook_monitors.model_memory.plan import Plan, check_plan, stored_in
from warpbook_monitors.model_memory.stage import StageMemory
from warpbook_monitors.model_memory.stages import stage_memories
from warpbook_monitors.plain_text import shortened

_MOST_NAME = 40
#: what GPUs hold at the peak, with the letter that a terminal draws it with
_LETTERS = {
    "weights": "W",
    "gradients": "G",
    "optimizer states": "S",
    "master weights": "M",
    "activations": "A",
    "cache of keys and values": "C",
    "CUDA graphs": "G",
    "temporaries": "T",
}


class Part(msgspec.Struct, frozen=True):
    """Parameters of one kind of layers in one block, all repetitions together."""

    block: str
    kind: str
    times: int
    parameters: int


class ModelMemory(msgspec.Struct, frozen=True):
    """What a model needs, on each stage of the plan.

    Attributes:
        name: of the model.
        source: of its figures.
        parameters: of the whole model.
        parts: the same by name of a block and kind of layer.
        stored_as: what weights are served in, or frozen beside adapters.
        batch: of a micro-batch on a GPU.
        tokens: of a sequence.
        side: of an image in pixels; 0 for text.
        gpus: of the whole plan.
        stages: what a GPU of each needs.
        fit: None where no capacity was given.
    """

    name: str
    source: str
    parameters: int
    parts: list[Part]
    stored_as: Stored
    batch: int
    tokens: int
    side: int
    gpus: int
    stages: list[StageMemory]
    fit: Fit | None


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


class MemoryView(msgspec.Struct, frozen=True):
    """The heaviest GPU of a plan, from its title to what to change."""

    title: str
    #: which GPU it is; empty where there is one
    where: str
    rows: list[Row]
    #: of the bar: the peak, and of how much it is where that is known
    bar_title: str
    #: they sum to the peak
    segments: list[Segment]
    peak_bytes: int
    #: None where no GPU was given
    capacity_bytes: int | None
    #: whether it fits, and what to change first; empty where no GPU was given
    fit: list[str]

    @property
    def scale_bytes(self) -> int:
        """Return what the whole length of the bar stands for."""
        return max(self.peak_bytes, self.capacity_bytes or 0, 1)


def model_memory(
    model: Model, plan: Plan, capacity_bytes: int | None = None
) -> ModelMemory:
    """Compute the memory of training, or of inference.

    Raises:
        PlanError: an option does not fit the model.
    """
    check_plan(model, plan)
    return ModelMemory(
        name=model.name,
        source=model.source,
        parameters=model.parameters,
        parts=list(_parts(model)),
        stored_as=stored_in(model, plan),
        batch=plan.batch,
        tokens=plan.tokens or model.tokens,
        side=plan.side or model.side,
        gpus=plan.tensor * plan.pipeline * plan.data,
        stages=stage_memories(model, plan),
        fit=None if capacity_bytes is None else fit_of(model, plan, capacity_bytes),
    )


def _parts(model: Model) -> Iterator[Part]:
    """Yield them; layers that alternate are blocks of the same names."""
    times, counts = Counter[str](), Counter[tuple[str, str]]()
    for block in model.blocks:
        times[block.name] += block.times
        for layer in block.layers:
            counts[block.name, layer.kind] += block.times * layer.parameters()
    for (name, kind), parameters in counts.items():
        if parameters:
            yield Part(name, kind, times[name], parameters)


def view_of_memory(memory: ModelMemory, plan: Plan) -> MemoryView:
    stage = max(memory.stages, key=lambda stage: stage.peak_bytes)
    peak_bytes = stage.peak_bytes
    capacity = None if memory.fit is None else memory.fit.capacity_bytes
    title = f"At the peak: {units.size(peak_bytes)}"
    if capacity is not None:
        title += f" of {units.size(capacity)}, {units.share(peak_bytes / capacity)}"
    held = {label: size_bytes for label, size_bytes in stage.held.items() if size_bytes}
    shares = units.parts_of_one(
        [size_bytes / max(peak_bytes, 1) for size_bytes in held.values()]
    )
    segments = [
        Segment(
            *(label, _LETTERS[label], size_bytes, units.size(size_bytes)),
            units.share(share),
        )
        for (label, size_bytes), share in zip(held.items(), shares, strict=True)
    ]
    return MemoryView(
        title=_title(memory, plan),
        where=_where(memory, stage.stage),
        rows=list(_rows(stage)),
        bar_title=title,
        segments=segments,
        peak_bytes=peak_bytes,
        capacity_bytes=capacity,
        fit=[] if memory.fit is None else list(_fit_lines(memory.fit)),
    )


def _title(memory: ModelMemory, plan: Plan) -> str:
    work = f"{memory.batch:,} × {memory.tokens:,} tokens"
    if memory.side:
        work = f"{memory.batch:,} images of {memory.side:,} × {memory.side:,}"
    if plan.inference:
        weights = f"weights in {memory.stored_as}"
        chunk = f", {plan.chunk:,} tokens at once" if plan.chunk else ""
        return f"Inference of {work}, {weights}, cache in {plan.kv_dtype}{chunk}"
    words = [f"Training on {work}", f"{plan.precision} precision"]
    words.append(plan.optimizer + (" (fused)" if plan.fused else ""))
    if plan.lora:
        where = "attention" if plan.lora_targets == "attention" else "linear layers"
        words.append(f"LoRA of rank {plan.lora} on {where}, rest {memory.stored_as}")
    if plan.checkpoint != "none":
        words.append(f"{plan.checkpoint} checkpointing")
    if not plan.flash:
        words.append("no FlashAttention")
    if not plan.fused_norms:
        words.append("norms in Python")
    return ", ".join(words)


def _where(memory: ModelMemory, stage: int) -> str:
    stages = len(memory.stages)
    if stages > 1:
        return (
            f"On each GPU of stage {stage + 1} of {stages}, the heaviest; "
            f"{memory.gpus:,} GPUs in all:"
        )
    return f"On each of {memory.gpus:,} GPUs:" if memory.gpus > 1 else ""


def _rows(stage: StageMemory) -> Iterator[Row]:
    for label, size_bytes in stage.needed.items():
        flight = ""
        if label == "activations" and stage.micro_batches > 1:
            flight = f", {stage.micro_batches} micro-batches in flight"
        if size_bytes:
            yield Row(label + flight, units.size(size_bytes))
        if label == "activations":
            for kind, of_kind in stage.activations.items():
                yield Row(kind, units.size(of_kind), is_part=True)
    moment = ", in the optimizer" if stage.activations else ""
    if stage.peak_block is not None:
        block = shortened(stage.peak_block, _MOST_NAME)
        moment = f", in the backward pass of: {block}"
    yield Row(f"peak{moment}", units.size(stage.peak_bytes))


def _fit_lines(fit: Fit) -> Iterator[str]:
    kept = units.size(fit.reserved_bytes)
    answer = "yes" if fit.is_enough else "no"
    size, sold = units.size(fit.capacity_bytes), as_sold(fit.capacity_bytes)
    whole = f"{size} ({sold})" if sold else size
    yield f"Fits {whole}, with {kept} kept free: {answer}"
    if fit.is_enough:
        return
    if not fit.changes:
        yield "No known change makes it fit: choose a smaller model."
        return
    yield "Change first:" if fit.would_fit else "Not even with all of these:"
    for change in fit.changes:
        needed = units.size(change.peak_bytes)
        yield f"  {change.options}: {change.words}; then {needed}"

"""All that the calculator says of a model and a plan."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from warpbook_monitors.model_memory.description import Model
from warpbook_monitors.model_memory.fit import Fit, fit_of
from warpbook_monitors.model_memory.inference import InferenceMemory, inference_memory
from warpbook_monitors.model_memory.plan import Plan, check_plan
from warpbook_monitors.model_memory.training import StageMemory, training_memory


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
        parts: the same by block and kind of layer.
        batch: of a micro-batch on a GPU.
        tokens: of a sequence.
        side: of an image in pixels; 0 for text.
        gpus: of the whole plan.
        training: by stage; empty for inference.
        inference: by stage; empty for training.
        fit: None where no capacity was given.
    """

    name: str
    source: str
    parameters: int
    parts: tuple[Part, ...]
    batch: int
    tokens: int
    side: int
    gpus: int
    training: tuple[StageMemory, ...] = ()
    inference: tuple[InferenceMemory, ...] = ()
    fit: Fit | None = None


def model_memory(
    model: Model,
    plan: Plan,
    *,
    is_inference: bool = False,
    capacity_bytes: int | None = None,
    reserved_bytes: int = 0,
) -> ModelMemory:
    """Compute the memory of training, or of inference.

    Raises:
        PlanError: an option does not fit the model.
    """
    check_plan(model, plan)
    fit = None
    if capacity_bytes is not None:
        fit = fit_of(model, plan, is_inference, capacity_bytes, reserved_bytes)
    return ModelMemory(
        name=model.name,
        source=model.source,
        parameters=model.parameters,
        parts=tuple(_parts(model)),
        batch=plan.batch,
        tokens=plan.tokens or model.tokens,
        side=plan.side or model.side,
        gpus=plan.tensor * plan.pipeline * plan.data,
        training=() if is_inference else training_memory(model, plan),
        inference=inference_memory(model, plan) if is_inference else (),
        fit=fit,
    )


def _parts(model: Model) -> Iterator[Part]:
    for block in model.blocks:
        kinds: dict[str, int] = {}
        for layer in block.layers:
            kind = str(type(layer).__struct_config__.tag)
            kinds[kind] = kinds.get(kind, 0) + block.times * layer.parameters()
        for kind, parameters in kinds.items():
            if parameters:
                yield Part(block.name, kind, block.times, parameters)

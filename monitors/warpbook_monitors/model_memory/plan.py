"""How a model is trained or served: what the calculator is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple

import msgspec

from warpbook_monitors.errors import MonitorError
from warpbook_monitors.model_memory.description import Model, Stored
from warpbook_monitors.model_memory.layer import Few, NoneOrMore, Size
from warpbook_monitors.model_memory.layers import Experts


class PlanError(MonitorError):
    """Options that do not fit the model, or each other; the message says what to do."""


class Plan(msgspec.Struct, frozen=True):
    """What a model is trained or served with; `HELP` says what each field is."""

    batch: Few = 1
    tokens: Size | None = None
    side: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    flash: bool = True
    fused_norms: bool = True
    precision: Literal["fp32", "bf16", "mixed", "autocast"] = "mixed"
    optimizer: Literal["sgd", "momentum", "adam", "adam8bit"] = "adam"
    fused: bool = False
    checkpoint: Literal["none", "selective", "full"] = "none"
    micro_batches: Few = 1
    lora: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 0
    lora_targets: Literal["linear", "attention"] = "linear"
    tensor: Few = 1
    sequence_parallel: bool = False
    pipeline: Few = 1
    data: Few = 1
    zero: Literal[0, 1, 2, 3] = 0
    inference: bool = False
    dtype: Literal["auto", Stored] = "auto"
    kv_dtype: Literal["fp32", "bf16", "fp16", "fp8", "int8"] = "bf16"
    chunk: NoneOrMore = 0
    graphs: bool = False


#: by the field of the plan, as the command and a control in a notebook explain it
HELP = {
    "batch": "sequences or images of a micro-batch on a GPU; 1 if left out",
    "tokens": "tokens of a sequence; the model's own if left out",
    "side": "side of an image in pixels; the model's own if left out",
    "flash": "attention that keeps its scores",
    "fused_norms": "RMSNorms written in Python, as Transformers has them",
    "precision": "mixed: 16 bits with fp32 master weights; autocast: fp32 with "
    "torch.amp; bf16: all of it; fp32",
    "optimizer": "with its states; adam8bit is that of bitsandbytes",
    "fused": "an optimizer without temporaries",
    "checkpoint": (
        "activations that the backward pass recomputes: of each layer (full), or "
        "attention's scores (selective)"
    ),
    "micro_batches": "of a step, whose gradients are accumulated",
    "lora": "rank of LoRA's adapters, all other weights frozen; 0 for none. mixed: "
    "adapters in fp32, as peft makes them",
    "lora_targets": (
        "what has adapters: linear layers of attention and of MLPs, or of attention "
        "only"
    ),
    "tensor": "GPUs of tensor parallelism",
    "sequence_parallel": "sequence parallelism with --tp: it also splits tokens",
    "pipeline": "stages of a pipeline with the schedule 1F1B",
    "data": "GPUs of data parallelism",
    "zero": "stage of ZeRO among the GPUs of --dp",
    "inference": "serve the model instead of training it",
    "dtype": "of weights, with --lora of the frozen ones; auto: as published",
    "kv_dtype": "of cached keys and values",
    "chunk": "tokens of one forward pass at most (chunked prefill); 0 for all at once",
    "graphs": "decoding with CUDA graphs, which keep their memory",
}


class Option(NamedTuple):
    """A field of the plan as a person sets it, on a terminal or in a notebook."""

    field: str
    #: with its dashes; without them an argument's name in Python
    name: str
    label: str
    group: Literal["the work", "training", "several GPUs", "inference"]

    @property
    def is_negated(self) -> bool:
        """Whether it is set where the field is not."""
        return self.name.startswith("--no-")


OPTIONS = (
    Option("batch", "--batch", "Batch", "the work"),
    Option("tokens", "--sequence", "Sequence", "the work"),
    Option("side", "--image", "Image", "the work"),
    Option("flash", "--no-flash", "No FlashAttention", "the work"),
    Option("fused_norms", "--no-fused-norms", "No fused norms", "the work"),
    Option("inference", "--inference", "Inference", "the work"),
    Option("precision", "--precision", "Precision", "training"),
    Option("optimizer", "--optimizer", "Optimizer", "training"),
    Option("fused", "--fused", "Fused optimizer", "training"),
    Option("checkpoint", "--checkpoint", "Checkpointing", "training"),
    Option("micro_batches", "--micro-batches", "Micro-batches", "training"),
    Option("lora", "--lora", "LoRA rank", "training"),
    Option("lora_targets", "--lora-targets", "LoRA on", "training"),
    Option("tensor", "--tp", "Tensor parallel", "several GPUs"),
    Option("sequence_parallel", "--sp", "Sequence parallel", "several GPUs"),
    Option("pipeline", "--pp", "Pipeline stages", "several GPUs"),
    Option("data", "--dp", "Data parallel", "several GPUs"),
    Option("zero", "--zero", "ZeRO stage", "several GPUs"),
    Option("dtype", "--dtype", "Weights", "inference"),
    Option("kv_dtype", "--kv-dtype", "Keys and values", "inference"),
    Option("chunk", "--chunk", "Tokens of a pass", "inference"),
    Option("graphs", "--graphs", "CUDA graphs", "inference"),
)


def stored_in(model: Model, plan: Plan) -> Stored:
    """Return what the weights are stored in."""
    return model.stored_as if plan.dtype == "auto" else plan.dtype


def options_of(plan: Plan, before: Plan | None = None) -> str:
    """Write the options that make a plan of another, or of the defaults."""
    before = before or Plan()
    words = []
    for option in OPTIONS:
        value = getattr(plan, option.field)
        if value == getattr(before, option.field):
            continue
        if isinstance(value, bool):
            is_set = value != option.is_negated
            words.append(option.name if is_set else f"without {option.name}")
        else:
            words.append(f"{option.name} {value}")
    return " ".join(words)


def check_plan(model: Model, plan: Plan) -> None:
    """Refuse what the model can't be trained or served with.

    Raises:
        PlanError: an option does not fit.
    """
    problem = next(_problems(model, plan), None)
    if problem is not None:
        raise PlanError(problem)


def _problems(model: Model, plan: Plan) -> Iterator[str]:
    name, tokens = model.name, plan.tokens or model.tokens
    is_other = model.fixed_tokens and tokens != model.tokens
    if plan.tokens is not None and (not model.is_text or is_other):
        yield f"{name} reads images: leave out --sequence"
    if plan.tokens is not None and 0 < model.most_tokens < plan.tokens:
        yield (
            f"{name} has positions for {model.most_tokens} tokens: "
            f"--sequence {model.most_tokens} or less"
        )
    if plan.side is not None and not model.side:
        yield f"{name} reads no images: leave out --image"
    if plan.side not in (None, model.side) and model.fixed_tokens:
        side = f"{model.side} pixels"
        yield f"{name} has positions for images of {side}: leave out --image"
    if plan.tensor > 1 and not model.is_split_by_tensor:
        words = "layers that tensor parallelism splits"
        yield f"{name} has no {words}: use --dp with --zero"
    for layer in model.attentions:
        if layer.heads % plan.tensor:
            heads = f"{layer.heads} heads"
            yield f"{heads} can't be split across --tp {plan.tensor}: choose a divisor"
    if plan.sequence_parallel and plan.tensor == 1:
        yield "--sp splits tokens among the GPUs of --tp: set --tp 2 or more"
    depth = sum(block.times for block in model.blocks if not block.edge)
    if plan.pipeline > max(depth, 1):
        layers = f"the {depth} layers of {name}"
        yield f"--pp {plan.pipeline} is more than {layers}: use at most {depth}"
    if stored_in(model, plan) == "mxfp4" and not any(
        isinstance(layer, Experts) for layer in model.layers
    ):
        yield f"mxfp4 is only for experts, and {name} has none: use --dtype int4"
    if plan.lora:
        yield from _problems_with_adapters(model, plan)
    if plan.zero and plan.data == 1:
        yield "--zero splits among the GPUs of --dp: set --dp 2 or more"


def _problems_with_adapters(model: Model, plan: Plan) -> Iterator[str]:
    if plan.inference:
        yield "--lora is for training: leave it out with --inference"
    if plan.precision not in ("bf16", "mixed"):
        yield f"--lora with --precision {plan.precision} is not supported: use mixed"
    if plan.tensor > 1:
        yield "--lora with --tp is not supported: use --dp with --zero"
    if not any(layer.linears() for layer in model.layers):
        yield f"{model.name} has no linear layers that take adapters: leave out --lora"

"""How a model is trained or served: what the calculator is asked."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from warpbook_monitors.errors import MonitorError
from warpbook_monitors.model_memory.description import Model
from warpbook_monitors.model_memory.layer import Few, Pass, Size
from warpbook_monitors.model_memory.layers import Attention, Logits

Precision = Literal["fp32", "bf16", "mixed", "autocast"]
Optimizer = Literal["sgd", "momentum", "adam", "adam8bit"]
Checkpoint = Literal["none", "selective", "full"]
#: bits of a weight or of a cached element in inference
BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4}


class PlanError(MonitorError):
    """Options that do not fit the model, or each other; the message says what to do."""


class Widths(msgspec.Struct, frozen=True):
    """Bytes for each parameter and element of a precision.

    Attributes:
        weight: of a weight.
        gradient: of a gradient.
        state: of an element of an optimizer state.
        master: of the fp32 copy of a weight.
        cast: of the copy of a weight that autocast makes.
        element: of an activation.
        norm: of an element that a norm keeps.
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
WIDTHS: dict[Precision, Widths] = {
    "fp32": Widths(4, 4, 4, 0, 0, 4, 4),
    "bf16": Widths(2, 2, 2, 0, 0, 2, 2),
    "mixed": Widths(2, 2, 4, 4, 0, 2, 2),
    "autocast": Widths(4, 4, 4, 0, 2, 2, 4),
}


class Plan(msgspec.Struct, frozen=True):
    """What training and inference are done with.

    Attributes:
        batch: sequences or images of a micro-batch on a GPU.
        tokens: of a sequence; None for the model's own.
        side: of an image in pixels; None for the model's own.
        precision: of training.
        optimizer: of training.
        fused: the optimizer has no temporaries.
        checkpoint: which activations are computed anew in the backward pass.
        flash: FlashAttention.
        tensor: GPUs of tensor parallelism.
        sequence_parallel: the GPUs of tensor parallelism split tokens between them.
        pipeline: stages.
        micro_batches: of a step, in each pipeline, or with accumulated gradients.
        data: GPUs of data parallelism.
        zero: stage of ZeRO.
        dtype: of weights and activations in inference.
        kv_dtype: of cached keys and values.
    """

    batch: Few = 1
    tokens: Size | None = None
    side: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    precision: Precision = "mixed"
    optimizer: Optimizer = "adam"
    fused: bool = False
    checkpoint: Checkpoint = "none"
    flash: bool = True
    tensor: Few = 1
    sequence_parallel: bool = False
    pipeline: Few = 1
    micro_batches: Few = 1
    data: Few = 1
    zero: Literal[0, 1, 2, 3] = 0
    dtype: Literal["fp32", "bf16", "fp16", "int8", "int4"] = "bf16"
    kv_dtype: Literal["fp32", "bf16", "fp16", "fp8", "int8"] = "bf16"

    def training_pass(self, model: Model) -> Pass:
        """Give what a micro-batch of training is computed with."""
        widths = WIDTHS[self.precision]
        return Pass(
            self.batch,
            self.tokens or model.tokens,
            self.side or model.side,
            widths.element,
            widths.norm,
            self.flash,
        )

    def inference_pass(self, model: Model) -> Pass:
        """Give what a batch of inference is computed with: 16 bits, or fp32."""
        element = 4 if self.dtype == "fp32" else 2
        return Pass(
            self.batch,
            self.tokens or model.tokens,
            self.side or model.side,
            element,
            element,
            self.flash,
        )


def check_plan(model: Model, plan: Plan) -> None:
    """Refuse what the model can't be trained or served with.

    Raises:
        PlanError: an option does not fit.
    """
    _check_sizes(model, plan)
    if plan.tensor > 1 and not model.is_split_by_tensor:
        raise PlanError(
            f"{model.name} has no layers that tensor parallelism splits: "
            "use --dp with --zero"
        )
    for layer in model.layers_of(Attention):
        if layer.heads % plan.tensor:
            raise PlanError(
                f"{layer.heads} heads can't be split among --tp {plan.tensor}: "
                "take a divisor"
            )
    if plan.sequence_parallel and plan.tensor == 1:
        raise PlanError("--sp splits tokens among the GPUs of --tp: set --tp 2 or more")
    depth = sum(block.times for block in model.blocks if not block.edge)
    if plan.pipeline > max(depth, 1):
        raise PlanError(
            f"--pp {plan.pipeline} is more than the {depth} layers of {model.name}: "
            f"take at most {depth}"
        )
    if plan.zero and plan.data == 1:
        raise PlanError("--zero splits among the GPUs of --dp: set --dp 2 or more")


def _check_sizes(model: Model, plan: Plan) -> None:
    is_text = bool(model.layers_of(Attention) or model.layers_of(Logits))
    if plan.tokens is not None:
        if not is_text or (model.fixed_tokens and plan.tokens != model.tokens):
            raise PlanError(f"{model.name} takes images: leave out --sequence")
        if model.most_tokens and plan.tokens > model.most_tokens:
            raise PlanError(
                f"{model.name} has positions for {model.most_tokens} tokens: "
                f"--sequence {model.most_tokens} or less"
            )
    if plan.side is not None:
        if not model.side:
            raise PlanError(f"{model.name} reads no images: leave out --image")
        if model.fixed_tokens and plan.side != model.side:
            raise PlanError(
                f"{model.name} has positions for images of {model.side} pixels: "
                "leave out --image"
            )

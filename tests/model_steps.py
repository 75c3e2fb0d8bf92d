"""Steps of training in plain PyTorch, each with the description that should match it.

Models have random weights. Deep ones have fewer layers, here and in the description.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import msgspec
import torch
from torch import nn
from torch.nn import functional as F

from tests import torch_encoders, torch_models
from warpbook_monitors.model_memory.description import Model
from warpbook_monitors.model_memory.models import read_model
from warpbook_monitors.model_memory.plan import Plan

DTYPES = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "mixed": torch.bfloat16,
    "autocast": torch.float32,
}


def cut(name: str, layers: int) -> Model:
    """A known model with fewer layers."""
    model = read_model(name)
    blocks = tuple(
        block if block.edge else msgspec.structs.replace(block, times=layers)
        for block in model.blocks
    )
    return msgspec.structs.replace(model, blocks=blocks)


def without_dropout(model: Model) -> Model:
    """The same layers, none of which drops anything."""
    blocks = tuple(
        msgspec.structs.replace(
            block,
            layers=tuple(
                msgspec.structs.replace(layer, dropout=False)
                if getattr(layer, "dropout", False)
                else layer
                for layer in block.layers
            ),
        )
        for block in model.blocks
    )
    return msgspec.structs.replace(model, blocks=blocks)


class Stepping:
    """A model, its optimizer, and a batch: what a step of training needs."""

    def __init__(self, module: nn.Module, plan: Plan, batch: torch.Tensor) -> None:
        self.module, self.plan, self.batch = module, plan, batch
        self.masters: list[torch.Tensor] = []
        parameters = list(module.parameters())
        if plan.precision == "mixed":
            self.masters = [
                parameter.detach().float().requires_grad_() for parameter in parameters
            ]
        self.optimizer = optimizer(plan, self.masters or parameters)

    def loss(self) -> torch.Tensor:
        """The loss of a batch; the logits are held, as a caller does."""
        is_cast = self.plan.precision == "autocast"
        device = self.batch.device.type
        with torch.autocast(device, torch.bfloat16) if is_cast else nullcontext():
            self.logits = self.module(self.batch)
            outputs = self.logits.shape[-1]
            labels = torch.zeros(
                self.logits.numel() // outputs,
                dtype=torch.long,
                device=self.batch.device,
            )
            return F.cross_entropy(self.logits.view(-1, outputs).float(), labels)

    def step(self) -> None:
        """Forward, backward, and the optimizer."""
        self.loss().backward()
        del self.logits
        for master, parameter in zip(
            self.masters, self.module.parameters(), strict=False
        ):
            master.grad = parameter.grad.float()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.module.zero_grad(set_to_none=True)


def optimizer(plan: Plan, parameters: list) -> torch.optim.Optimizer:
    if plan.optimizer == "adam":
        way = {"fused": True} if plan.fused else {"foreach": True}
        return torch.optim.AdamW(parameters, lr=1e-5, **way)
    momentum = 0.9 if plan.optimizer == "momentum" else 0.0
    return torch.optim.SGD(parameters, lr=1e-5, momentum=momentum, fused=True)


def made(
    make: Callable[[], nn.Module], model: Model, plan: Plan, device: str
) -> Stepping:
    """Make the module, its optimizer and a batch on a device."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(DTYPES[plan.precision])
    try:
        with torch.device(device):
            module = make()
            if model.side:
                batch = torch.randn(plan.batch, 3, model.side, model.side)
            else:
                sizes = (plan.batch, plan.tokens or model.tokens)
                batch = torch.randint(0, 1000, sizes)
            return Stepping(module, plan, batch)
    finally:
        torch.set_default_dtype(default)


def gpt2(**options: Any) -> Callable[[], nn.Module]:
    return lambda: torch_models.gpt2(**options)


def llama(*sizes: int, **options: Any) -> Callable[[], nn.Module]:
    return lambda: torch_models.llama(*sizes, **options)


def llama_3(layers: int, **options: bool) -> Callable[[], nn.Module]:
    return llama(layers, 8, 14336, 128256, **options)


def llama_2(layers: int, **options: bool) -> Callable[[], nn.Module]:
    return llama(layers, 32, 11008, 32000, **options)


CASES = {
    "GPT-2, bf16": (
        gpt2(dropout=0.0),
        without_dropout(read_model("gpt2")),
        Plan(batch=16, precision="bf16", fused=True),
    ),
    "GPT-2, bf16, dropout": (
        gpt2(dropout=0.1),
        read_model("gpt2"),
        Plan(batch=16, precision="bf16", fused=True),
    ),
    "GPT-2, bf16, dropout, scores": (
        gpt2(dropout=0.1, flash=False),
        read_model("gpt2"),
        Plan(batch=8, precision="bf16", fused=True, flash=False),
    ),
    "GPT-2, fp32": (
        gpt2(dropout=0.0),
        without_dropout(read_model("gpt2")),
        Plan(batch=8, precision="fp32"),
    ),
    "GPT-2, autocast": (
        gpt2(dropout=0.0),
        without_dropout(read_model("gpt2")),
        Plan(batch=16, precision="autocast"),
    ),
    "Llama 3 8B, 4 layers, bf16": (
        llama_3(4),
        cut("llama-3-8b", 4),
        Plan(tokens=4096, precision="bf16", fused=True),
    ),
    "Llama 3 8B, 4 layers, short, Adam by foreach": (
        llama_3(4),
        cut("llama-3-8b", 4),
        Plan(tokens=512, precision="bf16"),
    ),
    "Llama 2 7B, 8 layers, master weights": (
        llama_2(8),
        cut("llama-2-7b", 8),
        Plan(tokens=512, precision="mixed", fused=True),
    ),
    "Llama 2 7B, 8 layers, SGD, long": (
        llama_2(8),
        cut("llama-2-7b", 8),
        Plan(batch=4, tokens=4096, precision="bf16", optimizer="sgd"),
    ),
    "Llama 2 7B, 8 layers, SGD, long, checkpoints": (
        llama_2(8, recompute=True),
        cut("llama-2-7b", 8),
        Plan(
            batch=4,
            tokens=4096,
            precision="bf16",
            optimizer="sgd",
            checkpoint="full",
        ),
    ),
    "ResNet-50, fp32": (
        torch_models.resnet50,
        read_model("resnet-50"),
        Plan(batch=128, precision="fp32", optimizer="momentum"),
    ),
    "ViT-B/16, bf16": (
        torch_models.VisionTransformer,
        read_model("vit-b-16"),
        Plan(batch=128, precision="bf16", fused=True),
    ),
    "GPT-2 XL, 16 layers, bf16, dropout": (
        gpt2(layers=16, hidden=1600, heads=25),
        cut("gpt2-xl", 16),
        Plan(batch=4, precision="bf16", fused=True),
    ),
    "Mistral 7B, 4 layers, bf16": (
        llama(4, 8, 14336, 32000),
        cut("mistral-7b", 4),
        Plan(batch=2, tokens=4096, precision="bf16", fused=True),
    ),
    "Mixtral 8x7B, 1 layer, bf16": (
        llama(1, 8, 14336, 32000, experts=8),
        cut("mixtral-8x7b", 1),
        Plan(batch=2, tokens=4096, precision="bf16", fused=True),
    ),
    "Qwen2 7B, 3 layers, bf16": (
        llama(3, 4, 18944, 152064, hidden=3584, bias=True),
        cut("qwen2-7b", 3),
        Plan(tokens=4096, precision="bf16", fused=True),
    ),
    "BERT base, bf16, dropout": (
        torch_encoders.Bert,
        read_model("bert-base"),
        Plan(batch=64, precision="bf16", fused=True),
    ),
    "T5 base, bf16, dropout, scores": (
        torch_encoders.T5,
        read_model("t5-base"),
        Plan(batch=16, precision="bf16", fused=True, flash=False),
    ),
    "ResNet-101, fp32": (
        lambda: torch_models.resnet50(third=23),
        read_model("resnet-101"),
        Plan(batch=64, precision="fp32", optimizer="momentum"),
    ),
}

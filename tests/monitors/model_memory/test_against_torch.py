"""Formulas against PyTorch: parameters of modules, and what autograd keeps."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from tests import torch_encoders, torch_models
from warpbook_monitors.model_memory import layers
from warpbook_monitors.model_memory.attentions import Attention
from warpbook_monitors.model_memory.layer import Adapters, Layer, Pass
from warpbook_monitors.model_memory.models import read_model
from warpbook_monitors.model_memory.plan import Plan
from warpbook_monitors.model_memory.stages import stage_memories


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("gpt2", torch_models.gpt2),
        ("llama-3-8b", lambda: torch_models.llama(32, 8, 14336, 128256)),
        ("resnet-50", torch_models.resnet50),
        ("vit-b-16", torch_models.VisionTransformer),
        ("bert-base", torch_encoders.Bert),
        ("t5-base", torch_encoders.T5),
        ("resnet-101", lambda: torch_models.resnet50(third=23)),
        ("mistral-7b", lambda: torch_models.llama(32, 8, 14336, 32000)),
        ("mixtral-8x7b", lambda: torch_models.llama(32, 8, 14336, 32000, experts=8)),
        (
            "qwen2-7b",
            lambda: torch_models.llama(28, 4, 18944, 152064, hidden=3584, bias=True),
        ),
    ],
)
def test_parameters_are_those_of_a_module_of_these_shapes(
    name: str, make: Callable[[], nn.Module]
) -> None:
    with torch.device("meta"):
        module = make()
    counted = sum(parameter.numel() for parameter in module.parameters())
    assert read_model(name).parameters == counted


def kept_bytes(run: Callable[[], torch.Tensor], module: nn.Module) -> int:
    """Bytes of all that autograd keeps, but for parameters and buffers."""
    own = [*module.parameters(), *module.buffers()]
    known = {tensor.untyped_storage()._cdata for tensor in own}
    kept: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in known:
            kept[storage._cdata] = storage
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        # what follows keeps it, or doesn't
        result = run()
    assert result.requires_grad
    return sum(storage.nbytes() for storage in kept.values())


TEXT = Pass(2, 64, 0, 4, 4, False)
FLASH = Pass(2, 64, 0, 4, 4, True)


@pytest.mark.parametrize(
    ("layer", "module", "on"),
    [
        (layers.Norm(128, bias=True), lambda: nn.LayerNorm(128), TEXT),
        (layers.Mlp(128, 512, bias=True), lambda: torch_models.plain_mlp(128), TEXT),
        (
            layers.Mlp(128, 512, activation="relu"),
            lambda: nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 128)),
            TEXT,
        ),
        (
            layers.Mlp(128, 320, activation="silu", gated=True),
            lambda: torch_models.Gated(128, 320),
            TEXT,
        ),
        (
            Attention(128, 4, 4, 32, bias=True),
            lambda: torch_models.Attention(128, 4, 4, True),
            FLASH,
        ),
        (
            Attention(128, 4, 4, 32),
            lambda: torch_models.Attention(128, 4, 4, False, rotary=True),
            FLASH,
        ),
    ],
    ids=["norm", "mlp", "relu", "gated", "flash", "rotary"],
)
def test_a_layer_keeps_what_autograd_keeps(
    layer: Layer, module: Callable[[], nn.Module], on: Pass
) -> None:
    made = module()
    x = torch.randn(2, 64, 128, requires_grad=True)
    formula = layer.needs(on).kept_bytes
    # rotary positions keep their angles, which all layers could share
    angles = 2 * 2 * 64 * 32 * 4 if getattr(made, "rotary", False) else 0
    assert kept_bytes(lambda: made(x), made) == formula + angles


class Adapted(nn.Module):
    """A frozen linear layer, and its adapter of rank 8 as peft computes it."""

    def __init__(self, base: nn.Linear, dtype: torch.dtype) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Linear(base.in_features, 8, bias=False, dtype=dtype)
        self.b = nn.Linear(8, base.out_features, bias=False, dtype=dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = self.b(self.a(x.to(self.a.weight.dtype)))
        return (self.base(x) + wide).to(x.dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("only_attention", [False, True])
@pytest.mark.parametrize(
    ("layer", "make"),
    [
        (
            layers.Mlp(128, 320, activation="silu", gated=True),
            lambda: torch_models.Gated(128, 320),
        ),
        (Attention(128, 4, 4, 32), lambda: torch_models.Attention(128, 4, 4, False)),
    ],
    ids=["mlp", "attention"],
)
def test_a_layer_keeps_what_its_adapters_read(
    layer: Layer,
    make: Callable[[], nn.Module],
    only_attention: bool,
    dtype: torch.dtype,
) -> None:
    made = make().to(torch.bfloat16).requires_grad_(False)
    adapters = Adapters(8, dtype.itemsize, only_attention)
    if layer.adapter_parameters(adapters):
        for name, part in list(made.named_children()):
            if isinstance(part, nn.Linear):
                setattr(made, name, Adapted(part, dtype))
    x = torch.randn(2, 64, 128, dtype=torch.bfloat16, requires_grad=True)
    trained = sum(part.numel() for part in made.parameters() if part.requires_grad)
    assert trained == layer.adapter_parameters(adapters)
    on = Pass(2, 64, 0, 2, 2, True, adapters=adapters)
    assert kept_bytes(lambda: made(x), made) == layer.needs(on).kept_bytes


def test_a_norm_in_python_keeps_more() -> None:
    weight = nn.Parameter(torch.ones(128, dtype=torch.bfloat16))
    holder = nn.ParameterList([weight])

    def normed(x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return weight * wide.to(x.dtype)

    x = torch.randn(2, 64, 128, dtype=torch.bfloat16, requires_grad=True)
    for adapters in (None, Adapters(8, 2)):
        on = Pass(2, 64, 0, 2, 2, True, is_fused_norm=False, adapters=adapters)
        kept = layers.Norm(128).needs(on).kept_bytes
        assert kept_bytes(lambda: normed(x), holder) == kept
        weight.requires_grad_(False)


def test_attention_without_flash_keeps_its_scores() -> None:
    module = torch_models.Attention(128, 4, 4, True, flash=False)
    x = torch.randn(2, 64, 128, requires_grad=True)
    needs = Attention(128, 4, 4, 32).needs(TEXT)
    mask = 64 * 64
    kept = kept_bytes(lambda: module(x), module)
    assert kept == needs.kept_bytes + mask
    assert needs.core_bytes == 4 * 2 * 4 * 64 * 64


def test_experts_keep_what_autograd_keeps() -> None:
    module = torch_models.Mixture(128, 320, experts=4, active=2)
    x = torch.randn(2, 64, 128, requires_grad=True)
    layer = layers.Experts(128, 320, experts=4, active=2)
    counted = sum(parameter.numel() for parameter in module.parameters())
    assert layer.parameters() == counted
    kept = kept_bytes(lambda: module(x), module)
    # which token went where is left out
    assert layer.needs(TEXT).kept_bytes == pytest.approx(kept, rel=0.01)


def test_a_resnet_keeps_what_autograd_keeps() -> None:
    with torch.device("meta"):
        module = torch_models.resnet50()
        images = torch.randn(2, 3, 224, 224)
    plan = Plan(batch=2, precision="fp32", optimizer="sgd")
    [stage] = stage_memories(read_model("resnet-50"), plan)
    kept = kept_bytes(lambda: module(images), module)
    # statistics of batch norms are left out
    assert stage.needed["activations"] == pytest.approx(kept, rel=0.01)

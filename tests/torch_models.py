"""Models in plain PyTorch, which the memory calculator is compared with.

They share nothing with its descriptions: each figure is written a second time.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class Attention(nn.Module):
    """Causal attention, by one kernel or with its scores as a tensor."""

    def __init__(
        self,
        hidden: int,
        heads: int,
        kv_heads: int,
        bias: bool,
        flash: bool = True,
        dropout: float = 0.0,
        rotary: bool = False,
        causal: bool = True,
        output_bias: bool | None = None,
    ) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, hidden // heads
        self.flash, self.dropout = flash, dropout
        self.rotary, self.causal = rotary, causal
        self.query = nn.Linear(hidden, heads * self.size, bias=bias)
        self.key = nn.Linear(hidden, kv_heads * self.size, bias=bias)
        self.value = nn.Linear(hidden, kv_heads * self.size, bias=bias)
        output_bias = bias if output_bias is None else output_bias
        self.output = nn.Linear(heads * self.size, hidden, bias=output_bias)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = x.shape
        query, key, value = (
            product(x).view(batch, tokens, -1, self.size).transpose(1, 2)
            for product in (self.query, self.key, self.value)
        )
        if self.rotary:
            query, key = rotated(query), rotated(key)
        if self.flash:
            mixed = F.scaled_dot_product_attention(
                query,
                key,
                value,
                dropout_p=self.dropout,
                is_causal=self.causal,
                enable_gqa=self.kv_heads != self.heads,
            )
        else:
            scores = query @ key.transpose(-1, -2) * self.size**-0.5
            later = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device)
            scores = scores.masked_fill(later.triu(1), float("-inf"))
            mixed = self.drop(F.softmax(scores, -1)) @ value
        joined = mixed.transpose(1, 2).reshape(batch, tokens, -1)
        return self.drop(self.output(joined))


def rotated(x: torch.Tensor) -> torch.Tensor:
    """Rotary positions; as good as any angles for memory."""
    tokens, size = x.shape[-2:]
    steps = torch.arange(tokens, device=x.device)[:, None]
    angles = steps / torch.arange(1, size + 1, device=x.device)
    first, second = x.chunk(2, -1)
    turned = torch.cat((-second, first), -1)
    return x * angles.cos().to(x.dtype) + turned * angles.sin().to(x.dtype)


class Gated(nn.Module):
    """Llama's three products."""

    def __init__(self, hidden: int, intermediate: int) -> None:
        super().__init__()
        self.gate = nn.Linear(hidden, intermediate, bias=False)
        self.up = nn.Linear(hidden, intermediate, bias=False)
        self.down = nn.Linear(intermediate, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Mixture(nn.Module):
    """Mixtral's experts; tokens are sorted by expert, as Transformers does it."""

    def __init__(
        self, hidden: int, intermediate: int, experts: int, active: int
    ) -> None:
        super().__init__()
        self.router = nn.Linear(hidden, experts, bias=False)
        self.experts = nn.ModuleList(
            Gated(hidden, intermediate) for _ in range(experts)
        )
        self.active = active

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.view(-1, x.shape[-1])
        shares = F.softmax(self.router(flat).float(), -1)
        weights, chosen = shares.topk(self.active, -1)
        order = chosen.flatten().argsort()
        counts = chosen.flatten().bincount(minlength=len(self.experts)).tolist()
        parts = flat[order // self.active].split(counts)
        pairs = zip(self.experts, parts, strict=True)
        given = torch.cat([expert(part) for expert, part in pairs])
        given = given * weights.flatten()[order, None].to(x.dtype)
        return given[order.argsort()].view(*chosen.shape, -1).sum(1).view_as(x)


def plain_mlp(hidden: int, dropout: float = 0.0) -> nn.Module:
    return nn.Sequential(
        nn.Linear(hidden, 4 * hidden),
        nn.GELU(),
        nn.Linear(4 * hidden, hidden),
        nn.Dropout(dropout),
    )


class Layer(nn.Module):
    """A pre-norm layer."""

    def __init__(self, hidden: int, attention: nn.Module, inner: nn.Module) -> None:
        super().__init__()
        is_llama = isinstance(inner, Gated | Mixture)
        norm = nn.RMSNorm if is_llama else nn.LayerNorm
        self.first, self.second = norm(hidden), norm(hidden)
        self.attention, self.inner = attention, inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.first(x))
        return x + self.inner(self.second(x))


class Decoder(nn.Module):
    """GPT-2 or Llama."""

    def __init__(
        self,
        layers: list[Layer],
        hidden: int,
        vocabulary: int,
        positions: int = 0,
        dropout: float = 0.0,
        recompute: bool = False,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, hidden)
        self.positions = nn.Embedding(positions, hidden) if positions else None
        self.drop = nn.Dropout(dropout)
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(hidden) if positions else nn.RMSNorm(hidden)
        self.head = nn.Linear(hidden, vocabulary, bias=False)
        if positions:
            self.head.weight = self.tokens.weight
        self.recompute = recompute

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids)
        if self.positions is not None:
            x = x + self.positions.weight[: ids.shape[1]]
        x = self.drop(x)
        for layer in self.layers:
            if self.recompute:
                x = checkpoint(layer, x, use_reentrant=False)
            else:
                x = layer(x)
        return self.head(self.norm(x))


def gpt2(
    layers: int = 12,
    dropout: float = 0.1,
    flash: bool = True,
    hidden: int = 768,
    vocabulary: int = 50257,
    heads: int = 12,
) -> Decoder:
    return Decoder(
        [
            Layer(
                hidden,
                Attention(hidden, heads, heads, True, flash, dropout),
                plain_mlp(hidden, dropout),
            )
            for _ in range(layers)
        ],
        hidden,
        vocabulary,
        positions=1024,
        dropout=dropout,
    )


def llama(
    layers: int,
    kv_heads: int,
    intermediate: int,
    vocabulary: int,
    recompute: bool = False,
    hidden: int = 4096,
    bias: bool = False,
    experts: int = 0,
) -> Decoder:
    """Llama, and what differs from it in sizes; heads are of 128."""

    def inner() -> nn.Module:
        if experts:
            return Mixture(hidden, intermediate, experts, active=2)
        return Gated(hidden, intermediate)

    def attention() -> Attention:
        heads = hidden // 128
        return Attention(hidden, heads, kv_heads, bias, rotary=True, output_bias=False)

    return Decoder(
        [Layer(hidden, attention(), inner()) for _ in range(layers)],
        hidden,
        vocabulary,
        recompute=recompute,
    )


class VisionTransformer(nn.Module):
    """ViT-B/16."""

    def __init__(self, layers: int = 12) -> None:
        super().__init__()
        hidden = 768
        self.patches = nn.Conv2d(3, hidden, 16, 16)
        self.first = nn.Parameter(torch.zeros(1, 1, hidden))
        self.positions = nn.Parameter(torch.zeros(1, 197, hidden))
        self.layers = nn.Sequential(
            *(
                Layer(
                    hidden,
                    Attention(hidden, 12, 12, True, causal=False),
                    plain_mlp(hidden),
                )
                for _ in range(layers)
            )
        )
        self.norm = nn.LayerNorm(hidden)
        self.head = nn.Linear(hidden, 1000)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        first = self.first.expand(len(x), -1, -1)
        x = torch.cat((first, x), 1) + self.positions
        return self.head(self.norm(self.layers(x))[:, 0])


class Bottleneck(nn.Module):
    """A block of ResNet-50, with the stride in its 3 × 3 convolution."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            *_convolution(inputs, width, 1),
            nn.ReLU(inplace=True),
            *_convolution(width, width, 3, stride),
            nn.ReLU(inplace=True),
            *_convolution(width, outputs, 1),
        )
        self.side = (
            nn.Identity()
            if inputs == outputs
            else nn.Sequential(*_convolution(inputs, outputs, 1, stride))
        )
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        body = self.body(x)
        body += self.side(x)
        return self.relu(body)


def _convolution(
    inputs: int, outputs: int, kernel: int, stride: int = 1
) -> tuple[nn.Module, nn.Module]:
    return (
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
        nn.BatchNorm2d(outputs),
    )


def resnet50(third: int = 6) -> nn.Module:
    """ResNet-50, or ResNet-101 with 23 blocks in its third stage."""
    blocks: list[nn.Module] = []
    inputs = 64
    for width, depth, stride in (
        (64, 3, 1),
        (128, 4, 2),
        (256, third, 2),
        (512, 3, 2),
    ):
        for place in range(depth):
            blocks.append(Bottleneck(inputs, width, stride if place == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(
        *_convolution(3, 64, 7, 2),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2048, 1000),
    )

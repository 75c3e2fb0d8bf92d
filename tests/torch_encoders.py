"""BERT and T5 in plain PyTorch, which the memory calculator is compared with."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from tests.torch_models import Attention, plain_mlp


class BertLayer(nn.Module):
    """A post-norm layer."""

    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(
            hidden, heads, heads, True, dropout=dropout, causal=False
        )
        self.inner = plain_mlp(hidden, dropout)
        self.first, self.second = nn.LayerNorm(hidden), nn.LayerNorm(hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x + self.attention(x))
        return self.second(x + self.inner(x))


class Bert(nn.Module):
    """BERT base with its pooler, whose result is taken for logits."""

    def __init__(self, layers: int = 12, dropout: float = 0.1) -> None:
        super().__init__()
        hidden = 768
        self.tokens = nn.Embedding(30522, hidden)
        self.positions = nn.Embedding(512, hidden)
        self.types = nn.Embedding(2, hidden)
        self.norm, self.drop = nn.LayerNorm(hidden), nn.Dropout(dropout)
        self.layers = nn.Sequential(
            *(BertLayer(hidden, 12, dropout) for _ in range(layers))
        )
        self.pooler = nn.Linear(hidden, hidden)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        x = self.drop(self.norm(x + self.types.weight[0]))
        return torch.tanh(self.pooler(self.layers(x)[:, 0]))


class T5Attention(nn.Module):
    """Attention whose scores are a tensor, with a bias that is added to them."""

    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.size = hidden // heads
        self.query, self.key, self.value, self.output = (
            nn.Linear(hidden, hidden, bias=False) for _ in range(4)
        )
        self.drop = nn.Dropout(dropout)

    def forward(
        self, x: torch.Tensor, other: torch.Tensor, bias: torch.Tensor | None
    ) -> torch.Tensor:
        query, key, value = (
            product(given).view(*given.shape[:2], -1, self.size).transpose(1, 2)
            for product, given in (
                (self.query, x),
                (self.key, other),
                (self.value, other),
            )
        )
        scores = query @ key.transpose(-1, -2)
        if bias is not None:
            scores = scores + bias
        mixed = self.drop(F.softmax(scores, -1)) @ value
        return self.drop(self.output(mixed.transpose(1, 2).reshape(x.shape)))


class T5Layer(nn.Module):
    """A layer of the encoder, or of the decoder, which looks at the encoder, too."""

    def __init__(self, hidden: int, is_decoder: bool, dropout: float) -> None:
        super().__init__()
        self.attention = T5Attention(hidden, 12, dropout)
        self.cross = T5Attention(hidden, 12, dropout) if is_decoder else None
        self.inner = nn.Sequential(
            nn.Linear(hidden, 4 * hidden, bias=False),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(4 * hidden, hidden, bias=False),
            nn.Dropout(dropout),
        )
        self.norms = nn.ModuleList(nn.RMSNorm(hidden) for _ in range(2 + is_decoder))

    def forward(
        self, x: torch.Tensor, bias: torch.Tensor, encoded: torch.Tensor | None
    ) -> torch.Tensor:
        normed = self.norms[0](x)
        x = x + self.attention(normed, normed, bias)
        if self.cross is not None and encoded is not None:
            x = x + self.cross(self.norms[1](x), encoded, None)
        return x + self.inner(self.norms[-1](x))


class T5(nn.Module):
    """T5 base; what it reads it also writes."""

    def __init__(self, layers: int = 12, dropout: float = 0.1) -> None:
        super().__init__()
        hidden = 768
        self.tokens, self.drop = nn.Embedding(32128, hidden), nn.Dropout(dropout)
        self.places = nn.ModuleList(nn.Embedding(32, 12) for _ in range(2))
        self.encoder, self.decoder = (
            nn.ModuleList(T5Layer(hidden, is_decoder, dropout) for _ in range(layers))
            for is_decoder in (False, True)
        )
        self.norms = nn.ModuleList(nn.RMSNorm(hidden) for _ in range(2))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        tokens = ids.shape[1]
        steps = torch.arange(tokens, device=ids.device)
        apart = (steps[:, None] - steps).abs().clamp(max=31)
        encoded = self.drop(self.tokens(ids))
        bias = self.places[0](apart).permute(2, 0, 1)[None]
        for layer in self.encoder:
            encoded = layer(encoded, bias, None)
        encoded = self.drop(self.norms[0](encoded))
        x = self.drop(self.tokens(ids))
        later = torch.full((tokens, tokens), float("-inf"), device=x.device).triu(1)
        bias = self.places[1](apart).permute(2, 0, 1)[None] + later.to(x.dtype)
        for layer in self.decoder:
            x = layer(x, bias, encoded)
        x = self.drop(self.norms[1](x))
        return F.linear(x * x.shape[-1] ** -0.5, self.tokens.weight)

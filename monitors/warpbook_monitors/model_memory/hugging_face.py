"""The `config.json` of Hugging Face Transformers, as a model.

Fields and defaults are those of Transformers' class for an architecture.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from warpbook_monitors.model_memory import layers
from warpbook_monitors.model_memory.description import Block, Model
from warpbook_monitors.model_memory.layers import Few, Size
from warpbook_monitors.plain_text import bounded

_Stages = msgspec.Meta(min_length=1, max_length=8)


class _Config(msgspec.Struct, kw_only=True):
    """What configurations have in common; `name` and `source` are of our own."""

    model_type: str
    name: str = ""
    name_or_path: str = msgspec.field(name="_name_or_path", default="")
    source: str = ""

    def fields(self) -> dict[str, Any]:
        """Return blocks and sizes of the `Model`."""
        raise NotImplementedError


class _Llama(_Config, kw_only=True):
    """Decoders of the same form; they differ by `model_type`."""

    hidden_size: Size
    intermediate_size: Size
    num_attention_heads: Few
    num_hidden_layers: Few
    vocab_size: Size
    num_key_value_heads: Few | None = None
    head_dim: Few | None = None
    max_position_embeddings: Size = 2048
    attention_bias: bool = False
    mlp_bias: bool = False
    tie_word_embeddings: bool | None = None
    sliding_window: layers.NoneOrMore = 0
    num_local_experts: Few = 8
    num_experts_per_tok: Few = 2

    def fields(self) -> dict[str, Any]:
        kind, hidden = self.model_type, self.hidden_size
        heads, sizes = self.num_attention_heads, (hidden, self.intermediate_size)
        attention = layers.Attention(
            hidden,
            heads,
            self.num_key_value_heads or heads,
            self.head_dim or _head_size(hidden, heads),
            bias=self.attention_bias or kind == "qwen2",
            output_bias=self.attention_bias,
            head_norm=kind == "qwen3",
            causal=True,
            window=self.sliding_window if kind in ("mistral", "mixtral") else 0,
        )
        inner: layers.AnyLayer
        if kind == "mixtral":
            experts = self.num_local_experts, self.num_experts_per_tok
            inner = layers.Experts(*sizes, *experts)
        else:
            inner = layers.Mlp(*sizes, "silu", gated=True, bias=self.mlp_bias)
        tied = self.tie_word_embeddings
        tied = kind == "gemma" if tied is None else tied
        norm = layers.Norm(hidden)
        layer = (norm, attention, norm, inner)
        blocks = (
            _edge("embeddings", layers.Embedding(self.vocab_size, hidden)),
            Block("layers", layer, self.num_hidden_layers),
            _edge("head", norm, layers.Logits(hidden, self.vocab_size, tied)),
        )
        return {"blocks": blocks, "tokens": self.max_position_embeddings}


class _Gpt2(_Config, kw_only=True):
    n_embd: Size = 768
    n_head: Few = 12
    n_layer: Few = 12
    n_inner: Size | None = None
    n_positions: Size = 1024
    vocab_size: Size = 50257
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    resid_pdrop: float = 0.1
    tie_word_embeddings: bool = True

    def fields(self) -> dict[str, Any]:
        hidden, positions = self.n_embd, self.n_positions
        norm = layers.Norm(hidden, True)
        attention = _attention(hidden, self.n_head, self.attn_pdrop, causal=True)
        inner = _mlp(hidden, self.n_inner or 4 * hidden, self.resid_pdrop)
        words = layers.Embedding(self.vocab_size, hidden, self.embd_pdrop > 0)
        logits = layers.Logits(hidden, self.vocab_size, self.tie_word_embeddings)
        blocks = (
            _edge("embeddings", words, layers.Table(positions, hidden)),
            Block("layers", (norm, attention, norm, inner), self.n_layer),
            _edge("head", norm, logits),
        )
        return {"blocks": blocks, "tokens": positions, "most_tokens": positions}


class _Bert(_Config, kw_only=True):
    hidden_size: Size = 768
    intermediate_size: Size = 3072
    num_attention_heads: Few = 12
    num_hidden_layers: Few = 12
    vocab_size: Size = 30522
    type_vocab_size: Size = 2
    max_position_embeddings: Size = 512
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1

    def fields(self) -> dict[str, Any]:
        hidden, positions = self.hidden_size, self.max_position_embeddings
        drops, of_scores = self.hidden_dropout_prob, self.attention_probs_dropout_prob
        norm = layers.Norm(hidden, True)
        words = layers.Embedding(self.vocab_size, hidden, drops > 0)
        tables = (
            layers.Table(rows, hidden) for rows in (positions, self.type_vocab_size)
        )
        attention = _attention(hidden, self.num_attention_heads, of_scores)
        layer = (attention, norm, _mlp(hidden, self.intermediate_size, drops), norm)
        blocks = (
            _edge("embeddings", words, *tables, norm),
            Block("layers", layer, self.num_hidden_layers),
            _edge("pooler", layers.Linear(hidden, hidden)),
        )
        return {"blocks": blocks, "tokens": positions, "most_tokens": positions}


class _T5(_Config, kw_only=True):
    d_model: Size = 512
    d_ff: Size = 2048
    d_kv: Few = 64
    num_heads: Few = 8
    num_layers: Few = 6
    num_decoder_layers: Few | None = None
    vocab_size: Size = 32128
    n_positions: Size = 512
    relative_attention_num_buckets: Size = 32
    dropout_rate: float = 0.1
    feed_forward_proj: str = "relu"
    tie_word_embeddings: bool = True

    def fields(self) -> dict[str, Any]:
        hidden, heads, drops = self.d_model, self.num_heads, self.dropout_rate > 0
        seen = layers.Attention(hidden, heads, heads, self.d_kv, dropout=drops)
        own = msgspec.structs.replace(seen, causal=True)
        cross = msgspec.structs.replace(seen, cross=True)
        gated = self.feed_forward_proj.startswith("gated-")
        activation: Literal["gelu", "relu"] = "gelu" if gated else "relu"
        biases = False, drops, drops
        inner = layers.Mlp(hidden, self.d_ff, activation, gated, *biases)
        norm = layers.Norm(hidden)
        bias = layers.Table(self.relative_attention_num_buckets, heads)
        decoder = (norm, own, norm, cross, norm, inner)
        logits = layers.Logits(hidden, self.vocab_size, self.tie_word_embeddings)
        words = layers.Embedding(self.vocab_size, hidden, drops)
        blocks = (
            _edge("embeddings", words, bias, bias),
            Block("encoder", (norm, seen, norm, inner), self.num_layers),
            _edge("encoder norm", norm),
            Block("decoder", decoder, self.num_decoder_layers or self.num_layers),
            _edge("head", norm, logits),
        )
        return {"blocks": blocks, "tokens": self.n_positions}


class _ResNet(_Config, kw_only=True):
    """ResNets with the stride in the 3 × 3 convolution, as torchvision has them."""

    num_channels: Size = 3
    embedding_size: Size = 64
    hidden_sizes: Annotated[tuple[Size, ...], _Stages] = (256, 512, 1024, 2048)
    depths: Annotated[tuple[Few, ...], _Stages] = (3, 4, 6, 3)
    layer_type: Literal["bottleneck"] = "bottleneck"
    image_size: Size = 224
    id2label: dict[str, Any] = {}
    num_labels: Size = 2

    def fields(self) -> dict[str, Any]:
        inputs, scale = self.embedding_size, 4
        sizes = self.num_channels, inputs, 7, 2, 2
        stem = layers.Convolution(*sizes, norm=True, relu=True, reads_image=True)
        blocks = [_edge("stem", stem, layers.Pool(inputs, scale))]
        stages = zip(self.hidden_sizes, self.depths, strict=True)
        for number, (width, depth) in enumerate(stages, 1):
            stride = 1 if number == 1 else 2
            first = _bottleneck(inputs, width, scale, stride)
            scale *= stride
            shortcut = layers.Convolution(inputs, width, 1, scale, stride, norm=True)
            blocks.append(Block(f"stage {number}, first", (*first, shortcut)))
            if depth > 1:
                further = _bottleneck(width, width, scale, 1)
                blocks.append(Block(f"stage {number}", further, depth - 1))
            inputs = width
        head = layers.Linear(inputs, len(self.id2label) or self.num_labels)
        return {"blocks": (*blocks, _edge("head", head)), "side": self.image_size}


_ARCHITECTURES: dict[str, type[_Config]] = {
    "bert": _Bert,
    **dict.fromkeys(("gemma", "llama", "mistral", "mixtral", "qwen2", "qwen3"), _Llama),
    "gpt2": _Gpt2,
    "resnet": _ResNet,
    "t5": _T5,
}


def model_of_config(fields: dict[str, Any]) -> Model:
    """Describe what a configuration configures.

    Raises:
        ValueError: the architecture is another, or a value is malformed.
    """
    kind = fields.get("model_type")
    if not isinstance(kind, str) or kind not in _ARCHITECTURES:
        raise ValueError(
            f"`model_type` {bounded(repr(kind), 40)} is none of "
            f"{', '.join(sorted(_ARCHITECTURES))}; describe the model by its blocks"
        )
    # null is the default, as in Transformers
    given = {key: value for key, value in fields.items() if value is not None}
    config = msgspec.convert(given, _ARCHITECTURES[kind])
    name = bounded(config.name or config.name_or_path or kind)
    source = bounded(config.source, 300) or f"config.json of {kind}"
    return Model(name, source, **config.fields())


def _edge(name: str, *inner: layers.AnyLayer) -> Block:
    return Block(name, inner, edge=True)


def _head_size(hidden: int, heads: int) -> int:
    if hidden % heads:
        raise ValueError(
            f"hidden size {hidden} is no multiple of {heads} heads: "
            "correct one, or add `head_dim`"
        )
    return hidden // heads


def _attention(
    hidden: int, heads: int, dropout: float, *, causal: bool = False
) -> layers.Attention:
    sizes = hidden, heads, heads, _head_size(hidden, heads)
    drops = dropout > 0
    return layers.Attention(*sizes, True, True, causal=causal, dropout=drops)


def _mlp(hidden: int, intermediate: int, dropout: float) -> layers.Mlp:
    return layers.Mlp(hidden, intermediate, bias=True, dropout=dropout > 0)


def _bottleneck(
    inputs: int, width: int, scale: int, stride: int
) -> tuple[layers.AnyLayer, ...]:
    """Return the three convolutions of He et al. 2015, figure 5."""
    inner, after = width // 4 or 1, scale * stride
    plain = (
        layers.Convolution(inputs, inner, 1, scale),
        layers.Convolution(inner, inner, 3, after, stride),
        layers.Convolution(inner, width, 1, after),
    )
    return tuple(
        msgspec.structs.replace(layer, norm=True, relu=True) for layer in plain
    )

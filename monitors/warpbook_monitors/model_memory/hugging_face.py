"""The `config.json` of Hugging Face Transformers, as a model.

Fields and defaults are those of Transformers' class for an architecture.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Annotated, Any, Literal, get_args

import msgspec

from warpbook_monitors.model_memory import layers
from warpbook_monitors.model_memory.attentions import Attention
from warpbook_monitors.model_memory.config import Config, DecoderConfig, edge, head_size
from warpbook_monitors.model_memory.description import Block, Model
from warpbook_monitors.model_memory.images import Convolution, Pool
from warpbook_monitors.model_memory.layer import Few, NoneOrMore, Size
from warpbook_monitors.model_memory.mixtures import DeepSeek, GptOss, Qwen3Moe
from warpbook_monitors.plain_text import bounded

_Stages = msgspec.Meta(min_length=1, max_length=8)


class _Llama(DecoderConfig, kw_only=True):
    """Decoders of the same form; they differ by `model_type`."""

    intermediate_size: Size
    num_key_value_heads: Few | None = None
    head_dim: Few | None = None
    max_position_embeddings: Size = 2048
    mlp_bias: bool = False
    sliding_window: NoneOrMore = 0
    num_local_experts: Few = 8
    num_experts_per_tok: Few = 2

    def layers(self) -> Iterator[tuple[str, tuple[layers.AnyLayer, ...]]]:
        kind, hidden = self.model_type, self.hidden_size
        heads, sizes = self.num_attention_heads, (hidden, self.intermediate_size)
        attention = Attention(
            hidden,
            heads,
            self.num_key_value_heads or heads,
            self.head_dim or head_size(hidden, heads),
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
        norm = layers.Norm(hidden)
        yield from repeat(
            ("layers", (norm, attention, norm, inner)), self.num_hidden_layers
        )


class _Gemma(_Llama, kw_only=True):
    tie_word_embeddings: bool = True


class _Gpt2(Config, kw_only=True):
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
            edge("embeddings", words, layers.Table(positions, hidden)),
            Block("layers", (norm, attention, norm, inner), self.n_layer),
            edge("head", norm, logits),
        )
        return {"blocks": blocks, "tokens": positions, "most_tokens": positions}


class _Bert(Config, kw_only=True):
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
            edge("embeddings", words, *tables, norm),
            Block("layers", layer, self.num_hidden_layers),
            edge("pooler", layers.Linear(hidden, hidden)),
        )
        return {"blocks": blocks, "tokens": positions, "most_tokens": positions}


class _T5(Config, kw_only=True):
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
        seen = Attention(hidden, heads, heads, self.d_kv, dropout=drops)
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
            edge("embeddings", words, bias, bias),
            Block("encoder", (norm, seen, norm, inner), self.num_layers),
            edge("encoder norm", norm),
            Block("decoder", decoder, self.num_decoder_layers or self.num_layers),
            edge("head", norm, logits),
        )
        return {"blocks": blocks, "tokens": self.n_positions}


class _ResNet(Config, kw_only=True):
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
        stem = Convolution(*sizes, norm=True, relu=True, reads_image=True)
        blocks = [edge("stem", stem, Pool(inputs, scale))]
        stages = zip(self.hidden_sizes, self.depths, strict=True)
        for number, (width, depth) in enumerate(stages, 1):
            stride = 1 if number == 1 else 2
            first = _bottleneck(inputs, width, scale, stride)
            scale *= stride
            shortcut = Convolution(inputs, width, 1, scale, stride, norm=True)
            blocks.append(Block(f"stage {number}, first", (*first, shortcut)))
            if depth > 1:
                further = _bottleneck(width, width, scale, 1)
                blocks.append(Block(f"stage {number}", further, depth - 1))
            inputs = width
        head = layers.Linear(inputs, len(self.id2label) or self.num_labels)
        return {"blocks": (*blocks, edge("head", head)), "side": self.image_size}


_ARCHITECTURES: dict[str, type[Config]] = {
    "bert": _Bert,
    **dict.fromkeys(("deepseek_v2", "deepseek_v3"), DeepSeek),
    **dict.fromkeys(("llama", "mistral", "mixtral", "qwen2", "qwen3"), _Llama),
    "gemma": _Gemma,
    "gpt2": _Gpt2,
    "gpt_oss": GptOss,
    "qwen3_moe": Qwen3Moe,
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
            f"`model_type` {bounded(repr(kind), 40)} is not one of "
            f"{', '.join(sorted(_ARCHITECTURES))}; describe the model by its blocks"
        )
    configured = _ARCHITECTURES[kind]
    # null is the default, as in Transformers, but where it has a meaning
    takes_null = {
        field.name
        for field in msgspec.structs.fields(configured)
        if type(None) in get_args(field.type)
    }
    given = {
        key: value
        for key, value in fields.items()
        if value is not None or key in takes_null
    }
    config = msgspec.convert(given, configured)
    name = bounded(config.name or config.name_or_path or kind)
    source = bounded(config.source, 300) or f"config.json of {kind}"
    return Model(name, source, stored_as=config.stored_as, **config.fields())


def _attention(
    hidden: int, heads: int, dropout: float, *, causal: bool = False
) -> Attention:
    sizes = hidden, heads, heads, head_size(hidden, heads)
    drops = dropout > 0
    return Attention(*sizes, True, True, causal=causal, dropout=drops)


def _mlp(hidden: int, intermediate: int, dropout: float) -> layers.Mlp:
    return layers.Mlp(hidden, intermediate, bias=True, dropout=dropout > 0)


def _bottleneck(
    inputs: int, width: int, scale: int, stride: int
) -> tuple[layers.AnyLayer, ...]:
    """Return the three convolutions of He et al. 2015, figure 5."""
    inner, after = width // 4 or 1, scale * stride
    plain = (
        Convolution(inputs, inner, 1, scale),
        Convolution(inner, inner, 3, after, stride),
        Convolution(inner, width, 1, after),
    )
    return tuple(
        msgspec.structs.replace(layer, norm=True, relu=True) for layer in plain
    )

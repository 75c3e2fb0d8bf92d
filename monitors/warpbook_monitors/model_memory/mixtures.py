"""Configurations of today's mixtures of experts.

Fields and defaults are those of Transformers' class for an architecture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from warpbook_monitors.model_memory.attentions import Attention, LatentAttention
from warpbook_monitors.model_memory.config import DecoderConfig
from warpbook_monitors.model_memory.layer import Few, NoneOrMore, Size
from warpbook_monitors.model_memory.layers import AnyLayer, Experts, Mlp, Norm

_Layers = msgspec.Meta(max_length=10_000)


class DeepSeek(DecoderConfig, kw_only=True):
    """DeepSeek V2 and V3, without the layer that predicts further tokens."""

    intermediate_size: Size
    moe_intermediate_size: Size
    n_routed_experts: Few
    num_experts_per_tok: Few
    n_shared_experts: NoneOrMore = 0
    first_k_dense_replace: NoneOrMore = 0
    kv_lora_rank: Size = 512
    q_lora_rank: NoneOrMore | None = 1536
    qk_nope_head_dim: Few = 128
    qk_rope_head_dim: Few = 64
    v_head_dim: Few = 128

    def layers(self) -> Iterator[tuple[str, tuple[AnyLayer, ...]]]:
        hidden, norm = self.hidden_size, Norm(self.hidden_size)
        attention = LatentAttention(
            *(hidden, self.num_attention_heads),
            *(self.q_lora_rank or 0, self.kv_lora_rank),
            *(self.qk_nope_head_dim, self.qk_rope_head_dim, self.v_head_dim),
            bias=self.attention_bias,
        )
        dense = Mlp(hidden, self.intermediate_size, "silu", gated=True)
        experts = Experts(
            *(hidden, self.moe_intermediate_size),
            *(self.n_routed_experts, self.num_experts_per_tok),
            shared=self.n_shared_experts * self.moe_intermediate_size,
            router_in_fp32=True,
        )
        for number in range(self.num_hidden_layers):
            if number < self.first_k_dense_replace:
                yield "dense layers", (norm, attention, norm, dense)
            else:
                yield "layers", (norm, attention, norm, experts)


class Qwen3Moe(DecoderConfig, kw_only=True):
    """Experts in each layer, or in each of some."""

    moe_intermediate_size: Size = 768
    intermediate_size: Size = 6144
    num_key_value_heads: Few = 4
    head_dim: Few = 128
    num_experts: Few = 128
    num_experts_per_tok: Few = 8
    decoder_sparse_step: Few = 1
    mlp_only_layers: Annotated[frozenset[int], _Layers] = frozenset()
    use_sliding_window: bool = False
    sliding_window: NoneOrMore = 4096
    max_position_embeddings: Size = 32_768

    def layers(self) -> Iterator[tuple[str, tuple[AnyLayer, ...]]]:
        hidden, norm = self.hidden_size, Norm(self.hidden_size)
        attention = Attention(
            *(hidden, self.num_attention_heads, self.num_key_value_heads),
            self.head_dim,
            bias=self.attention_bias,
            output_bias=self.attention_bias,
            head_norm=True,
            causal=True,
            window=self.sliding_window if self.use_sliding_window else 0,
        )
        dense = Mlp(hidden, self.intermediate_size, "silu", gated=True)
        experts = Experts(
            *(hidden, self.moe_intermediate_size),
            *(self.num_experts, self.num_experts_per_tok),
        )
        for number in range(self.num_hidden_layers):
            is_dense = (number + 1) % self.decoder_sparse_step != 0
            if is_dense or number in self.mlp_only_layers:
                yield "dense layers", (norm, attention, norm, dense)
            else:
                yield "layers", (norm, attention, norm, experts)


class GptOss(DecoderConfig, kw_only=True):
    """Windows in every other layer, sinks, and experts with biases."""

    intermediate_size: Size
    num_local_experts: Few
    num_experts_per_tok: Few = 4
    num_attention_heads: Few = 64
    num_key_value_heads: Few = 8
    head_dim: Few = 64
    attention_bias: bool = True
    sliding_window: NoneOrMore = 128
    layer_types: Annotated[
        tuple[Literal["sliding_attention", "full_attention"], ...], _Layers
    ] = ()
    max_position_embeddings: Size = 131_072

    def layers(self) -> Iterator[tuple[str, tuple[AnyLayer, ...]]]:
        hidden, norm = self.hidden_size, Norm(self.hidden_size)
        count, kinds = self.num_hidden_layers, self.layer_types
        if not kinds:
            kinds = (("sliding_attention", "full_attention") * count)[:count]
        if len(kinds) != count:
            raise ValueError(f"{len(kinds)} `layer_types` for {count} layers")
        full = Attention(
            *(hidden, self.num_attention_heads, self.num_key_value_heads),
            self.head_dim,
            bias=self.attention_bias,
            output_bias=self.attention_bias,
            causal=True,
            sinks=True,
        )
        sliding = msgspec.structs.replace(full, window=self.sliding_window)
        experts = Experts(
            *(hidden, self.intermediate_size),
            *(self.num_local_experts, self.num_experts_per_tok),
            bias=True,
            clamped=True,
        )
        for kind in kinds:
            if kind == "sliding_attention":
                yield "sliding layers", (norm, sliding, norm, experts)
            else:
                yield "layers", (norm, full, norm, experts)

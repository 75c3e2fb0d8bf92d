"""Attention, in the forms that models have it; letters as in `layer.py`."""

from __future__ import annotations

from typing import ClassVar

from warpbook_monitors.model_memory.layer import (
    Few,
    Layer,
    Needs,
    NoneOrMore,
    Pass,
    Size,
    divided,
)


class Attention(Layer, frozen=True, tag="attention"):
    """Attention of a heads over k heads of keys and values.

    k = a is multi-head (Vaswani et al. 2017), k = 1 multi-query (Shazeer 2019), what is
    between is grouped-query attention (Ainslie et al. 2023).

    Attributes:
        bias: of the projections to queries, keys and values.
        output_bias: of the projection back to the hidden size.
        head_norm: an RMSNorm of the head size on queries, and one on keys.
        causal: it decodes, so that keys and values are cached.
        cross: keys and values are an encoder's.
        window: tokens that a position looks back at most; 0 for all.
        dropout: on the scores and on the output.
        sinks: each head has a score for no token (gpt-oss).
    """

    is_attention: ClassVar[bool] = True
    hidden: Size
    heads: Few
    kv_heads: Few
    head_size: Few
    bias: bool = False
    output_bias: bool = False
    head_norm: bool = False
    causal: bool = False
    cross: bool = False
    window: NoneOrMore = 0
    dropout: bool = False
    sinks: bool = False

    def linears(self, tensor: int = 1) -> tuple[tuple[int, int], ...]:
        """Megatron-LM splits by heads; with fewer k than GPUs each has one."""
        query = divided(self.heads, tensor) * self.head_size
        key = divided(self.kv_heads, tensor) * self.head_size
        inner = (self.hidden, query), (self.hidden, key), (self.hidden, key)
        return *inner, (query, self.hidden)

    def parameters(self, tensor: int = 1) -> int:
        """2·h·a·d + 2·h·k·d and biases (Vaswani et al. 2017, section 3.2.2)."""
        *inner, _ = self.linears(tensor)
        count = self.matrices(tensor) + self.hidden * self.output_bias
        count += sum(outputs for _, outputs in inner) * self.bias
        count += divided(self.heads, tensor) * self.sinks
        return count + 2 * self.head_size * self.head_norm

    def needs(self, on: Pass) -> Needs:
        """11·s·b·h + 5·a·s²·b with dropout (Korthikanti et al., section 4.1).

        The input e·T·h and the mask T·h are whole; queries, keys, values and what the
        last projection reads are split: e·T·(2a + 2k)·d, and what norms of heads read:
        e·T·(a + k)·d. The softmax is e·a·s²·b, with dropout (2e + 1)·a·s²·b.
        FlashAttention (Dao et al. 2022, section 3.1) keeps in its place a statistic of
        each row: 4·a·T in fp32. The backward pass has the gradients of what the core
        reads, of the scores and of the input; a forward pass as many tensors, two more
        of the hidden size, and with sinks one more of the scores. The cache is 2·T·k·d
        (Shazeer 2019; Pope et al. 2022, arXiv:2211.05102).
        """
        reads = on.bytes_of(self.hidden)
        heads = self.heads + self.kv_heads
        width = on.bytes_of(heads * self.head_size)
        mask = on.all_tokens * self.hidden * self.dropout
        split = 2 * width + 4 * self.heads * on.all_tokens * on.is_flash
        split += on.kept_by_linears(
            self.heads * self.head_size, in_attention=True, is_there=True
        )
        if self.head_norm:
            split += on.kept_by_norm(heads * self.head_size, statistics=heads)
        kept = on.kept_by_linears(self.hidden, 3, in_attention=True)
        keys = on.keys or on.tokens
        scores = 0 if on.is_flash else on.all_tokens * self.heads * keys
        element = on.element_bytes
        core = scores * (2 * element + 1 if self.dropout else element)
        working = divided(2 * width + 2 * element * scores, on.tensor) + 2 * reads
        forward = working + 2 * reads
        forward += divided(element * scores, on.tensor) * self.sinks
        cached = 0
        if self.causal or self.cross:
            tokens = min(on.tokens, self.window) if self.window else on.tokens
            own = divided(self.kv_heads, on.tensor)
            cached = 2 * on.batch * tokens * own * self.head_size
        return Needs(reads, kept + mask, split, core, working, forward, cached)


class LatentAttention(Layer, frozen=True, tag="latent attention"):
    """Multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434, section 2.1).

    Keys and values come of one latent vector of a token, which alone is cached beside a
    key for positions that all heads share.

    Attributes:
        query_rank: of the latent vector of queries; 0 where there is none.
        rank: of that of keys and values.
        head_size: of queries and keys, without what has positions.
        rotary_size: of a head's part that has them.
        value_size: of values.
        bias: of the projections that read or give the hidden size.
    """

    is_attention: ClassVar[bool] = True
    hidden: Size
    heads: Few
    query_rank: NoneOrMore
    rank: Size
    head_size: Few
    rotary_size: Few
    value_size: Few
    bias: bool = False

    @property
    def causal(self) -> bool:
        return True

    def linears(self, tensor: int = 1) -> tuple[tuple[int, int], ...]:
        """What reads or gives all heads is split by heads, latent vectors are whole."""
        heads, hidden, latent = (
            divided(self.heads, tensor),
            self.hidden,
            self.query_rank,
        )
        queries = heads * (self.head_size + self.rotary_size)
        whole = ((hidden, queries),)
        return (
            *(((hidden, latent), (latent, queries)) if latent else whole),
            (hidden, self.rank + self.rotary_size),
            (self.rank, heads * (self.head_size + self.value_size)),
            (heads * self.value_size, hidden),
        )

    def parameters(self, tensor: int = 1) -> int:
        """The matrices, a norm of each latent vector, and biases."""
        latent = self.query_rank + self.rank
        biases = (latent + self.rotary_size + self.hidden) * self.bias
        return self.matrices(tensor) + latent + biases

    def needs(self, on: Pass) -> Needs:
        """Whole are the input and both latent vectors, before and after their norms.

        Split are queries and keys, e·T·2a·(head + rotary), what keys and values are
        made of, e·T·a·(head + value), and what the last projection reads, e·T·a·value.
        The rest is as in `Attention`. The cache is T·(rank + rotary) on each GPU.
        """
        reads = on.bytes_of(self.hidden)
        compared = 2 * (self.head_size + self.rotary_size)
        made = self.head_size + self.value_size
        whole = on.kept_by_linears(self.hidden, 2, in_attention=True)
        for rank in filter(None, (self.query_rank, self.rank)):
            whole += on.kept_by_norm(rank)
            whole += on.kept_by_linears(rank, in_attention=True)
        split = on.bytes_of(self.heads * (compared + made + self.value_size))
        split += on.kept_by_linears(
            self.heads * self.value_size, in_attention=True, is_there=True
        )
        split += 4 * self.heads * on.all_tokens * on.is_flash
        keys = on.keys or on.tokens
        scores = 0 if on.is_flash else on.all_tokens * self.heads * keys
        core = on.element_bytes * scores
        width = on.bytes_of(self.heads * (compared + made))
        working = divided(2 * width + 2 * core, on.tensor) + 2 * reads
        forward = working + 2 * reads
        cached = on.all_tokens * (self.rank + self.rotary_size)
        return Needs(reads, whole, split, core, working, forward, cached)

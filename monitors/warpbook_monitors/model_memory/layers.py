"""The kinds of layers: what each has as parameters, and keeps for its gradients.

A description of a model (`description.py`) is made of these. Letters in formulas: b
batch, s tokens of a sequence, T = b·s, h hidden size, f intermediate size, a heads, k
heads of keys and values, d head size, v vocabulary, e bytes of an element, t
tensor-parallel GPUs.

What is called Korthikanti et al. is "Reducing Activation Recomputation in Large
Transformer Models", 2022 (arXiv:2205.05198); its figures are for e = 2 and f = 4h, and
these formulas give them there.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from warpbook_monitors.model_memory.image_layers import Convolution, Pool
from warpbook_monitors.model_memory.layer import Few, Layer, Pass, Saved, Size, divided


class Embedding(Layer, frozen=True, tag="embedding"):
    """A table of vectors by token: v·h parameters.

    Megatron-LM (Shoeybi et al. 2019, section 3) splits it by the vocabulary. Kept are
    the tokens' numbers (int64) and, with dropout, its mask (Korthikanti et al.,
    section 4.3).
    """

    rows: Size
    columns: Size
    dropout: bool = False

    def parameters(self, tensor: int = 1) -> int:
        """v·h, split by v."""
        return divided(self.rows, tensor) * self.columns

    def saved(self, on: Pass) -> Saved:
        """8 T, and T·h of a mask."""
        mask = self.columns if self.dropout else 0
        return Saved(whole_bytes=on.all_tokens * (8 + mask))

    def input_bytes(self, on: Pass) -> int:
        """8 T: the numbers of the tokens, int64."""
        return 8 * on.all_tokens


class Table(Layer, frozen=True, tag="table"):
    """A table that is added: positions, types of tokens, a class token, a bias of T5.

    Its gradient is that of a sum, which keeps nothing.
    """

    rows: Size
    columns: Size

    def parameters(self, tensor: int = 1) -> int:
        """Rows by columns, on every GPU."""
        return self.rows * self.columns


class Norm(Layer, frozen=True, tag="norm"):
    """LayerNorm (Ba et al. 2016) with a bias, or RMSNorm (Zhang and Sennrich 2019)."""

    size: Size
    bias: bool = False

    def parameters(self, tensor: int = 1) -> int:
        """2h with a bias, else h."""
        return self.size * (2 if self.bias else 1)

    def saved(self, on: Pass) -> Saved:
        """e·T·h: the input (Korthikanti et al., section 4.1); statistics in fp32.

        That is PyTorch's fused `layer_norm` and `rms_norm`.
        """
        statistics = 4 * (2 if self.bias else 1)
        element = on.norm_bytes * self.size
        return Saved(whole_bytes=on.all_tokens * (element + statistics))

    def input_bytes(self, on: Pass) -> int:
        """e·T·h; under autocast the residual is fp32."""
        return on.norm_bytes * on.all_tokens * self.size


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
    """

    hidden: Size
    heads: Few
    kv_heads: Few
    head_size: Few
    bias: bool = False
    output_bias: bool = False
    head_norm: bool = False
    causal: bool = False
    cross: bool = False
    window: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 0
    dropout: bool = False

    def parameters(self, tensor: int = 1) -> int:
        """2·h·a·d + 2·h·k·d and biases (Vaswani et al. 2017, section 3.2.2).

        Megatron-LM splits by heads; with fewer k than GPUs each has one.
        """
        query = divided(self.heads, tensor) * self.head_size
        key = divided(self.kv_heads, tensor) * self.head_size
        count = self.hidden * 2 * (query + key)
        count += query + 2 * key if self.bias else 0
        count += self.hidden if self.output_bias else 0
        return count + (2 * self.head_size if self.head_norm else 0)

    def _scores(self, on: Pass) -> int:
        return on.batch * self.heads * on.tokens**2

    def saved(self, on: Pass) -> Saved:
        """11·s·b·h + 5·a·s²·b with dropout (Korthikanti et al., section 4.1).

        The input e·T·h and the mask T·h are whole; queries, keys, values and what the
        last projection reads are split: e·T·(2a + 2k)·d, and what norms of heads read:
        e·T·(a + k)·d. The softmax is e·a·s²·b, with
        dropout (2e + 1)·a·s²·b. FlashAttention (Dao et al. 2022, section 3.1) keeps in
        its place a statistic of each row: 4·a·T in fp32.
        """
        element, tokens = on.element_bytes, on.all_tokens
        mask = tokens * self.hidden if self.dropout else 0
        width = (self.heads + self.kv_heads) * self.head_size
        width *= 3 if self.head_norm else 2
        split = element * tokens * width
        if on.is_flash:
            split += 4 * self.heads * tokens
            core = 0
        else:
            core = self._scores(on) * (2 * element + 1 if self.dropout else element)
        return Saved(self.input_bytes(on) + mask, split, core)

    def input_bytes(self, on: Pass) -> int:
        """e·T·h."""
        return on.element_bytes * on.all_tokens * self.hidden

    def backward_bytes(self, on: Pass, tensor: int) -> int:
        """The gradients of what the core reads and of the scores, and of the input."""
        scores = 0 if on.is_flash else 2 * self._scores(on)
        inner = (2 * self.heads + 2 * self.kv_heads) * self.head_size * on.all_tokens
        own = divided(on.element_bytes * (scores + inner), tensor)
        return own + 2 * self.input_bytes(on)

    def forward_bytes(self, on: Pass, tensor: int) -> int:
        """Residual and input, queries, keys, values and output; scores and softmax."""
        return self.backward_bytes(on, tensor)

    def cache_bytes(self, on: Pass, tensor: int, element_bytes: int) -> int:
        """2·e·T·k·d (Shazeer 2019; Pope et al. 2022, arXiv:2211.05102)."""
        if not (self.causal or self.cross):
            return 0
        tokens = min(on.tokens, self.window) if self.window else on.tokens
        width = divided(self.kv_heads, tensor) * self.head_size
        return 2 * element_bytes * on.batch * tokens * width


class Mlp(Layer, frozen=True, tag="mlp"):
    """Two linear layers, or three where a gate multiplies (GLU, Shazeer 2020).

    Attributes:
        dropout: on the output.
        inner_dropout: after the activation, as T5 has it.
    """

    hidden: Size
    intermediate: Size
    activation: Literal["gelu", "silu", "relu"] = "gelu"
    gated: bool = False
    bias: bool = False
    dropout: bool = False
    inner_dropout: bool = False

    def parameters(self, tensor: int = 1) -> int:
        """2·h·f and f + h of biases; 3·h·f with a gate; split by f (Megatron-LM)."""
        inner = divided(self.intermediate, tensor)
        ways = 2 if self.gated else 1
        biases = ways * inner + self.hidden if self.bias else 0
        return (ways + 1) * self.hidden * inner + biases

    def saved(self, on: Pass) -> Saved:
        """19·s·b·h with dropout (Korthikanti et al., section 4.1: 2 + 8 + 8 + 1).

        f times 2: what the activation reads and gives; ReLU keeps only what it gives.
        With a gate 4: gate, its activation, the other product, and what both give.
        """
        tokens, element = on.all_tokens, on.element_bytes
        kept = element * _kept_of_mlp(self.activation, self.gated)
        kept += element + 1 if self.inner_dropout else 0
        mask = tokens * self.hidden if self.dropout else 0
        return Saved(self.input_bytes(on) + mask, tokens * self.intermediate * kept)

    def input_bytes(self, on: Pass) -> int:
        """e·T·h."""
        return on.element_bytes * on.all_tokens * self.hidden

    def backward_bytes(self, on: Pass, tensor: int) -> int:
        """Two gradients of width f, three with a gate, and two of width h."""
        wide = on.element_bytes * on.all_tokens * self.intermediate
        return (
            divided((3 if self.gated else 2) * wide, tensor) + self.input_bytes(on) * 2
        )

    def forward_bytes(self, on: Pass, tensor: int) -> int:
        """As many tensors as the backward pass: inputs and result of the activation."""
        return self.backward_bytes(on, tensor)


class Experts(Layer, frozen=True, tag="experts"):
    """A mixture of experts: a router, and gated layers of which each token takes some.

    Jiang et al. 2024 (Mixtral of Experts), section 2.1.
    """

    hidden: Size
    intermediate: Size
    experts: Few
    active: Few

    def parameters(self, tensor: int = 1) -> int:
        """3·h·f for each expert, split by f; h for each in the router."""
        inner = divided(self.intermediate, tensor)
        return self.experts * self.hidden * (3 * inner + 1)

    def saved(self, on: Pass) -> Saved:
        """What `Mlp` keeps with a gate, for each active expert.

        Each reads a gathered copy e·T·h, gives e·T·h to be weighted, and adds e·T·h,
        which PyTorch's `index_add` keeps. The router keeps its input, and its
        probabilities in fp32.
        """
        tokens, element = on.all_tokens, on.element_bytes
        copies = 3 * self.active * self.input_bytes(on)
        router = self.input_bytes(on) + 4 * tokens * self.experts
        wide = 4 * element * self.active * tokens * self.intermediate
        return Saved(copies + router, wide)

    def input_bytes(self, on: Pass) -> int:
        """e·T·h."""
        return on.element_bytes * on.all_tokens * self.hidden

    def backward_bytes(self, on: Pass, tensor: int) -> int:
        """As for `Mlp` with a gate, for all tokens of the active experts."""
        wide = on.element_bytes * self.active * on.all_tokens * self.intermediate
        return divided(3 * wide, tensor) + self.input_bytes(on) * 2

    def forward_bytes(self, on: Pass, tensor: int) -> int:
        """As many tensors as the backward pass."""
        return self.backward_bytes(on, tensor)


class Linear(Layer, frozen=True, tag="linear"):
    """A product with a matrix for each sequence or image: a pooler, a classifier."""

    inputs: Size
    outputs: Size
    bias: bool = True

    def parameters(self, tensor: int = 1) -> int:
        """Inputs by outputs and a bias, on every GPU."""
        return self.outputs * (self.inputs + (1 if self.bias else 0))

    def saved(self, on: Pass) -> Saved:
        """e·b·inputs: a product keeps what it reads."""
        return Saved(whole_bytes=self.input_bytes(on))

    def input_bytes(self, on: Pass) -> int:
        """e·b·inputs."""
        return on.element_bytes * on.batch * self.inputs


class Logits(Layer, frozen=True, tag="logits"):
    """The projection to the vocabulary, and the loss.

    Attributes:
        tied: its matrix is the embedding's (Press and Wolf 2017): no parameters.
    """

    hidden: Size
    vocabulary: Size
    tied: bool = False
    bias: bool = False

    def parameters(self, tensor: int = 1) -> int:
        """v·h, split by v; none if tied, but for a bias."""
        rows = divided(self.vocabulary, tensor)
        return rows * ((0 if self.tied else self.hidden) + (1 if self.bias else 0))

    def saved(self, on: Pass) -> Saved:
        """e·T·h: what the product reads (Korthikanti et al., section 4.3)."""
        return Saved(whole_bytes=self.input_bytes(on))

    def input_bytes(self, on: Pass) -> int:
        """e·T·h."""
        return on.element_bytes * on.all_tokens * self.hidden

    def backward_bytes(self, on: Pass, tensor: int) -> int:
        """(e + 12)·T·v: logits, and in fp32 log-softmax, its gradient, and theirs.

        Korthikanti et al., section 4.3, count the 4·s·b·v that a fused loss needs.
        PyTorch's `cross_entropy` of `logits.float()` has three of them at once while
        its backward pass is in `log_softmax`, and the caller holds the logits.
        """
        whole = (on.element_bytes + 12) * on.all_tokens
        return whole * divided(self.vocabulary, tensor)

    def forward_bytes(self, on: Pass, tensor: int) -> int:
        """(e + 4)·b·v: of the last token alone, with its copy in fp32."""
        whole = (on.element_bytes + 4) * on.batch
        return whole * divided(self.vocabulary, tensor)


def _kept_of_mlp(activation: str, is_gated: bool) -> int:
    if is_gated:
        return 4
    return 1 if activation == "relu" else 2


#: what a description may have
AnyLayer = (
    Embedding
    | Table
    | Norm
    | Attention
    | Mlp
    | Experts
    | Linear
    | Logits
    | Convolution
    | Pool
)

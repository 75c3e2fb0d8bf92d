"""The kinds of layers that a description has, but for attention and images.

Letters as in `layer.py`.
"""

from __future__ import annotations

from typing import Literal

from warpbook_monitors.model_memory.attentions import Attention, LatentAttention
from warpbook_monitors.model_memory.images import Convolution, Pool
from warpbook_monitors.model_memory.layer import (
    Few,
    Layer,
    Needs,
    NoneOrMore,
    Pass,
    Size,
    divided,
)


class Embedding(Layer, frozen=True, tag="embedding"):
    """A table of vectors by token: v·h, split by v (Shoeybi et al. 2019, section 3).

    Kept are the tokens' numbers (int64), 8 T, and with dropout its mask, T·h
    (Korthikanti et al., section 4.3).
    """

    rows: Size
    columns: Size
    dropout: bool = False

    def parameters(self, tensor: int = 1) -> int:
        return divided(self.rows, tensor) * self.columns

    def needs(self, on: Pass) -> Needs:
        mask = on.all_tokens * self.columns * self.dropout
        numbers = 8 * on.all_tokens
        return Needs(numbers, numbers + mask if on.adapters is None else 0)


class Table(Layer, frozen=True, tag="table"):
    """A table that is added: positions, types of tokens, a class token, a bias of T5.

    Its gradient is that of a sum, which keeps nothing.
    """

    rows: Size
    columns: Size

    def parameters(self, tensor: int = 1) -> int:
        return self.rows * self.columns


class Norm(Layer, frozen=True, tag="norm"):
    """LayerNorm (Ba et al. 2016) with a bias, or RMSNorm (Zhang and Sennrich 2019).

    Kept is the input, e·T·h (Korthikanti et al., section 4.1), which is fp32 under
    autocast, and statistics in fp32: PyTorch's fused `layer_norm` and `rms_norm`. An
    RMSNorm in Python (`Pass.kept_by_norm`) has at most 12·T·h of its own at once.
    """

    size: Size
    bias: bool = False

    def parameters(self, tensor: int = 1) -> int:
        return self.size * (2 if self.bias else 1)

    def needs(self, on: Pass) -> Needs:
        reads = on.norm_bytes * on.all_tokens * self.size
        if self.bias:
            return Needs(reads, reads + 8 * on.all_tokens)
        working = 0 if on.is_fused_norm else 12 * on.all_tokens * self.size
        kept = on.kept_by_norm(self.size)
        return Needs(reads, kept, backward_bytes=working, forward_bytes=working)


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

    def linears(self, tensor: int = 1) -> tuple[tuple[int, int], ...]:
        """Split by f (Megatron-LM)."""
        inner, ways = divided(self.intermediate, tensor), 2 if self.gated else 1
        return *ways * ((self.hidden, inner),), (inner, self.hidden)

    def parameters(self, tensor: int = 1) -> int:
        """2·h·f and f + h of biases; 3·h·f with a gate."""
        biases = sum(outputs for _, outputs in self.linears(tensor)) * self.bias
        return self.matrices(tensor) + biases

    def needs(self, on: Pass) -> Needs:
        """19·s·b·h with dropout (Korthikanti et al., section 4.1: 2 + 8 + 8 + 1).

        f times 2: what the activation reads and gives; ReLU keeps only what it gives.
        With a gate 4: gate, its activation, the other product, and what both give. The
        backward pass has two gradients of width f, three with a gate, and two of width
        h. A forward pass has as many tensors of width f, and of width h four: the
        embeddings, which the caller holds, the residual, the sum, and its norm.
        """
        reads, wide = on.bytes_of(self.hidden), on.bytes_of(self.intermediate)
        ways = 2 if self.gated else 1
        kept = on.kept_by_linears(self.hidden, ways, in_attention=False)
        mask = on.all_tokens * self.hidden * self.dropout
        is_relu = self.activation == "relu" and not self.gated
        split = wide * ((3 if self.gated else 1) + self.inner_dropout)
        split += on.kept_by_linears(
            self.intermediate, in_attention=False, is_there=is_relu
        )
        split += on.all_tokens * self.intermediate * self.inner_dropout
        inner = divided((3 if self.gated else 2) * wide, on.tensor)
        passes = inner + 2 * reads, inner + 4 * reads
        return Needs(reads, kept + mask, split, 0, *passes)


class Experts(Layer, frozen=True, tag="experts"):
    """A mixture of experts: a router, and gated layers of which each token takes some.

    Jiang et al. 2024 (Mixtral of Experts), section 2.1. Tokens are sorted by expert,
    and one grouped product has all experts, as Transformers and serving engines do it.

    Attributes:
        shared: width of what each token takes beside them (DeepSeek-AI 2024, section
            2.2), all shared experts together.
        bias: of experts and router.
        clamped: gate and product are bounded before they are multiplied (gpt-oss).
        router_in_fp32: the router reads a copy in fp32.
    """

    hidden: Size
    intermediate: Size
    experts: Few
    active: Few
    shared: NoneOrMore = 0
    bias: bool = False
    clamped: bool = False
    router_in_fp32: bool = False

    def linears(self, tensor: int = 1) -> tuple[tuple[int, int], ...]:
        """Those of the shared experts: adapters are put on layers of their own."""
        if not self.shared:
            return ()
        return Mlp(self.hidden, self.shared, "silu", gated=True).linears(tensor)

    def expert_matrices(self, tensor: int = 1) -> int:
        """3·h·f for each expert, split by f."""
        inner = divided(self.intermediate, tensor)
        return 3 * self.experts * self.hidden * inner

    def matrices(self, tensor: int = 1) -> int:
        return super().matrices(tensor) + self.expert_matrices(tensor)

    def parameters(self, tensor: int = 1) -> int:
        """The matrices, h for each expert in the router, and biases."""
        inner = divided(self.intermediate, tensor)
        biases = self.experts * (2 * inner + self.hidden + 1) * self.bias
        return self.matrices(tensor) + self.experts * self.hidden + biases

    def needs(self, on: Pass) -> Needs:
        """What `Mlp` needs with a gate, for each active expert.

        Each reads a gathered copy e·T·h, and gives e·T·h to be weighted. Where gate and
        product are bounded, both are kept before and after that, and the gate's
        sigmoid. The router keeps its input, and its probabilities in fp32; the shares
        of a router in fp32 make fp32 of what they weight. Beside the products a forward
        pass has at once what is gathered, what experts give, that weighted, and in the
        tokens' order; a backward pass three gradients of what is weighted.
        """
        is_trained = on.adapters is None
        reads = on.bytes_of(self.hidden)
        routed = on.bytes_of(self.active * self.intermediate)
        chosen = self.active * reads
        width = 4 if self.router_in_fp32 else on.element_bytes
        weighted = width * on.all_tokens * self.active * self.hidden
        whole = (1 + is_trained) * chosen + 4 * on.all_tokens * self.experts
        split = ((6 if self.clamped else 3) + is_trained) * routed
        if is_trained:
            whole += reads + 4 * on.all_tokens * self.hidden * self.router_in_fp32
        inner = divided((6 if self.clamped else 4) * routed, on.tensor)
        forward = 4 * reads + max(chosen + inner, 2 * (chosen + weighted))
        working = 2 * reads + max(divided(3 * routed, on.tensor), 3 * weighted)
        if self.shared:
            beside = Mlp(self.hidden, self.shared, "silu", gated=True).needs(on)
            split += beside.split_bytes
            whole += 0 if is_trained else beside.whole_bytes
        return Needs(reads, whole, split, 0, working, forward)


class Linear(Layer, frozen=True, tag="linear"):
    """A product with a matrix for each sequence or image: a pooler, a classifier."""

    inputs: Size
    outputs: Size
    bias: bool = True

    def parameters(self, tensor: int = 1) -> int:
        return self.outputs * (self.inputs + self.bias)

    def needs(self, on: Pass) -> Needs:
        """e·b·inputs: a product keeps what it reads."""
        reads = on.element_bytes * on.batch * self.inputs
        return Needs(reads, reads if on.adapters is None else 0)


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
        width = 0 if self.tied else self.hidden
        return divided(self.vocabulary, tensor) * (width + self.bias)

    def needs(self, on: Pass) -> Needs:
        """e·T·h: what the product reads (Korthikanti et al., section 4.3).

        (e + 12)·T·v in the backward pass: logits, and in fp32 log-softmax, its
        gradient, and theirs. Korthikanti et al., section 4.3, count the 4·s·b·v that a
        fused loss needs. PyTorch's `cross_entropy` of `logits.float()` has three of
        them at once while its backward pass is in `log_softmax`, and the caller holds
        the logits. A forward pass has the last token alone, with a copy in fp32.
        """
        reads = on.bytes_of(self.hidden)
        rows = divided(self.vocabulary, on.tensor)
        backward = (on.element_bytes + 12) * on.all_tokens * rows
        forward = (on.element_bytes + 4) * on.batch * rows
        return Needs(reads, reads * (on.adapters is None), 0, 0, backward, forward)


_OfTokens = Embedding | Table | Norm | Mlp | Experts | Linear | Logits
#: what a description may have
AnyLayer = _OfTokens | Attention | LatentAttention | Convolution | Pool

"""The kinds of layers: what each has as parameters, and needs in a pass.

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

#: bounds of what a file may say, so that no product of them is absurd
Size = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
Few = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
NoneOrMore = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]


class Pass(msgspec.Struct, frozen=True):
    """What one micro-batch is computed with."""

    #: sequences or images
    batch: int
    #: of each sequence
    tokens: int
    #: of an image in pixels; 0 for text
    side: int
    #: of an activation
    element_bytes: int
    #: of an element that a norm keeps
    norm_bytes: int
    #: attention never has the scores as a whole in memory
    is_flash: bool
    #: GPUs of tensor parallelism
    tensor: int = 1

    @property
    def all_tokens(self) -> int:
        """Tokens of all sequences (T)."""
        return self.batch * self.tokens

    def bytes_of(self, width: int) -> int:
        """Return e·T·width."""
        return self.element_bytes * self.all_tokens * width


class Needs(msgspec.Struct, frozen=True):
    """What a layer needs in a pass beside its parameters; zero is none.

    Three are kept for the backward pass: what every tensor-parallel GPU has, unless
    tokens are split, too; what is split; and of that what selective recomputation
    computes anew. The last three are of one GPU.
    """

    input_bytes: int = 0
    whole_bytes: int = 0
    split_bytes: int = 0
    core_bytes: int = 0
    #: within the layer, in its backward pass
    backward_bytes: int = 0
    #: the same, in a forward pass that keeps nothing
    forward_bytes: int = 0
    #: keys and values that decoding keeps
    cached_elements: int = 0

    @property
    def kept_bytes(self) -> int:
        return self.whole_bytes + self.split_bytes + self.core_bytes


def divided(count: int, parts: int) -> int:
    """Return the largest of some equal parts."""
    return -(-count // parts)


class Layer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """A layer."""

    @property
    def kind(self) -> str:
        return str(type(self).__struct_config__.tag)

    def parameters(self, tensor: int = 1) -> int:
        """Count the parameters on one of so many tensor-parallel GPUs."""
        raise NotImplementedError

    def needs(self, on: Pass) -> Needs:
        return Needs()


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
        return Needs(8 * on.all_tokens, 8 * on.all_tokens + mask)


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
    autocast, and statistics in fp32: PyTorch's fused `layer_norm` and `rms_norm`.
    """

    size: Size
    bias: bool = False

    def parameters(self, tensor: int = 1) -> int:
        return self.size * (2 if self.bias else 1)

    def needs(self, on: Pass) -> Needs:
        reads = on.norm_bytes * on.all_tokens * self.size
        return Needs(reads, reads + 4 * (2 if self.bias else 1) * on.all_tokens)


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
    window: NoneOrMore = 0
    dropout: bool = False

    def parameters(self, tensor: int = 1) -> int:
        """2·h·a·d + 2·h·k·d and biases (Vaswani et al. 2017, section 3.2.2).

        Megatron-LM splits by heads; with fewer k than GPUs each has one.
        """
        query = divided(self.heads, tensor) * self.head_size
        key = divided(self.kv_heads, tensor) * self.head_size
        count = self.hidden * (2 * (query + key) + self.output_bias)
        count += (query + 2 * key) * self.bias
        return count + 2 * self.head_size * self.head_norm

    def needs(self, on: Pass) -> Needs:
        """11·s·b·h + 5·a·s²·b with dropout (Korthikanti et al., section 4.1).

        The input e·T·h and the mask T·h are whole; queries, keys, values and what the
        last projection reads are split: e·T·(2a + 2k)·d, and what norms of heads read:
        e·T·(a + k)·d. The softmax is e·a·s²·b, with dropout (2e + 1)·a·s²·b.
        FlashAttention (Dao et al. 2022, section 3.1) keeps in its place a statistic of
        each row: 4·a·T in fp32. The backward pass has the gradients of what the core
        reads, of the scores and of the input, and a forward pass as many tensors. The
        cache is 2·T·k·d (Shazeer 2019; Pope et al. 2022, arXiv:2211.05102).
        """
        reads = on.bytes_of(self.hidden)
        width = on.bytes_of((self.heads + self.kv_heads) * self.head_size)
        mask = on.all_tokens * self.hidden * self.dropout
        split = width * (3 if self.head_norm else 2)
        split += 4 * self.heads * on.all_tokens * on.is_flash
        scores = 0 if on.is_flash else on.batch * self.heads * on.tokens**2
        element = on.element_bytes
        core = scores * (2 * element + 1 if self.dropout else element)
        working = divided(2 * width + 2 * element * scores, on.tensor) + 2 * reads
        cached = 0
        if self.causal or self.cross:
            tokens = min(on.tokens, self.window) if self.window else on.tokens
            heads = divided(self.kv_heads, on.tensor)
            cached = 2 * on.batch * tokens * heads * self.head_size
        return Needs(reads, reads + mask, split, core, working, working, cached)


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
        inner, ways = divided(self.intermediate, tensor), 2 if self.gated else 1
        biases = (ways * inner + self.hidden) * self.bias
        return (ways + 1) * self.hidden * inner + biases

    def needs(self, on: Pass) -> Needs:
        """19·s·b·h with dropout (Korthikanti et al., section 4.1: 2 + 8 + 8 + 1).

        f times 2: what the activation reads and gives; ReLU keeps only what it gives.
        With a gate 4: gate, its activation, the other product, and what both give. The
        backward pass has two gradients of width f, three with a gate, and two of width
        h; a forward pass as many tensors.
        """
        reads, wide = on.bytes_of(self.hidden), on.bytes_of(self.intermediate)
        mask = on.all_tokens * self.hidden * self.dropout
        kept = 4 if self.gated else 1 if self.activation == "relu" else 2
        split = wide * (kept + self.inner_dropout)
        split += on.all_tokens * self.intermediate * self.inner_dropout
        working = divided((3 if self.gated else 2) * wide, on.tensor) + 2 * reads
        return Needs(reads, reads + mask, split, 0, working, working)


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

    def needs(self, on: Pass) -> Needs:
        """What `Mlp` needs with a gate, for each active expert.

        Each reads a gathered copy e·T·h, gives e·T·h to be weighted, and adds e·T·h,
        which PyTorch's `index_add` keeps. The router keeps its input, and its
        probabilities in fp32.
        """
        reads = on.bytes_of(self.hidden)
        wide = on.bytes_of(self.active * self.intermediate)
        whole = (3 * self.active + 1) * reads + 4 * on.all_tokens * self.experts
        working = divided(3 * wide, on.tensor) + 2 * reads
        return Needs(reads, whole, 4 * wide, 0, working, working)


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
        return Needs(reads, reads)


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
        return Needs(
            reads, reads, 0, 0, backward, (on.element_bytes + 4) * on.batch * rows
        )


class Convolution(Layer, frozen=True, tag="convolution"):
    """A convolution of images, with the batch norm and activation that follow it.

    Attributes:
        scale: side of the image over side of what it gives.
        stride: side of what it reads over side of what it gives.
        norm: a batch norm follows (Ioffe and Szegedy 2015).
        relu: an in-place ReLU follows.
        reads_image: it is the first, and keeps the images.
    """

    inputs: Size
    outputs: Size
    kernel: Few
    scale: Few
    stride: Few = 1
    groups: Few = 1
    bias: bool = False
    norm: bool = False
    relu: bool = False
    reads_image: bool = False

    def parameters(self, tensor: int = 1) -> int:
        """As of He et al. 2015: kernel²·inputs·outputs / groups, norm 2·outputs."""
        count = self.kernel**2 * (self.inputs // self.groups) * self.outputs
        return count + self.outputs * (self.bias + 2 * self.norm)

    def needs(self, on: Pass) -> Needs:
        """Keep its output once for the norm that reads it, once what the ReLU gives.

        What the convolution itself keeps is its input: the output of the ReLU before
        (Rota Bulò et al. 2018, arXiv:1712.02616). The backward pass has the gradients
        of output and input; what cuDNN needs is not known. A forward pass has a
        residual of the output's size, too.
        """
        side = divided(on.side, self.scale)
        pixel = on.element_bytes * on.batch
        reads = pixel * self.inputs * (side * self.stride) ** 2
        gives = pixel * self.outputs * side**2
        kept = gives * (self.norm + self.relu) + reads * self.reads_image
        return Needs(reads, kept, 0, 0, gives + reads, 2 * gives + reads)


class Pool(Layer, frozen=True, tag="pool"):
    """A max pooling; kept are (e + 8) of each output: itself, and its int64 index.

    That is PyTorch's `max_pool2d_with_indices`.
    """

    channels: Size
    scale: Few

    def parameters(self, tensor: int = 1) -> int:
        return 0

    def needs(self, on: Pass) -> Needs:
        outputs = on.batch * self.channels * divided(on.side, self.scale) ** 2
        return Needs(whole_bytes=outputs * (on.element_bytes + 8))


_OfTokens = Embedding | Table | Norm | Attention | Mlp | Experts | Linear | Logits
#: what a description may have
AnyLayer = _OfTokens | Convolution | Pool

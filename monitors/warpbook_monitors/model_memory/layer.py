"""A layer: what it has as parameters, and needs in a pass.

A description of a model (`description.py`) is made of layers. Letters in formulas: b
batch, s tokens of a sequence, T = b·s, h hidden size, f intermediate size, a heads, k
heads of keys and values, d head size, v vocabulary, e bytes of an element, t
tensor-parallel GPUs.

What is called Korthikanti et al. is "Reducing Activation Recomputation in Large
Transformer Models", 2022 (arXiv:2205.05198); its figures are for e = 2 and f = 4h, and
these formulas give them there.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

#: bounds of what a file may say, so that no product of them is absurd
Size = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
Few = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
NoneOrMore = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]


class Adapters(msgspec.Struct, frozen=True):
    """Those of LoRA (Hu et al. 2021, arXiv:2106.09685); all other weights are frozen.

    A linear layer of i inputs and o outputs has r·(i + o) parameters more.

    Attributes:
        rank: r.
        element_bytes: of a weight; peft copies what a layer reads to this width.
        only_attention: MLPs have none.
    """

    rank: int
    element_bytes: int
    only_attention: bool = False


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
    #: norms are one operator, and not several in Python
    is_fused_norm: bool = True
    #: what is trained; None for all
    adapters: Adapters | None = None
    #: tokens that each token is compared with; 0 for those of the sequence
    keys: int = 0

    @property
    def all_tokens(self) -> int:
        """Tokens of all sequences (T)."""
        return self.batch * self.tokens

    def bytes_of(self, width: int) -> int:
        """Return e·T·width."""
        return self.element_bytes * self.all_tokens * width

    def kept_by_norm(self, width: int, statistics: int = 1) -> int:
        """Return what a norm keeps: its input, and statistics in fp32.

        Written in Python, as that of Transformers, it keeps an fp32 copy of the input,
        and for its weight's gradient the normalized one.
        """
        kept = self.norm_bytes
        if not self.is_fused_norm:
            kept = 4 + self.norm_bytes * (self.adapters is None)
        return self.all_tokens * (kept * width + 4 * statistics)

    def kept_by_linears(
        self, width: int, count: int = 1, *, in_attention: bool, is_there: bool = False
    ) -> int:
        """Return what so many linear layers keep that read one tensor.

        For the gradient of a weight that is what it reads. A frozen one keeps nothing,
        and its adapter what it reads and r wide what is between its two matrices.

        Args:
            width: of what they read.
            count: of the layers.
            in_attention: they are projections of attention.
            is_there: another operator keeps what they read.
        """
        adapters, reads = self.adapters, 0 if is_there else self.bytes_of(width)
        if adapters is None:
            return reads
        if adapters.only_attention and not in_attention:
            return 0
        if adapters.element_bytes != self.element_bytes:
            copies = count * (width + adapters.rank)
            return self.all_tokens * adapters.element_bytes * copies
        return reads + self.bytes_of(count * adapters.rank)


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

    is_attention: ClassVar[bool] = False

    @property
    def kind(self) -> str:
        return str(type(self).__struct_config__.tag)

    def parameters(self, tensor: int = 1) -> int:
        """Count the parameters on one of so many tensor-parallel GPUs."""
        raise NotImplementedError

    def linears(self, tensor: int = 1) -> tuple[tuple[int, int], ...]:
        """Return inputs and outputs of each linear layer that adapters are put on."""
        return ()

    def matrices(self, tensor: int = 1) -> int:
        """Count the parameters that quantization takes."""
        return sum(inputs * outputs for inputs, outputs in self.linears(tensor))

    def adapter_parameters(self, adapters: Adapters) -> int:
        if adapters.only_attention and not self.is_attention:
            return 0
        return adapters.rank * sum(map(sum, self.linears()))

    def needs(self, on: Pass) -> Needs:
        return Needs()

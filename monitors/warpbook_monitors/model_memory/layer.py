"""What every kind of layer tells: its parameters, and the bytes of its passes."""

from __future__ import annotations

from typing import Annotated

import msgspec

#: bounds of what a file may say, so that no product of them is absurd
Size = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
Few = Annotated[int, msgspec.Meta(ge=1, le=10_000)]


class Pass(msgspec.Struct, frozen=True):
    """What one micro-batch is computed with.

    Attributes:
        batch: sequences or images.
        tokens: of each sequence.
        side: of an image in pixels; 0 for text.
        element_bytes: of an activation.
        norm_bytes: of an element that a norm keeps.
        is_flash: attention that never has the scores as a whole in memory.
    """

    batch: int
    tokens: int
    side: int
    element_bytes: int
    norm_bytes: int
    is_flash: bool

    @property
    def all_tokens(self) -> int:
        """Tokens of all sequences (T)."""
        return self.batch * self.tokens


class Saved(msgspec.Struct, frozen=True):
    """Bytes that a layer keeps from its forward to its backward pass.

    Attributes:
        whole_bytes: on every tensor-parallel GPU, unless tokens are split, too.
        split_bytes: split among tensor-parallel GPUs.
        core_bytes: split, too; what selective recomputation computes anew.
    """

    whole_bytes: int = 0
    split_bytes: int = 0
    core_bytes: int = 0


def divided(count: int, parts: int) -> int:
    """Give the largest of some equal parts."""
    return -(-count // parts)


class Layer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """A layer; what a kind does not have is zero."""

    def parameters(self, tensor: int = 1) -> int:
        """Count the parameters on one of so many tensor-parallel GPUs."""
        raise NotImplementedError

    def saved(self, on: Pass) -> Saved:
        """Give what is kept for the backward pass."""
        return Saved()

    def input_bytes(self, on: Pass) -> int:
        """Give the size of what the layer reads."""
        return 0

    def backward_bytes(self, on: Pass, tensor: int) -> int:
        """Give what the backward pass needs for itself while it is in this layer."""
        return 0

    def forward_bytes(self, on: Pass, tensor: int) -> int:
        """Give what the forward pass needs where nothing is kept for a backward."""
        return 0

    def cache_bytes(self, on: Pass, tensor: int, element_bytes: int) -> int:
        """Give what decoding keeps of keys and values."""
        return 0

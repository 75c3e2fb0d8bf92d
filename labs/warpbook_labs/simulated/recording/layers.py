"""What of `torch.nn` a program of tensors may want."""

from __future__ import annotations

from typing import Any

from warpbook_labs.simulated.recording import selecting
from warpbook_labs.simulated.recording.refusing import Told, refuse
from warpbook_labs.simulated.recording.tensor import Tensor


class Embedding(Told):
    """`nn.Embedding`: rows of a matrix that is there."""

    _spoken = "torch.nn.Embedding"
    weight: Tensor
    num_embeddings: int
    embedding_dim: int

    def __init__(self, *sizes: Any, **options: Any) -> None:
        """Refuse, since nothing is learnt."""
        del sizes, options
        refuse("torch.nn.Embedding(...)")

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True) -> Embedding:
        """Take the matrix as it is."""
        if not freeze:
            refuse("gradients (freeze=False)")
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        made = cls.__new__(cls)
        made.weight = embeddings
        made.num_embeddings, made.embedding_dim = embeddings.shape
        return made

    def __call__(self, input: Tensor) -> Tensor:
        """Give rows, copied, in the shape of their numbers."""
        return selecting.embedding(self.weight, input)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """`torch.nn.functional.embedding`: the numbers come first."""
    del padding_idx  # which only gradients know
    return selecting.embedding(weight, input)

"""Rows and elements that are chosen by their numbers, by functions: copies."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook_labs.simulated.recording.dtypes import LONG
from warpbook_labs.simulated.recording.elementwise import broadcast, expanded
from warpbook_labs.simulated.recording.moving import clone
from warpbook_labs.simulated.recording.refusing import refuse
from warpbook_labs.simulated.recording.tensor import (
    Tensor,
    launch,
    new,
    of_array,
    one_device,
    place_of,
    refuse_overlap,
)
from warpbook_labs.simulated.recording.views import dimension, reshape, view


def _target(
    name: str,
    reads: Sequence[Tensor],
    shape: Sequence[int],
    out: Tensor | None,
) -> Tensor:
    """Where elements of the first that is read go."""
    where = one_device(reads)
    if out is None:
        return new(shape, reads[0].dtype, place_of(where))
    one_device([*reads, out])
    for read in reads:
        refuse_overlap(out, read, may_be_same=False)
    if out.dtype is not reads[0].dtype:
        raise RuntimeError(
            f"{name}(): Expected out tensor to have dtype {reads[0].dtype}, but got "
            f"{out.dtype} instead"
        )
    if out.shape != tuple(shape):
        # PyTorch would make it fit, with a warning
        refuse(f"{name} into a tensor of another shape")
    return out


def index_select(
    input: Tensor, dim: int, index: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """Rows by their numbers, copied."""
    if index.dtype.name not in ("int32", "int64"):
        raise IndexError("index_select(): Expected dtype int32 or int64 for index")
    dim = dimension(dim, input.ndim)
    shape = [*input.shape]
    shape[dim] = len(index.array)
    result = _target("index_select", [input, index], shape, out)
    launch("index_select", [input, index], [result], [dim])
    return result


def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of a matrix by their numbers, copied, in the shape of the numbers."""
    del padding_idx, scale_grad_by_freq, sparse  # which only gradients know
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.dtype.name not in ("int32", "int64"):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following "
            f"scalar types: Long, Int; but got {indices.dtype} instead"
        )
    chosen = index_select(weight, 0, reshape(indices, -1))
    return view(chosen, (*indices.shape, *weight.shape[1:]))


def index_copy_(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Rows go where their numbers say, in place."""
    if not isinstance(source, Tensor):
        raise TypeError(
            "index_copy_(): argument 'source' (position 3) must be Tensor, not "
            f"{type(source).__name__}"
        )
    dim = dimension(dim, self.ndim)
    one_device([self, index, source])
    if not (self.ndim and source.ndim and index.ndim):
        refuse("index_copy_ with a tensor of no dimensions", "Use `x[number] = row`. ")
    if (
        index.ndim != 1
        or self.ndim != source.ndim
        or len(index.array) != (source.array.shape[dim])
    ):
        raise IndexError(
            f"index_copy_(): {list(index.shape)} numbers and rows of "
            f"{list(source.shape)} don't fit into {list(self.shape)}"
        )
    if index.dtype is not LONG:
        raise RuntimeError(
            "index_copy_(): Expected a long tensor for index, but got "
            f"{index.dtype.letter_name}"
        )
    if self.dtype is not source.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got "
            f"(self) {self.dtype.letter_name} and (source) {source.dtype.letter_name}"
        )
    slices = ([*t.shape[:dim], *t.shape[dim + 1 :]] for t in (self, source))
    if len({tuple(each) for each in slices}) > 1:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes."
        )
    for read in (source, index):
        refuse_overlap(self, read, may_be_same=False)
    launch("index_copy", [source, index], [self], [dim])
    return self


def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """The same into a copy."""
    return index_copy_(clone(input), dim, index, source)


def gather(
    input: Tensor,
    dim: int,
    index: Tensor,
    *,
    sparse_grad: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Along a side each element by its own number, copied."""
    del sparse_grad  # which only gradients know
    if index.dtype.name not in ("int32", "int64"):
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    return _along("gather", input, dim, index, out)


def _along(
    name: str, input: Tensor, dim: int, index: Tensor, out: Tensor | None
) -> Tensor:
    dim = dimension(dim, input.ndim)
    if max(input.ndim, 1) != max(index.ndim, 1):
        raise RuntimeError(
            "Index tensor must have the same number of dimensions as input tensor"
        )
    pairs = enumerate(zip(index.array.shape, input.array.shape, strict=False))
    for at, (wanted, there) in pairs:
        if at != dim and wanted > there:
            raise RuntimeError(
                f"Size does not match at dimension {at} expected index "
                f"{list(index.shape)} to be no larger than self {list(input.shape)} "
                f"apart from dimension {dim}"
            )
    result = _target(name, [input, index], index.shape, out)
    source, numbers, whole = (
        t if t.ndim else of_array(t, t.array.reshape(1)) for t in (input, index, result)
    )
    launch(name, [source, numbers], [whole], [dim])
    return result


def take_along_dim(
    input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """What `argsort` and its like chose along a side, copied."""
    if indices.dtype is not LONG:
        raise RuntimeError(
            "torch.take_along_dim(): dtype of indices should be Long but got "
            f"{indices.dtype.letter_name}"
        )
    if dim is None:
        input, indices, dim = reshape(input, -1), reshape(indices, -1), 0
    if input.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of "
            f"dimensions, but got {input.ndim} dimensions for input, and "
            f"{indices.ndim} dimensions for indices"
        )
    dim = dimension(dim, input.ndim)
    shapes = [[*t.array.shape] for t in (input, indices)]
    own = [shape[dim] if shape else 1 for shape in shapes]
    for shape in shapes:
        shape[dim : dim + 1] = [1] * bool(shape)
    met = list(broadcast([tuple(shape) for shape in shapes]))
    source, numbers = (
        expanded(t, (*met[:dim], side, *met[dim + 1 :])[: t.ndim])
        for t, side in zip((input, indices), own, strict=True)
    )
    return _along("take_along_dim", source, dim, numbers, out)


def take(input: Tensor, index: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Elements by their numbers, as if all were in one side, copied."""
    if index.dtype is not LONG:
        raise RuntimeError(
            "take(): Expected a long tensor for index, but got "
            f"{index.dtype.letter_name}"
        )
    if not input.array.flags.c_contiguous:
        refuse("take from a tensor that is not contiguous", "Use x.contiguous(). ")
    result = _target("take", [input, index], index.shape, out)
    flat = of_array(input, input.array.reshape(-1))
    launch("index", [flat, index], [result], [0])
    return result

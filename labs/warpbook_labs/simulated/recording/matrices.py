"""Products of matrices."""

from __future__ import annotations

import numpy as np

from warpbook_labs.simulated.recording.dtypes import BOOL
from warpbook_labs.simulated.recording.elementwise import broadcast, compute, expanded
from warpbook_labs.simulated.recording.tensor import (
    Tensor,
    launch,
    new,
    of_array,
    one_device,
    place_of,
    refuse_read_again,
)
from warpbook_labs.simulated.recording.views import flatten, reshape, t, view


def _check(left: Tensor, right: Tensor, *more: Tensor) -> None:
    one_device([left, right, *more])
    for other in (right, *more):
        if other.dtype is not left.dtype:
            raise RuntimeError(
                "expected m1 and m2 to have the same dtype, but got: "
                f"{left.dtype.letter_name.lower()} != {other.dtype.letter_name.lower()}"
            )
    if left.dtype is BOOL or (left.is_cuda and not left.dtype.is_floating_point):
        raise NotImplementedError(
            f"\"addmm_cuda\" not implemented for '{left.dtype.letter_name}'"
        )
    if left.array.shape[-1] != right.array.shape[-2]:
        a, b = ("x".join(map(str, m.array.shape[-2:])) for m in (left, right))
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a} and {b})")


def _target(
    name: str,
    left: Tensor,
    right: Tensor,
    shape: tuple[int, ...],
    out: Tensor | None,
) -> Tensor:
    if out is None:
        return new(shape, left.dtype, place_of(left.device))
    one_device([left, out])
    refuse_read_again(name, out, left, right)
    if out.dtype is not left.dtype:
        raise RuntimeError(
            f"Expected out tensor to have dtype {left.dtype}, but got {out.dtype} "
            "instead"
        )
    if out.array.shape != shape:
        raise RuntimeError(
            f"out has shape {list(out.shape)}, the result {list(shape)}; PyTorch would "
            "give out other memory, with a warning."
        )
    return out


def _rank(name: str, tensor: Tensor, rank: int) -> None:
    if tensor.ndim != rank:
        raise RuntimeError(
            f"{name}(): expected a {rank}D tensor, but got {tensor.ndim}D"
        )


def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of two matrices."""
    _rank("mm", input, 2)
    _rank("mm", mat2, 2)
    _check(input, mat2)
    result = _target(
        "mm", input, mat2, (input.array.shape[0], mat2.array.shape[1]), out
    )
    launch("matmul", [input, mat2], [result])
    return result


def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The products of many pairs."""
    _rank("bmm", input, 3)
    _rank("bmm", mat2, 3)
    if input.array.shape[0] != mat2.array.shape[0]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{input.array.shape[0]}, {input.array.shape[2]}] but got: "
            f"[{mat2.array.shape[0]}, {mat2.array.shape[1]}]."
        )
    _check(input, mat2)
    shape = (*input.array.shape[:2], mat2.array.shape[2])
    result = _target("bmm", input, mat2, shape, out)
    launch("matmul", [input, mat2], [result])
    return result


def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of what may be vectors, matrices or many of them."""
    if not input.ndim or not other.ndim:
        raise RuntimeError(
            "both arguments to matmul need to be at least 1D, but they are "
            f"{input.ndim}D and {other.ndim}D"
        )
    left = of_array(input, input.array[None]) if input.ndim == 1 else input
    right = of_array(other, other.array[:, None]) if other.ndim == 1 else other
    _check(left, right)
    batch = broadcast([left.array.shape[:-2], right.array.shape[:-2]])
    rows, columns = left.array.shape[-2], right.array.shape[-1]
    final = batch
    final += () if input.ndim == 1 else (rows,)
    final += () if other.ndim == 1 else (columns,)
    result = _target("matmul", left, right, final, out)
    whole = of_array(result, result.array)
    if input.ndim == 1:
        whole = of_array(whole, np.expand_dims(whole.array, len(batch)))
    if other.ndim == 1:
        whole = of_array(whole, np.expand_dims(whole.array, -1))
    sides = left.array.shape[-2:], right.array.shape[-2:]
    reads = [expanded(left, batch + sides[0]), expanded(right, batch + sides[1])]
    launch("matmul", reads, [whole])
    return result


def addmm(
    input: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
    out: Tensor | None = None,
) -> Tensor:
    """`beta * input + alpha * (mat1 @ mat2)`."""
    _rank("addmm", mat1, 2)
    _rank("addmm", mat2, 2)
    _check(mat1, mat2, input)
    shape = (mat1.array.shape[0], mat2.array.shape[1])
    result = _target("addmm", mat1, mat2, shape, out)
    if broadcast([input.array.shape, shape]) != shape:
        raise RuntimeError(
            f"The expanded size of the tensor ({list(shape)}) must match the existing "
            f"size ({list(input.shape)})"
        )
    launch("addmm", [expanded(input, shape), mat1, mat2], [result], [beta, alpha])
    return result


def addmm_(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """`addmm`, in place."""
    return addmm(self, mat1, mat2, beta=beta, alpha=alpha, out=self)


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input @ weight.t() + bias`."""
    turned = t(weight)
    if bias is None:
        return matmul(input, turned)
    if input.ndim == 2:
        return addmm(bias, input, turned)
    rows = flatten(input, 0, -2) if input.ndim > 1 else view(input, 1, -1)
    result = addmm(bias, rows, turned)
    return reshape(result, (*input.array.shape[:-1], weight.array.shape[0]))


def mv(input: Tensor, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The product of a matrix and a vector."""
    _rank("mv", input, 2)
    _rank("mv", vec, 1)
    return matmul(input, vec, out=out)


def dot(input: Tensor, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sum of the products of two vectors."""
    _rank("dot", input, 1)
    _rank("dot", tensor, 1)
    if input.array.size != tensor.array.size:
        raise RuntimeError(
            "inconsistent tensor size, expected tensor "
            f"{list(input.shape)} and src {list(tensor.shape)} to have the same "
            "number of elements"
        )
    return matmul(input, tensor, out=out)


def outer(input: Tensor, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """All products of the elements of two vectors."""
    _rank("outer", input, 1)
    _rank("outer", vec2, 1)
    return compute("mul", [of_array(input, input.array[:, None]), vec2], out=out)


def baddbmm(
    input: Tensor,
    batch1: Tensor,
    batch2: Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
    out: Tensor | None = None,
) -> Tensor:
    """`beta * input + alpha * (batch1 @ batch2)`, of many pairs."""
    _rank("baddbmm", batch1, 3)
    _rank("baddbmm", batch2, 3)
    _check(batch1, batch2, input)
    shape = (*batch1.array.shape[:2], batch2.array.shape[2])
    result = _target("baddbmm", batch1, batch2, shape, out)
    launch("addmm", [expanded(input, shape), batch1, batch2], [result], [beta, alpha])
    return result


def baddbmm_(
    self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """`baddbmm`, in place."""
    return baddbmm(self, batch1, batch2, beta=beta, alpha=alpha, out=self)

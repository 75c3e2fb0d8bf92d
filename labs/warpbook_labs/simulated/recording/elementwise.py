"""Operations that go element by element, with the types and errors of PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from warpbook_labs.simulated.recording.dtypes import (
    BOOL,
    FLOAT,
    DType,
    of_number,
    result_type,
)
from warpbook_labs.simulated.recording.tensor import (
    Tensor,
    dense_strides,
    launch,
    new,
    of_array,
    one_device,
    place_of,
    stretched,
)

#: the type of a result: as its operands meet, at least float, or bool
Kind = Literal["same", "float", "bool"]

UNARY: dict[str, Kind] = {
    **dict.fromkeys(
        ["cos", "erf", "exp", "log", "log2", "reciprocal", "rsqrt", "sigmoid"], "float"
    ),
    **dict.fromkeys(["sin", "sqrt", "tanh"], "float"),
    **dict.fromkeys(
        ["abs", "ceil", "floor", "neg", "relu", "round", "sign", "square"], "same"
    ),
    "bitwise_not": "same",
    **dict.fromkeys(["isfinite", "isinf", "isnan", "logical_not"], "bool"),
}
BINARY: dict[str, Kind] = {
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], "same"),
    **dict.fromkeys(["bitwise_left_shift", "bitwise_right_shift"], "same"),
    **dict.fromkeys(["floor_divide", "maximum", "minimum", "mul", "pow"], "same"),
    "remainder": "same",
    **dict.fromkeys(["eq", "ge", "gt", "le", "lt", "ne"], "bool"),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor"], "bool"),
}
_TENSORS_ONLY = ("maximum", "minimum", "logical_and", "logical_or", "logical_xor")
#: NumPy's letters of the types that an operation knows, where it knows not all
_KNOWN = {
    **dict.fromkeys(["abs", "ceil", "floor", "relu", "round"], "uif"),
    **dict.fromkeys(["gelu", "gelu_tanh", "lerp", "silu"], "f"),
    **dict.fromkeys(["bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor"], "bui"),
    **dict.fromkeys(["bitwise_left_shift", "bitwise_right_shift"], "ui"),
}
_CATEGORIES = {"b": 0, "u": 1, "i": 1, "f": 2}

Operand = Any


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape in which they meet.

    Raises:
        RuntimeError: they don't, in PyTorch's words.
    """
    result: tuple[int, ...] = ()
    for shape in shapes:
        longest = max(len(result), len(shape))
        a = (1,) * (longest - len(result)) + result
        b = (1,) * (longest - len(shape)) + shape
        for at in reversed(range(longest)):
            if a[at] != b[at] and 1 not in (a[at], b[at]):
                raise RuntimeError(
                    f"The size of tensor a ({a[at]}) must match the size of tensor b "
                    f"({b[at]}) at non-singleton dimension {at}"
                )
        result = tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))
    return result


def expanded(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """It, broadcast."""
    if tensor.array.shape == shape:
        return tensor
    return of_array(tensor, stretched(tensor.array, shape))


def type_of(operands: Sequence[Operand]) -> DType:
    """The type in which tensors and numbers meet."""
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    return result_type(
        [tensor.dtype for tensor in tensors if tensor.ndim],
        [tensor.dtype for tensor in tensors if not tensor.ndim],
        [of_number(o) for o in operands if not isinstance(o, Tensor)],
    )


def check_target(target: Tensor, shape: tuple[int, ...], dtype: DType) -> None:
    """Refuse what can't be written into a tensor that is there."""
    if target.array.shape != shape:
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast shape "
            f"{list(shape)}"
        )
    kinds = dtype.numpy.kind, target.array.dtype.kind
    if _CATEGORIES[kinds[0]] > _CATEGORIES[kinds[1]]:
        raise RuntimeError(
            f"result type {dtype.letter_name} can't be cast to the desired output type "
            f"{target.dtype.letter_name}"
        )


def compute(
    name: str,
    operands: Sequence[Operand],
    kind: Kind = "same",
    out: Tensor | None = None,
    conditions: int = 0,
) -> Tensor:
    """One kernel that goes element by element.

    Args:
        name: the operation.
        operands: tensors and numbers of Python.
        kind: what type the result has.
        out: where it goes; memory of its own if None.
        conditions: so many operands at first have no say in the type.
    """
    operands = [o.item() if isinstance(o, np.generic) else o for o in operands]
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    if not tensors:
        raise TypeError(f"{name}(): an argument must be Tensor, not numbers alone")
    _check_types(name, operands)
    device = one_device(tensors if out is None else [*tensors, out])
    shape = broadcast([tensor.array.shape for tensor in tensors])
    dtype = type_of(operands[conditions:])
    if kind == "float" and not dtype.is_floating_point:
        dtype = FLOAT
    elif kind == "bool":
        dtype = BOOL
    if out is None:
        result = new(shape, dtype, place_of(device), _order(tensors, shape))
    else:
        check_target(out, shape, dtype)
        result = out
    numbers: list[float] = []
    for place, operand in enumerate(operands):
        if not isinstance(operand, Tensor):
            numbers += [float(operand), place]
    launch(name, [expanded(tensor, shape) for tensor in tensors], [result], numbers)
    return result


def _check_types(name: str, operands: Sequence[Operand]) -> None:
    """Refuse what PyTorch has for no such types."""
    if len(operands) == 2 and name in _TENSORS_ONLY:
        if not isinstance(operands[1], Tensor):
            raise TypeError(
                f"{name}(): argument 'other' (position 1) must be Tensor, not "
                f"{type(operands[1]).__name__}"
            )
    if name in ("sub", "neg") and BOOL in [type_of([one]) for one in operands]:
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If "
            "you are trying to invert a mask, use the `~` or `logical_not()` operator "
            "instead."
        )
    given = [operand.dtype for operand in operands if isinstance(operand, Tensor)]
    met = [*given, type_of(operands)]
    bad = [kind for kind in met if kind.numpy.kind not in _KNOWN.get(name, "buif")]
    if bad:
        raise NotImplementedError(
            f"\"{name}\" not implemented for '{bad[0].letter_name}'"
        )
    if name == "lerp" and len(set(given)) > 1:
        raise RuntimeError(
            f"expected dtype {given[0].letter_name} but got dtype "
            f"{given[1].letter_name}"
        )


def _order(tensors: Sequence[Tensor], shape: tuple[int, ...]) -> list[int] | None:
    """The strides of a result: those of the first operand that has its shape."""
    for tensor in tensors:
        if tensor.array.shape == shape:
            return dense_strides(tensor.array)
    return None


def add(
    input: Operand, other: Operand, *, alpha: float = 1, out: Tensor | None = None
) -> Tensor:
    """`input + alpha * other`."""
    if alpha == 1:
        return compute("add", [input, other], out=out)
    return compute("add_scaled", [input, other, alpha], out=out)


def sub(
    input: Operand, other: Operand, *, alpha: float = 1, out: Tensor | None = None
) -> Tensor:
    """`input - alpha * other`."""
    if alpha == 1:
        return compute("sub", [input, other], out=out)
    return compute("add_scaled", [input, other, -alpha], out=out)


def div(
    input: Operand,
    other: Operand,
    *,
    rounding_mode: str | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """`input / other`."""
    if rounding_mode is None:
        return compute("div", [input, other], "float", out)
    if rounding_mode == "floor":
        return compute("floor_divide", [input, other], out=out)
    if rounding_mode == "trunc":
        return compute("trunc_divide", [input, other], out=out)
    raise RuntimeError(
        "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found "
        f"'{rounding_mode}'"
    )


def clamp(
    input: Tensor,
    min: Operand = None,
    max: Operand = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Each element at least `min` and at most `max`."""
    if min is None and max is None:
        raise RuntimeError(
            "torch.clamp: At least one of 'min' or 'max' must not be None"
        )
    if max is None:
        return compute("clamp_min", [input, min], out=out)
    if min is None:
        return compute("clamp_max", [input, max], out=out)
    return compute("clamp", [input, min, max], out=out)


def clamp_min(input: Tensor, min: Operand, *, out: Tensor | None = None) -> Tensor:
    """Each element at least `min`."""
    return clamp(input, min, out=out)


def clamp_max(input: Tensor, max: Operand, *, out: Tensor | None = None) -> Tensor:
    """Each element at most `max`."""
    return clamp(input, None, max, out=out)


def lerp(
    input: Tensor, end: Tensor, weight: Operand, *, out: Tensor | None = None
) -> Tensor:
    """`input + weight * (end - input)`."""
    return compute("lerp", [input, end, weight], out=out)


def addcmul(
    input: Tensor,
    tensor1: Tensor,
    tensor2: Tensor,
    *,
    value: float = 1,
    out: Tensor | None = None,
) -> Tensor:
    """`input + value * tensor1 * tensor2`."""
    if type_of([input, tensor1, tensor2]) is BOOL:
        raise NotImplementedError("\"addcmul\" not implemented for 'Bool'")
    return compute("addcmul", [input, tensor1, tensor2, value], out=out)


def addcdiv(
    input: Tensor,
    tensor1: Tensor,
    tensor2: Tensor,
    *,
    value: float = 1,
    out: Tensor | None = None,
) -> Tensor:
    """`input + value * tensor1 / tensor2`."""
    if not type_of([tensor1, tensor2]).is_floating_point:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported; use floats."
        )
    return compute("addcdiv", [input, tensor1, tensor2, value], out=out)


def nan_to_num(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Numbers where there is NaN or infinity: 0, and the largest that there are."""
    numbers: list[float] = [False, False, False]
    if input.dtype.is_floating_point:
        most = float(np.finfo(input.dtype.numpy).max)
        given = zip((nan, posinf, neginf), (0.0, most, -most), strict=True)
        numbers = [usual if number is None else number for number, usual in given]
    return compute("nan_to_num", [input, *numbers], out=out)


def where(
    condition: Tensor, input: Operand, other: Operand, *, out: Tensor | None = None
) -> Tensor:
    """From `input` where the condition holds, else from `other`."""
    if condition.dtype is not BOOL:
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with "
            f"dtype {condition.dtype.letter_name}"
        )
    _fill_numbers([input, other], condition)
    return compute("where", [condition, input, other], out=out, conditions=1)


def _fill_numbers(operands: Sequence[Operand], beside: Tensor) -> None:
    """Have a kernel for each number: on a GPU PyTorch makes it a tensor there."""
    for operand in operands:
        if beside.is_cuda and not isinstance(operand, Tensor):
            number = new((), type_of(operands), place_of(beside.device))
            launch("fill", [], [number], [float(operand)])


def masked_fill_(self: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """`value` where the mask holds, in place."""
    if mask.dtype is not BOOL:
        raise RuntimeError(
            "masked_fill_ only supports boolean masks, but got mask with dtype "
            f"{mask.dtype.letter_name}"
        )
    return compute("where", [mask, value, self], out=self, conditions=1)


def fill_(self: Tensor, value: Operand) -> Tensor:
    """One number everywhere."""
    if isinstance(value, Tensor):
        return _fill_of(self, value)
    if isinstance(value, np.generic):
        value = value.item()
    # one number may be written where elements share a place
    array = self.array
    once = (slice(None) if step else slice(1) for step in array.strides)
    # of a single number NumPy would give no array without the last
    target = of_array(self, array[tuple([*once, ...])]) if array.size else self
    launch("fill", [], [target], [float(value)])
    return self


def _fill_of(self: Tensor, value: Tensor) -> Tensor:
    """The number of a tensor everywhere."""
    if value.ndim:
        raise RuntimeError(
            "fill_ only supports 0-dimension value tensor but got tensor with "
            f"{value.ndim} dimensions."
        )
    # a kernel takes a number of the host along, and not the other way round
    near = value if self.is_cuda else value.cpu()
    launch("copy", [expanded(near, self.array.shape)], [self])
    return self


def zero_(self: Tensor) -> Tensor:
    """Zeros everywhere."""
    return fill_(self, 0)


def power(input: Operand, exponent: Operand, *, out: Tensor | None = None) -> Tensor:
    """`input ** exponent`."""
    is_whole = not type_of([input, exponent]).is_floating_point
    if is_whole and not isinstance(exponent, Tensor) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    return compute("pow", [input, exponent], out=out)

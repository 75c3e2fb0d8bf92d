"""Convolutions, with what `torch.backends.cudnn` allows them."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook_labs.simulated.convolution import output_shape
from warpbook_labs.simulated.recording import layout
from warpbook_labs.simulated.recording.backends import (
    CUDNN,
    are_deterministic_algorithms_enabled,
    precision,
)
from warpbook_labs.simulated.recording.elementwise import add
from warpbook_labs.simulated.recording.moving import contiguous
from warpbook_labs.simulated.recording.recorder import current
from warpbook_labs.simulated.recording.refusing import refuse
from warpbook_labs.simulated.recording.tensor import (
    Tensor,
    launch,
    new,
    of_array,
    one_device,
    place_of,
)


def _single(name: str, given: int | str | Sequence[int]) -> int:
    if isinstance(given, int):
        return given
    if isinstance(given, str) or len(set(given)) != 1:
        refuse(f"conv2d with {name}={given!r}; it has one number for both sides")
    return given[0]


def _numbers(stride: int, padding: int) -> list[float]:
    where = current().settings.get("disabled in line")
    if where is not None:
        refuse(
            "convolutions with torch.backends.cudnn.enabled = False",
            f"Line {where} set it, as `flags()` does: it sets `enabled=False` unless "
            "you name it. ",
        )
    return [
        stride,
        padding,
        CUDNN.benchmark,
        CUDNN.deterministic or are_deterministic_algorithms_enabled(),
        precision("conv") == "tf32",
    ]


def _same_types(left: Tensor, right: Tensor) -> None:
    if left.dtype is not right.dtype:
        raise RuntimeError(
            f"Input type ({left.dtype}) and weight type ({right.dtype}) should be the "
            "same"
        )
    if not left.dtype.is_floating_point:
        refuse(f"convolutions of {left.dtype}")


def _in_order(tensor: Tensor) -> Tensor:
    """It, in one of the two orders that convolutions know."""
    if layout.is_ordered(tensor, layout.CHANNELS_LAST):
        return tensor
    return contiguous(tensor)


def _is_channels_last(tensor: Tensor) -> bool:
    return layout.is_ordered(tensor, layout.CHANNELS_LAST) and not layout.is_ordered(
        tensor
    )


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve images with filters."""
    if groups != 1 or _single("dilation", dilation) != 1:
        refuse("conv2d with groups or dilation")
    one_device([input, weight, *([] if bias is None else [bias])])
    _same_types(input, weight)
    steps, around = _single("stride", stride), _single("padding", padding)
    try:
        shape = output_shape(input.shape, weight.shape, steps, around)
    except ValueError as problem:
        raise RuntimeError(str(problem)) from None
    input, weight = _in_order(input), _in_order(weight)
    is_last = _is_channels_last(input) or _is_channels_last(weight)
    strides = layout.strides(shape, layout.CHANNELS_LAST) if is_last else None
    result = new(shape, input.dtype, place_of(input.device), strides)
    launch("conv2d", [input, weight], [result], _numbers(steps, around))
    if bias is not None:
        column = of_array(bias, bias.array.reshape(1, -1, 1, 1))
        add(result, column, out=result)
    return result


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
) -> Tensor:
    """The gradient of the filters."""
    one_device([input, grad_output])
    _same_types(input, grad_output)
    steps, around = _single("stride", stride), _single("padding", padding)
    try:
        shape = output_shape(input.shape, weight_size, steps, around)
    except ValueError as problem:
        raise RuntimeError(str(problem)) from None
    if shape != tuple(grad_output.shape):
        raise RuntimeError(
            f"Expected grad_output of shape {list(shape)}, but got "
            f"{list(grad_output.shape)}"
        )
    input, grad_output = _in_order(input), _in_order(grad_output)
    is_last = _is_channels_last(input) or _is_channels_last(grad_output)
    strides = layout.strides(weight_size, layout.CHANNELS_LAST) if is_last else None
    result = new(weight_size, input.dtype, place_of(input.device), strides)
    launch("conv2d_weight", [input, grad_output], [result], _numbers(steps, around))
    return result

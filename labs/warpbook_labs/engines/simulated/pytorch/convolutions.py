"""Convolutions, with what `torch.backends.cudnn` allows them.

Those that the machine's model knows are recorded by its names; others as any ATen call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from warpbook_labs.engines.simulated.pytorch.copies import to_copy
from warpbook_labs.engines.simulated.pytorch.current import refuse
from warpbook_labs.engines.simulated.pytorch.machine import Machine

_LAST = torch.channels_last
_ONLY_WEIGHT = [False, True, False]
_FLOATS = (torch.float16, torch.float32)


def convolution(
    machine: Machine, func: Any, x: Any, weight: Any, bias: Any, *how: Any
) -> Any:
    numbers = _numbers(x, weight, how)
    if numbers is None:
        return machine.call(func, (x, weight, bias, *how), {})
    if x.dtype != weight.dtype:
        raise RuntimeError(
            f"Input type ({x.type()}) and weight type ({weight.type()}) should be the "
            "same"
        )
    x, weight = _in_order(machine, x), _in_order(machine, weight)

    def compute(x: Any, weight: Any) -> Any:
        return _wide(func, x, weight, None, *how)

    result = _launched(machine, "conv2d", compute, (x, weight), numbers)
    if bias is not None:
        column = torch.ops.aten.view.default
        column = machine.call(column, (bias, [1, -1, 1, 1]), {})
        machine.call(torch.ops.aten.add_.Tensor, (result, column), {})
    return result


def backward(
    machine: Machine, func: Any, slopes: Any, x: Any, weight: Any, *rest: Any
) -> Any:
    *how, wanted = rest
    numbers = _numbers(x, weight, how[1:])
    if numbers is None or list(wanted) != _ONLY_WEIGHT:
        # a gradient needs the other operand; of its own it asks the shape alone
        if not wanted[0]:
            weight = _of_shape(machine, slopes, weight.shape)
        if not wanted[1]:
            x = _of_shape(machine, slopes, x.shape)
        return machine.call(func, (slopes, x, weight, *rest), {})
    x, slopes = _in_order(machine, x), _in_order(machine, slopes)
    shape = weight.shape

    def compute(x: Any, slopes: Any) -> Any:
        like = torch.empty(shape, dtype=x.dtype)
        return _wide(func, slopes, x, like, *rest)[1]

    made = _launched(machine, "conv2d_weight", compute, (x, slopes), numbers)
    return None, made, None


def _of_shape(machine: Machine, known: Any, shape: Sequence[int]) -> Any:
    """Give a view of one number that is known, in the place of what nobody reads."""
    as_strided = torch.ops.aten.as_strided.default
    return machine.call(as_strided, (known, [*shape], [0] * len(shape)), {})


def _numbers(x: Any, weight: Any, how: Sequence[Any]) -> list[float] | None:
    """Give what the model of convolutions takes; None if it knows no such one."""
    stride, padding, dilation, is_transposed, _, groups = how
    is_known = (
        x.is_cuda
        and x.dim() == 4
        and x.dtype in _FLOATS
        and len({*stride}) == len({*padding}) == 1
        and {*dilation} == {1}
        and not is_transposed
        and groups == 1
    )
    if not is_known:
        return None
    cudnn = torch.backends.cudnn
    if not cudnn.enabled:
        refuse(
            "convolutions with torch.backends.cudnn.enabled = False",
            "`flags()` sets it, too, unless you name it: `flags(enabled=True, ...)`.",
        )
    is_deterministic = (
        cudnn.deterministic or torch.are_deterministic_algorithms_enabled()
    )
    is_tf32 = cudnn.conv.fp32_precision == "tf32"
    return [stride[0], padding[0], cudnn.benchmark, is_deterministic, is_tf32]


def _in_order(machine: Machine, tensor: Any) -> Any:
    """Give it in one of the two orders that convolutions know."""
    if tensor.is_contiguous(memory_format=_LAST) or tensor.is_contiguous():
        return tensor
    return to_copy(machine, None, tensor, memory_format=torch.contiguous_format)


def _launched(
    machine: Machine,
    name: str,
    compute: Callable[..., Any],
    reads: Sequence[Any],
    numbers: Sequence[float],
) -> Any:
    inputs = [machine.memories.alias(read) for read in reads]
    is_last = any(
        read.is_contiguous(memory_format=_LAST) and not read.is_contiguous()
        for read in reads
    )
    order = _LAST if is_last else torch.contiguous_format
    cpu = compute(*inputs).clone(memory_format=order)
    result = machine.memories.adopt(cpu, "device")
    machine.launch(name, reads, [result], numbers)
    graph = machine.order.captured
    if graph is not None:
        graph.append(functools.partial(_again, compute, inputs, cpu))
    return result


def _again(compute: Callable[..., Any], inputs: Sequence[Any], cpu: Any) -> None:
    cpu.copy_(compute(*inputs))


def _wide(func: Any, *args: Any) -> Any:
    """Compute with sums of FP32, as a GPU does."""
    dtype = args[0].dtype
    wide = [arg.float() if isinstance(arg, torch.Tensor) else arg for arg in args]
    result = func(*wide)
    if isinstance(result, tuple):
        return tuple(
            tensor if tensor is None else tensor.to(dtype) for tensor in result
        )
    return result.to(dtype)


def install() -> None:
    Machine.special["convolution"] = convolution
    Machine.special["convolution_backward"] = backward

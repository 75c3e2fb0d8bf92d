"""Calls that PyTorch makes otherwise for a GPU than for the CPU."""

from __future__ import annotations

from typing import Any

import torch

from warpbook_labs.engines.simulated.pytorch import convolutions, copies
from warpbook_labs.engines.simulated.pytorch.copies import to_copy
from warpbook_labs.engines.simulated.pytorch.current import refuse
from warpbook_labs.engines.simulated.pytorch.machine import Machine


def scalar(machine: Machine, func: Any, x: Any) -> Any:
    """`x.item()`, and all that asks Python for a number."""
    machine.read(x, "item")
    return func(machine.memories.alias(x))


def equal(machine: Machine, func: Any, x: Any, other: Any) -> Any:
    machine.read(x, "equal")
    machine.read(other, "equal")
    return func(machine.memories.alias(x), machine.memories.alias(other))


def softmax(machine: Machine, func: Any, x: Any, dim: int, is_wide: bool) -> Any:
    """Half precision in, FP32 out, is asked of a GPU only."""
    if is_wide:
        x = to_copy(machine, None, x, dtype=torch.float32)
    return machine.call(func, (x, dim, False), {})


def lift(machine: Machine, func: Any, x: Any) -> Any:
    """A tensor that was made of Python's numbers: constants of the host."""
    machine.memories.of(x)
    return x


def record_stream(machine: Machine, func: Any, x: Any, stream: Any) -> None:
    """Tell the allocator that a stream uses it."""
    if not x.is_cuda:
        raise RuntimeError("record_stream is not supported by tensors of the host")
    machine.use_on(x, stream.stream_id)


def index_put(
    machine: Machine,
    func: Any,
    x: Any,
    indices: Any,
    values: Any,
    *rest: Any,
    **more: Any,
) -> Any:
    """`x[indices] = values`, where a mask and one number are a `masked_fill`."""
    mask, *others = indices
    is_mask = mask is not None and mask.dtype == torch.bool and not others
    if is_mask and values.numel() == 1 and not any((*rest, *more.values())):
        if x.is_cuda and not mask.is_cuda:
            mask = to_copy(machine, None, mask, device=x.device)
        shape = [*mask.shape, *[1] * (x.dim() - mask.dim())]
        mask = machine.call(torch.ops.aten.view.default, (mask, shape), {})
        value = machine.call(torch.ops.aten.view.default, (values, []), {})
        fill = torch.ops.aten.masked_fill_.Tensor
        return machine.call(fill, (x, mask, value), {})
    return machine.call(func, (x, indices, values, *rest), more)


def lstm(machine: Machine, func: Any, *args: Any, **kwargs: Any) -> Any:
    """A cell that is one kernel of CUDA's alone."""
    refuse("fused LSTM or GRU cells", "Write the cell of products and sums.")


def install() -> None:
    """Have machines do all such calls so."""
    Machine.special.update(
        {
            "_local_scalar_dense": scalar,
            "equal": equal,
            "index_put_": index_put,
            "_index_put_impl_": index_put,
            "_softmax": softmax,
            "_log_softmax": softmax,
            "lift_fresh": lift,
            "record_stream": record_stream,
            "_thnn_fused_lstm_cell": lstm,
            "_thnn_fused_gru_cell": lstm,
        }
    )
    copies.install()
    convolutions.install()

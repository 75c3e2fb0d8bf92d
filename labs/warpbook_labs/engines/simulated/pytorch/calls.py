"""What PyTorch's schema says of an ATen call, and how the call is written down.

A program names tensors by their place among what a launch reads ("r") and writes ("w");
the rest are plain numbers, texts and a few constants, in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch

from warpbook_labs.engines.simulated.pytorch.current import refuse

#: new memory that nobody writes
EMPTY = frozenset(
    "empty empty_strided empty_like new_empty new_empty_strided empty_permuted".split()
)
#: what they fill memory with; None: the number that they are given
FILLS: dict[str, float | None] = {
    **dict.fromkeys(("zeros", "zeros_like", "new_zeros", "zero_", "zero"), 0.0),
    **dict.fromkeys(("ones", "ones_like", "new_ones"), 1.0),
    **dict.fromkeys(("full", "full_like", "new_full", "fill_", "scalar_tensor")),
}
#: calls by chance, which are given a seed
RANDOM = frozenset(
    "bernoulli bernoulli_ exponential_ multinomial native_dropout normal_ rand "
    "rand_like randint randint_like randn randn_like random_ randperm rrelu_with_noise "
    "uniform_".split()
)
#: they write without reading what was there, as those do whose result is an `out`
_ONLY_WRITE = RANDOM | frozenset(
    "_index_put_impl_ index_copy_ index_fill_ index_put_ masked_scatter_ "
    "scatter_".split()
)
#: their indices of the CPU are copied to the GPU
INDEXED = frozenset("index index_put index_put_ _index_put_impl_".split())
#: how large their result is depends on numbers
OF_ANY_SIZE = frozenset(
    "_unique _unique2 bincount masked_select nonzero repeat_interleave "
    "unique_consecutive unique_dim".split()
)
_MOST_TEXT = 32
COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd


class Kind:
    """What the schema says of one overload."""

    def __init__(self, func: Any) -> None:
        schema = func._schema
        self.name: str = schema.name.removeprefix("aten::")
        #: it only gives a tensor another shape, such as `t_()`
        self.is_only_shape: bool = torch.Tag.inplace_view in func.tags
        #: made of other calls; PyTorch takes it apart itself but in inference mode
        self.is_composite: bool = torch._C._dispatch_has_kernel_for_dispatch_key(
            func.name(), COMPOSITE
        )
        self.is_of_aten: bool = schema.name.startswith("aten::")
        #: arguments that it writes, by place or name
        self.written: list[int | str] = [
            argument.name if argument.kwarg_only else place
            for place, argument in enumerate(schema.arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
        ]
        #: for each result, whether it is one of these
        self.gives_written: list[bool] = [
            result.alias_info is not None and result.alias_info.is_write
            for result in schema.returns
        ]
        self.has_device: bool = any(
            argument.name == "device" for argument in schema.arguments
        )
        self.only_writes = self.name in _ONLY_WRITE or any(
            isinstance(where, str) for where in self.written
        )


@lru_cache(None)
def kind_of(func: Any) -> Kind:
    """Give what is known of an overload."""
    return Kind(func)


def tensors_in(*held: Any) -> list[Any]:
    """Give the tensors among arguments or results, in their order."""
    tensors: list[Any] = []
    for value in held:
        if isinstance(value, torch.Tensor):
            tensors.append(value)
        elif isinstance(value, list | tuple):
            tensors += tensors_in(*value)
        elif isinstance(value, dict):
            tensors += tensors_in(*value.values())
    return tensors


def with_each(function: Callable[[Any], Any], held: Any) -> Any:
    if isinstance(held, torch.Tensor):
        return function(held)
    if isinstance(held, list | tuple):
        return type(held)([with_each(function, part) for part in held])
    if isinstance(held, dict):
        return {name: with_each(function, part) for name, part in held.items()}
    return held


def written_down(
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    reads: Sequence[Any],
    written: Sequence[Any],
) -> str:
    """Write the arguments of a call as JSON.

    Args:
        reads: tensors that are named by "r" and their place here.
        written: those that are named by "w".
    """
    places = {id(tensor): {"r": place} for place, tensor in enumerate(reads)}
    places.update((id(tensor), {"w": at}) for at, tensor in enumerate(written))

    def written_value(value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, torch.Tensor):
            return places[id(value)]
        if isinstance(value, str) and len(value) <= _MOST_TEXT:
            return value
        if isinstance(value, list | tuple):
            return [written_value(part) for part in value]
        if isinstance(value, torch.dtype | torch.memory_format | torch.layout):
            return {"c": str(value).removeprefix("torch.")}
        refuse(f"arguments of the type {type(value).__name__}")

    kept = {
        name: written_value(value)
        for name, value in kwargs.items()
        if value is not None and name not in ("device", "generator")
    }
    return json.dumps([written_value(list(args)), kept])

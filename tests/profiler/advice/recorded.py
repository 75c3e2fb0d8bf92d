"""Programs run on tensors without memory, as the traces that a GPU would leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.profiler.advice.program import Cell

#: of an H200, in bytes per ns; an operator that is none of these passes over memory
_BYTES = 3_900
_PASSES = {"aten::sort": 60}
_DTYPES = {torch.float32: "float", torch.bfloat16: "c10::BFloat16"}
_PRODUCTS = ("aten::mm", "aten::bmm", "aten::addmm")
_FILLS = ("aten::zeros", "aten::ones", "aten::full", "aten::zeros_like")
_VIEWS = ("aten::_unsafe_view", "aten::lift_fresh")
_CALLING = ("matmul", "linear", "einsum", "one_hot", "softmax")
#: of a product, in operations per ns: float32, and odd sizes of half precision
_FLOPS = 50_000


def recorded(source: str, names: dict[str, Any]) -> Cell:
    """Run a cell whose tensors are on the meta device; give its trace.

    Args:
        source: the cell.
        names: its namespace, which it may change.
    """
    cell = Cell(source)
    with _Recorder(cell), _Around(cell):
        exec(source, names)
    cell.wait()
    return cell


class _Recorder(TorchDispatchMode):
    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self._cell = cell

    def __torch_dispatch__(
        self,
        function: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        given: Callable[..., Any] = function
        result = given(*args, **(kwargs or {}))
        schema = function._schema
        operator = schema.name
        tensors = [one for one in tree_leaves(args) if isinstance(one, torch.Tensor)]
        made = [one for one in tree_leaves(result) if isinstance(one, torch.Tensor)]
        values = [
            args[at]
            if at < len(args)
            else (kwargs or {}).get(one.name, one.default_value)
            for at, one in enumerate(schema.arguments)
        ]
        if operator in _FILLS or operator == "aten::_to_copy":
            # what of it launches a kernel
            operator = "aten::fill_" if operator in _FILLS else "aten::copy_"
            values = [made[0], *tensors]
        dims = [list(v.shape) if isinstance(v, torch.Tensor) else [] for v in values]
        scalars = ["" if isinstance(v, torch.Tensor) else _text(v) for v in values]
        dtype = _DTYPES.get(tensors[0].dtype, "float") if tensors else "float"
        with self._cell.operator(operator, tuple(dims), dtype, scalars=scalars):
            is_view = function.is_view or operator in _VIEWS
            if made and not is_view and "empty" not in operator:
                self._cell.kernel(_took(operator, [*tensors, *made]))
        return result


class _Around(TorchFunctionMode):
    """The operators that call others, which have the sizes that a person gave."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self._cell = cell

    def __torch_function__(
        self,
        function: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = getattr(function, "__name__", "").strip("_")
        if name not in _CALLING:
            return function(*args, **(kwargs or {}))
        tensors = [one for one in tree_leaves(args) if isinstance(one, torch.Tensor)]
        dims = tuple(list(one.shape) for one in tensors)
        with self._cell.operator(f"aten::{name}", dims):
            if name == "one_hot":
                # as a GPU does it
                ids, width = args[0], (*args[1:], *(kwargs or {}).values())[0]
                hot = torch.zeros(*ids.shape, width, dtype=ids.dtype, device=ids.device)
                return hot.scatter_(-1, ids.unsqueeze(-1), 1)
            return function(*args, **(kwargs or {}))


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, float):
        return str(value).removesuffix("0")
    return "" if value is None else str(value)


def _took(operator: str, tensors: list[torch.Tensor]) -> int:
    if operator in _PRODUCTS:
        one, other = tensors[-3], tensors[-2]
        return max(int(2 * one.numel() * other.shape[-1] / _FLOPS), 3_000)
    moved = sum(one.numel() * one.element_size() for one in tensors)
    return max(int(moved * _PASSES.get(operator, 1) / _BYTES), 3_000)

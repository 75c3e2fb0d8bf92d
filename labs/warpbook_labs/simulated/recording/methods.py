"""Which functions `torch` and a tensor have, by the names they have there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warpbook_labs.simulated.recording import (
    comparing,
    creating,
    elementwise,
    indexing,
    joining,
    layout,
    matrices,
    moving,
    ordering,
    printing,
    reading,
    reducing,
    selecting,
    views,
)
from warpbook_labs.simulated.recording.dtypes import (
    ALIASES,
    ALL,
    DType,
    finfo,
    iinfo,
)
from warpbook_labs.simulated.recording.einsum import einsum
from warpbook_labs.simulated.recording.elementwise import BINARY, UNARY, Kind, compute
from warpbook_labs.simulated.recording.refusing import refuse, telling
from warpbook_labs.simulated.recording.tensor import Tensor

Function = Callable[..., Any]


def _unary(name: str, kind: Kind) -> Function:
    def call(input: Tensor, *, out: Tensor | None = None) -> Tensor:
        return compute(name, [input], kind, out)

    return call


def _binary(name: str, kind: Kind) -> Function:
    def call(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
        return compute(name, [input, other], kind, out)

    return call


def _in_place(function: Function) -> Function:
    def call(self: Tensor, *operands: Any, **options: Any) -> Tensor:
        result: Tensor = function(self, *operands, out=self, **options)
        return result

    return call


def _as_operator(function: Function) -> Function:
    """For `x + y`: what is no operand is left to its own type."""

    def call(self: Tensor, other: Any) -> Any:
        if not isinstance(other, (Tensor, bool, int, float, np.generic)):
            return NotImplemented
        return function(self, other)

    return call


def _reflected(function: Function) -> Function:
    def call(self: Tensor, other: Any) -> Any:
        if not isinstance(other, (bool, int, float, np.generic)):
            return NotImplemented
        return function(other, self)

    return call


#: those that may have a result of their own, be told where it goes, or be in place
_ELEMENTWISE: dict[str, Function] = {
    **{name: _unary(name, kind) for name, kind in UNARY.items()},
    **{name: _binary(name, kind) for name, kind in BINARY.items()},
    "add": elementwise.add,
    "sub": elementwise.sub,
    "div": elementwise.div,
    "pow": elementwise.power,
    "clamp": elementwise.clamp,
    "clamp_max": elementwise.clamp_max,
    "clamp_min": elementwise.clamp_min,
    "addcdiv": elementwise.addcdiv,
    "addcmul": elementwise.addcmul,
    "lerp": elementwise.lerp,
    "nan_to_num": elementwise.nan_to_num,
}
_OTHER_NAMES = {
    "absolute": "abs",
    "clip": "clamp",
    "divide": "div",
    "greater": "gt",
    "less": "lt",
    "multiply": "mul",
    "negative": "neg",
    "subtract": "sub",
    "true_divide": "div",
}
_ELEMENTWISE |= {name: _ELEMENTWISE[other] for name, other in _OTHER_NAMES.items()}


def _is_floating_point(input: Tensor) -> bool:
    return input.dtype.is_floating_point


#: both `torch.f(x, ...)` and `x.f(...)`
_SHARED: dict[str, Function] = {
    **_ELEMENTWISE,
    **{
        function.__name__: function
        for function in (
            *(moving.masked_fill, matrices.addmm, matrices.bmm),
            *(matrices.baddbmm, matrices.dot, matrices.mv, matrices.outer),
            *(matrices.matmul, matrices.mm, moving.clone, joining.flip),
            *(reducing.all, comparing.allclose, reducing.amax, reducing.amin),
            reducing.aminmax,
            *(reducing.any, reducing.argmax, reducing.argmin, reducing.cumsum),
            *(comparing.equal, reducing.log_softmax, reducing.max, reducing.mean),
            *(reducing.min, reducing.norm, reducing.prod, reducing.softmax),
            *(reducing.sort, reducing.std, reducing.sum, reducing.topk, reducing.var),
            *(views.chunk, views.flatten, selecting.index_select, views.narrow),
            *(views.numel, views.permute, views.reshape, views.select, views.split),
            *(views.squeeze, views.t, views.transpose, views.unbind, views.unsqueeze),
            *(views.ravel, views.split_with_sizes, views.tensor_split),
            *(views.unflatten, comparing.isclose, reducing.argsort),
            *(selecting.gather, selecting.index_copy, selecting.take),
            selecting.take_along_dim,
        )
    },
    "broadcast_to": views.expand,
    "is_floating_point": _is_floating_point,
    "swapaxes": views.transpose,
}

_FUNCTIONS: dict[str, Function] = {
    **_SHARED,
    "where": elementwise.where,
    "cat": joining.cat,
    "concat": joining.cat,
    "concatenate": joining.cat,
    "_foreach_copy_": moving.foreach_copy_,
    "embedding": selecting.embedding,
    "from_numpy": reading.from_numpy,
    "einsum": einsum,
    "finfo": finfo,
    "hstack": joining.hstack,
    "iinfo": iinfo,
    "stack": joining.stack,
    "vstack": joining.vstack,
    "relu_": _in_place(_ELEMENTWISE["relu"]),
    **{
        function.__name__: function
        for function in (
            *(creating.arange, creating.as_tensor, ordering.empty),
            *(creating.empty_like, creating.eye, creating.full, creating.full_like),
            *(ordering.empty_strided,),
            *(creating.ones, creating.ones_like, creating.rand, creating.randn),
            *(creating.tensor, creating.zeros, creating.zeros_like),
            *(creating.linspace, creating.rand_like, creating.randn_like),
        )
    },
}


#: `torch.f(...)`
FUNCTIONS = {
    name: telling(f"torch.{name}", function) for name, function in _FUNCTIONS.items()
}


def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    return elementwise.where(condition, self, other)


def _is_contiguous(self: Tensor, memory_format: object = layout.CONTIGUOUS) -> bool:
    return layout.is_ordered(self, memory_format)


def _same(self: Tensor, *nothing: Any) -> Tensor:
    return self


def _requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    if requires_grad:
        refuse("gradients (requires_grad_)")
    return self


def _copied(self: Tensor, memo: Any = None) -> Tensor:
    return moving.clone(self)


def _as_type(self: Tensor, dtype: DType | None = None) -> Any:
    if dtype is None:
        space = "torch.cuda" if self.is_cuda else "torch"
        return f"{space}.{self.dtype.letter_name}Tensor"
    return moving.to(self, self.device, dtype)


#: `x.f(...)`
_METHODS: dict[str, Function] = {
    **_SHARED,
    **{f"{name}_": _in_place(function) for name, function in _ELEMENTWISE.items()},
    **{name: moving.converter(dtype.name) for name, dtype in ALIASES.items()},
    "bool": moving.converter("bool"),
    "byte": moving.converter("uint8"),
    "char": moving.converter("int8"),
    "addmm_": matrices.addmm_,
    "baddbmm_": matrices.baddbmm_,
    "contiguous": moving.contiguous,
    "copy_": moving.copy_,
    "cpu": moving.cpu,
    "cuda": moving.cuda,
    "data_ptr": views.data_ptr,
    "detach": _same,
    "dim": lambda self: self.ndim,
    "element_size": lambda self: self.itemsize,
    "expand": views.expand,
    "expand_as": views.expand_as,
    "fill_": elementwise.fill_,
    "get_device": lambda self: 0 if self.is_cuda else -1,
    "index_copy_": selecting.index_copy_,
    "index_put_": indexing.index_put_,
    "is_contiguous": _is_contiguous,
    "is_pinned": moving.is_pinned,
    "item": reading.item,
    "masked_fill_": elementwise.masked_fill_,
    "nelement": views.numel,
    "new_empty": creating.new_empty,
    "new_empty_strided": ordering.new_empty_strided,
    "new_full": creating.new_full,
    "new_ones": creating.new_ones,
    "new_tensor": creating.new_tensor,
    "new_zeros": creating.new_zeros,
    "numpy": reading.numpy,
    "pin_memory": moving.pin_memory,
    "record_stream": moving.record_stream,
    "repeat": joining.repeat,
    "requires_grad_": _requires_grad_,
    "reshape_as": views.reshape_as,
    "size": views.size,
    "split": views.split_of,
    "storage_offset": views.storage_offset,
    "stride": views.stride,
    "to": moving.tensor_to,
    "tolist": reading.tolist,
    "type": _as_type,
    "type_as": moving.type_as,
    "view": views.view,
    "view_as": views.view_as,
    "where": _where_method,
    "zero_": elementwise.zero_,
    "__array__": reading.as_array,
    "__bool__": reading.as_bool,
    "__deepcopy__": _copied,
    "__float__": reading.as_float,
    "__format__": printing.in_format,
    "__getitem__": indexing.getitem,
    "__index__": reading.as_index,
    "__int__": reading.as_int,
    "__iter__": views.iterate,
    "__matmul__": matrices.matmul,
    "__imatmul__": matrices.matmul,
    "__neg__": _ELEMENTWISE["neg"],
    "__invert__": _ELEMENTWISE["bitwise_not"],
    "__abs__": _ELEMENTWISE["abs"],
    "__repr__": printing.as_text,
    "__setitem__": indexing.setitem,
}
_OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "pow",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
for _symbol, _name in _OPERATORS.items():
    _METHODS[f"__{_symbol}__"] = _as_operator(_ELEMENTWISE[_name])
    _METHODS[f"__r{_symbol}__"] = _reflected(_ELEMENTWISE[_name])
    _METHODS[f"__i{_symbol}__"] = _as_operator(_in_place(_ELEMENTWISE[_name]))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _METHODS[f"__{_name}__"] = _as_operator(_ELEMENTWISE[_name])
for _name, _function in _METHODS.items():
    setattr(Tensor, _name, telling(f"torch.Tensor.{_name}", _function))
for _name in ("T", "mT"):
    _turn = views.t if _name == "T" else views.turned
    setattr(Tensor, _name, property(_turn))

#: what `from torch import float32` finds
TYPES: dict[str, DType] = {**ALL, **ALIASES}

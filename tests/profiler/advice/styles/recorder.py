"""Programs as the traces that a GPU would leave of them.

Operators, their order and what they are called with are torch's own, on real tensors of
the CPU or on large ones of the meta device. What each takes is as on an H200.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import one_hot
from torch.overrides import TorchFunctionMode
from torch.profiler import record_function
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.profiler.advice.program import Cell

_CATEGORIES = ("cpu_op", "user_annotation")
#: names in a record: what the GPU does then, and what the CPU does in its stead
_ON_GPU, _INSTEAD = "gpu:", "instead"
#: around what is called once more and does nothing itself
_AGAIN = "again"
#: calls of a mode, and what begins and ends annotations
_AROUND = "PythonDispatchMode", "profiler::"
#: bytes per ns; an operator that is none of these passes over memory once
_BYTES = 3_900
_PASSES = {"aten::sort": 60}
_PRODUCTS = ("aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm")
#: kernels of products, and their operations per ns
_PLAIN = "sm80_xmma_gemm_f32f32_f32f32_f32_ffma", 50_000
_TF32 = "sm80_xmma_gemm_f32f32_tf32f32_f32", 350_000
_HALF = "nvjet_sm90_tst_256x128", 700_000
#: where a size is odd
_ODD = "cutlass_80_tensorop_s16816gemm_bf16_align1", 50_000
_DEPTHWISE = "conv_depthwise2d_forward_kernel_generic", 6_500
_LEAST_NS = 2_000
#: they look at memory, though no schema says so
_VIEWS = frozenset(
    f"aten::{name}"
    for name in "_unsafe_view unsafe_split lift_fresh set_ resize_".split()
)
#: the operator within which the kernel is launched
_WITHIN = {
    **dict.fromkeys(("zeros", "ones", "full", "zeros_like", "ones_like"), "fill_"),
    "_to_copy": "copy_",
    "convolution": "cudnn_convolution",
}
#: calls several others on real tensors, of which these compute
_DIVIDED, _PARTS = (
    "aten::_linalg_solve_ex",
    ("aten::linalg_lu_factor_ex", "aten::linalg_lu_solve"),
)
_MASKED = ("aten::index", "aten::index_put_", "aten::_index_put_impl_")


def recorded(source: str, names: dict[str, Any], device: str, path: Path) -> Cell:
    """Run a cell; give its trace.

    Args:
        source: the cell.
        names: its namespace, which it changes.
        device: what stands for the GPU: "cpu", or "meta", whose tensors have no memory.
        path: of a file for the record.
    """
    with pytest.MonkeyPatch.context() as patch:
        gpu = OnDevice(device)
        patch.setattr(torch.cuda, "synchronize", lambda *_: gpu.does(waits=True))
        with torch.profiler.profile(record_shapes=True) as record, gpu:
            exec(source, names)
    record.export_chrome_trace(str(path))
    events = json.loads(path.read_bytes())["traceEvents"]
    events = [one for one in events if one.get("cat") in _CATEGORIES]
    # they begin before what they mark, and end within it
    events = [one for one in events if not one["name"].startswith(_AROUND)]
    events.sort(key=lambda one: (one["ts"], -one["dur"]))
    cell = Cell(source)
    _lay_out(cell, events, gpu.work)
    cell.wait("cudaDeviceSynchronize")
    return cell


def _lay_out(
    cell: Cell, events: list[dict[str, Any]], work: list[dict[str, Any]]
) -> None:
    at = 0
    while at < len(events):
        event, end = events[at], at + 1
        until = event["ts"] + event["dur"]
        while end < len(events) and events[end]["ts"] < until:
            end += 1
        inner, at = events[at + 1 : end], end
        name = event["name"]
        if name.startswith(_ON_GPU):
            _do(cell, **work[int(name.removeprefix(_ON_GPU))])
        elif name == _AGAIN:
            _lay_out(cell, inner[1:], work)
        elif name != _INSTEAD:
            with cell.operator(name, category=event["cat"]):
                if name in _PARTS:
                    cell.kernel(_LEAST_NS)
                else:
                    _lay_out(cell, inner, work)
            args = event["args"]
            args = {key: one for key, one in args.items() if key != "External id"}
            cell.events[-1]["args"] |= args


def _do(
    cell: Cell,
    within: str = "",
    dims: Sequence[list[int]] = (),
    kernels: Sequence[tuple[str, float]] = (),
    copied: tuple[str, int] | None = None,
    waits: bool = False,
) -> None:
    if within:
        with cell.operator(f"aten::{within}", tuple(dims)):
            _do(cell, kernels=kernels, copied=copied)
        return
    for kernel, took_ns in kernels:
        cell.kernel(max(int(took_ns), _LEAST_NS), kernel)
    if copied:
        cell.copy(*copied)
    if waits:
        cell.wait("cudaDeviceSynchronize")


class OnDevice(TorchDispatchMode):
    """Have a device stand for the GPU, and record what operators do there."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device
        self._functions = _Functions(device)
        #: arguments of `_do`, by the number in the record
        self.work: list[dict[str, Any]] = []

    def does(self, **work: Any) -> None:
        """Record what the GPU does now."""
        with record_function(f"{_ON_GPU}{len(self.work)}"):
            self.work.append(work)

    def __enter__(self) -> OnDevice:
        self._functions.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._functions.__exit__(*error)

    def __torch_dispatch__(
        self,
        function: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        operator, kwargs = function._schema.name, kwargs or {}
        if operator.startswith("profiler::"):
            return function(*args, **kwargs)
        if function._can_decompose() and not function.is_view:
            # inference mode leaves to a mode what is computed by other operators
            with self._once_more():
                return function.decompose(*args, **kwargs)
        given, given_there = _tensors((args, kwargs)), self._there((args, kwargs))
        if operator in _MASKED:
            args = args[0], self._places(args[1]), *args[2:]
        is_again = function.is_view or operator in _VIEWS
        is_again |= operator == _DIVIDED and self._device == "cpu"
        with record_function(_AGAIN if is_again else _INSTEAD):
            if self._device == "meta" and given_there:
                result = _without_memory(function, args, kwargs)
            else:
                result = function(*args, **kwargs)
        made, made_there = _tensors(result), self._there(result)
        if is_again or "empty" in operator:
            return result
        within = _WITHIN.get(operator.removeprefix("aten::"), "")
        dims = [list(one.shape) for one in given]
        if within in ("copy_", "fill_"):
            dims = [[*one.shape] for one in [*made, *given]]
        if operator == "aten::copy_":
            # what is changed is no source
            given_there = self._there(args[1])
        if operator in ("aten::_local_scalar_dense", "aten::nonzero") and given_there:
            self.does(copied=("DtoH", 8))
        elif operator in ("aten::_to_copy", "aten::copy_") and self._device == "meta":
            if bool(given_there) != bool(made_there):
                kind = "DtoH" if given_there else "HtoD"
                self.does(within=within, dims=dims, copied=(kind, _bytes(given[-1])))
                return result
        if made_there:
            kernels = _kernels(operator, [*given, *made])
            self.does(within=within, dims=dims, kernels=kernels)
        return result

    @contextmanager
    def _once_more(self) -> Iterator[None]:
        """Have the mode record within one of its calls."""
        super().__enter__()
        try:
            yield
        finally:
            super().__exit__(None, None, None)

    def _there(self, values: Any) -> list[torch.Tensor]:
        return [one for one in _tensors(values) if one.device.type == self._device]

    def _places(self, index: list[torch.Tensor | None]) -> list[torch.Tensor | None]:
        """Find the places of masks first, as a GPU does."""
        found = list[torch.Tensor | None]()
        for one in index:
            if one is not None and one.dtype == torch.bool and self._there(one):
                with record_function(_INSTEAD):
                    found += _nonzero(one).unbind(1)
                kernels, dims = _kernels("aten::nonzero", [one]), [list(one.shape)]
                copied = "DtoH", 8
                self.does(within="nonzero", dims=dims, kernels=kernels, copied=copied)
            else:
                found.append(one)
        return found


def _without_memory(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call an operator; what the host reads of the meta device is ones."""
    operator, tensor = function._schema.name, args[0]
    if operator == "aten::_local_scalar_dense":
        return torch.ones((), dtype=tensor.dtype).item()
    if operator == "aten::nonzero":
        return _nonzero(tensor)
    if operator == "aten::copy_" and tensor.device.type == "cpu":
        return tensor
    if operator == "aten::_to_copy" and kwargs.get("device") == torch.device("cpu"):
        return torch.ones(tensor.shape, dtype=kwargs.get("dtype") or tensor.dtype)
    return function(*args, **kwargs)


def _nonzero(mask: torch.Tensor) -> torch.Tensor:
    if mask.device.type != "meta":
        return mask.nonzero()
    # half of all are true
    shape = max(mask.numel() // 2, 1), mask.ndim
    return torch.empty(shape, dtype=torch.long, device="meta")


def _tensors(values: Any) -> list[torch.Tensor]:
    return [one for one in tree_leaves(values) if isinstance(one, torch.Tensor)]


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _kernels(operator: str, tensors: list[torch.Tensor]) -> list[tuple[str, float]]:
    """Give the kernels that an operator launches, with their times in ns."""
    if operator in _PRODUCTS:
        one, other = tensors[-3], tensors[-2]
        is_odd = any(size % 8 for size in (*one.shape[-2:], *other.shape[-2:]))
        is_tf32 = torch.backends.cuda.matmul.allow_tf32
        kernel, rate = _multiplies(one.dtype, is_tf32, is_odd)
        return [(kernel, 2 * one.numel() * other.shape[-1] / rate)]
    if operator == "aten::convolution":
        given, weight, made = tensors[0], tensors[1], tensors[-1]
        is_tf32 = torch.backends.cudnn.allow_tf32
        kernel, rate = _multiplies(given.dtype, is_tf32, False)
        if 1 == weight.shape[1] < given.shape[1]:
            kernel, rate = _DEPTHWISE
        flops = 2 * made.numel() * weight[0].numel()
        kernels = [(kernel, flops / rate)]
        if (kernel, rate) in (_TF32, _HALF) and given.is_contiguous():
            into, back = _bytes(given) / _BYTES, _bytes(made) / _BYTES
            kernels = [("nchwToNhwcKernel", 2 * into), *kernels]
            kernels.append(("nhwcToNchwKernel", 2 * back))
        return kernels
    moved = sum(map(_bytes, tensors))
    return [("k", moved * _PASSES.get(operator, 1) / _BYTES)]


def _multiplies(dtype: torch.dtype, is_tf32: bool, is_odd: bool) -> tuple[str, float]:
    if dtype in (torch.bfloat16, torch.float16):
        return _ODD if is_odd else _HALF
    return _TF32 if is_tf32 and dtype == torch.float32 else _PLAIN


class _Functions(TorchFunctionMode):
    """What torch does in C++ by the device, as it does for a GPU."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device

    def __torch_function__(
        self,
        function: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if self._device == "meta":
            if function in (torch.tensor, torch.as_tensor) and "device" in kwargs:
                device = kwargs.pop("device")
                return function(*args, **kwargs).to(device)
            is_there = bool(args) and getattr(args[0], "is_meta", False)
            if function is torch.Tensor.__format__ and is_there and not args[0].ndim:
                return format(args[0].item(), *args[1:])
            if function is torch.Tensor.__repr__ and is_there:
                return repr(args[0].cpu())
            if function is one_hot and is_there:
                return _one_hot(*args, **kwargs)
        return function(*args, **kwargs)


def _one_hot(tensor: torch.Tensor, num_classes: int) -> torch.Tensor:
    shape = *tensor.shape, num_classes
    hot = torch.zeros(shape, dtype=tensor.dtype, device=tensor.device)
    return hot.scatter_(-1, tensor.unsqueeze(-1), 1)

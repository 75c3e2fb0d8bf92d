"""The first run on copies: it tells what the cell does, and so what can be changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from warpbook_profiler.techniques.technique import CellActs

_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "convolution", "convolution_backward")
#: what waits for the GPU, so that a graph can't hold it
_WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "unique")
_COPYING = ("_to_copy", "copy_", "_copy_from")


@contextlib.contextmanager
def scouting(facts: CellActs) -> Iterator[None]:
    """Note what the code within the block does."""
    depth = 0

    def begins(module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        nonlocal depth
        if depth == 0:
            _note_once(facts.modules, module)
        depth += 1
        if isinstance(module, torch.nn.Conv2d):
            _note_once(facts.convolutions, module)
        for item in arguments:
            if isinstance(item, torch.Tensor) and item.dim() == 4:
                facts.images.add(item.untyped_storage().data_ptr())

    def ends(*_: Any) -> None:
        nonlocal depth
        depth -= 1

    def steps(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        _note_once(facts.optimizers, optimizer)

    with contextlib.ExitStack() as stack:
        for hook in (
            register_module_forward_pre_hook(begins),
            register_module_forward_hook(ends, always_call=True),
            register_optimizer_step_pre_hook(steps),
        ):
            stack.callback(hook.remove)
        stack.enter_context(_NotingAutocast(facts))
        stack.enter_context(_Noting(facts))
        yield


def _note_once(listed: list[Any], value: object) -> None:
    if not any(item is value for item in listed):
        listed.append(value)


class _NotingAutocast(TorchFunctionMode):  # type: ignore[misc]
    """Sees each call of torch, where autocast has not yet done its part."""

    def __init__(self, facts: CellActs) -> None:
        super().__init__()
        self._facts = facts

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if any(map(torch.is_autocast_enabled, ("cpu", "cuda"))):
            self._facts.has_autocast = True
        return function(*args, **(kwargs or {}))


class _Noting(TorchDispatchMode):  # type: ignore[misc]
    """Sees each operator."""

    def __init__(self, facts: CellActs) -> None:
        super().__init__()
        self._facts = facts

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        self._note(function, args, list(_tensors(result)))
        return result

    def _note(
        self, function: Any, args: tuple[Any, ...], results: list[torch.Tensor]
    ) -> None:
        facts = self._facts
        name = function.overloadpacket.__name__
        operands = [item for item in args if isinstance(item, torch.Tensor)]
        devices = {item.device.type for item in (*operands, *results)}
        if not devices and name.startswith("_foreach"):
            devices = {item.device.type for item in _tensors(args)}
            if "cpu" in devices:
                facts.on_host.add(name)
        facts.devices |= devices
        if name in _PRODUCTS and operands:
            key = (operands[-1].device.type, operands[-1].dtype)
            facts.products[key] = facts.products.get(key, 0) + 1
        if name in _COPYING and len(devices) > 1:
            facts.copies += 1
            target, source = results[0], operands[-1 if name == "copy_" else 0]
            if (
                source.device.type == "cpu"
                and target.is_cuda
                and not source.is_pinned()
            ):
                facts.pageable.add(source.untyped_storage().data_ptr())
        elif name in _WAITING and "cuda" in devices:
            facts.waits.add(name)
        elif devices == {"cpu"} and not function.is_view:
            if any(item.numel() > 1 for item in (*results, *_tensors(args))):
                facts.on_host.add(name)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)

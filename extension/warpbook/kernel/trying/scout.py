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
def scouting() -> Iterator[CellActs]:
    """Note what the code within the block does."""
    facts = CellActs()
    depth = [0]

    def begins(module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        if depth[0] == 0 and not _has(facts.modules, module):
            facts.modules.append(module)
        depth[0] += 1
        if isinstance(module, torch.nn.Conv2d):
            if not _has(facts.convolutions, module):
                facts.convolutions.append(module)
        for item in arguments:
            if isinstance(item, torch.Tensor) and item.dim() == 4:
                facts.images.add(item.untyped_storage().data_ptr())

    def ends(*_: Any) -> None:
        depth[0] -= 1

    def steps(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if not _has(facts.optimizers, optimizer):
            facts.optimizers.append(optimizer)

    with contextlib.ExitStack() as stack:
        for hook in (
            register_module_forward_pre_hook(begins),
            register_module_forward_hook(ends, always_call=True),
            register_optimizer_step_pre_hook(steps),
        ):
            stack.callback(hook.remove)
        stack.enter_context(_NotingAutocast(facts))
        stack.enter_context(_Noting(facts))
        yield facts


def _has(listed: list[Any], value: object) -> bool:
    return any(item is value for item in listed)


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
        self._note(function, args, result)
        return result

    def _note(self, function: Any, args: tuple[Any, ...], result: Any) -> None:
        facts = self._facts
        name = function.overloadpacket.__name__
        operands = [item for item in args if isinstance(item, torch.Tensor)]
        results = [item for item in _flat(result) if isinstance(item, torch.Tensor)]
        devices = {item.device.type for item in (*operands, *results)}
        facts.devices |= devices
        if name in _PRODUCTS and operands:
            key = (operands[-1].device.type, operands[-1].dtype)
            facts.products[key] = facts.products.get(key, 0) + 1
        if name in _COPYING and len(devices) > 1:
            self._note_copy(name, operands, results)
        elif name in _WAITING and "cuda" in devices:
            facts.waits.add(name)
        elif devices == {"cpu"} and not function.is_view:
            flat = [item for item in _flat(args) if isinstance(item, torch.Tensor)]
            if any(item.numel() > 1 for item in (*results, *flat)):
                facts.on_host.add(name)
        elif not devices and name.startswith("_foreach"):
            lists = [item for item in _flat(args) if isinstance(item, torch.Tensor)]
            facts.devices |= {item.device.type for item in lists}
            if any(item.device.type == "cpu" for item in lists):
                facts.on_host.add(name)

    def _note_copy(
        self, name: str, operands: list[torch.Tensor], results: list[torch.Tensor]
    ) -> None:
        facts = self._facts
        facts.copies += 1
        source = operands[-1] if name == "copy_" else operands[0]
        target = operands[0] if name == "copy_" else results[0]
        if source.device.type == "cpu" and target.is_cuda and not source.is_pinned():
            facts.pageable.add(source.untyped_storage().data_ptr())


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _flat(item)
    else:
        yield value

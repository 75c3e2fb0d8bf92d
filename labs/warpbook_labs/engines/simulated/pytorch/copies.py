"""Copies, between host and GPU and within each, in as many pieces as PyTorch makes."""

from __future__ import annotations

import functools
from typing import Any

import torch

from warpbook_labs.engines.simulated.program import Copy, Place
from warpbook_labs.engines.simulated.pytorch import accelerator
from warpbook_labs.engines.simulated.pytorch.current import refuse
from warpbook_labs.engines.simulated.pytorch.machine import Machine


def to_copy(
    machine: Machine,
    func: Any,
    x: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Any:
    """`x.to(...)`, where it makes a new tensor."""
    if not isinstance(x, torch.Tensor):
        # a number of Python's, of which `torch.vmap` makes a constant of the host
        constant = torch.tensor(x, dtype=dtype)
        machine.memories.of(constant)
        return constant
    is_on_gpu = torch.device(device or x.device).type == "cuda"
    like = machine.memories.alias(x)
    order = memory_format or torch.preserve_format
    cpu = torch.empty_like(like, dtype=dtype or x.dtype, memory_format=order)
    place: Place = "device" if is_on_gpu else "pageable"
    if non_blocking and x.is_cuda and not is_on_gpu:
        # PyTorch gives page-locked memory then, so that nobody need wait
        place = "pinned"
    return copy(machine, None, machine.memories.adopt(cpu, place), x, non_blocking)


def copy(
    machine: Machine, func: Any, target: Any, source: Any, non_blocking: bool = False
) -> Any:
    if _is_same(target, source):
        return target
    if target.is_cuda == source.is_cuda:
        return near(machine, target, source)
    source = _expanded(machine, source, target)
    if source.dtype == target.dtype and _same_order(source, target):
        return _transfer(machine, target, source, non_blocking)
    # types are converted on the GPU if the host is not to wait, else on the host
    is_converted_there = source.dtype != target.dtype and (
        source.is_cuda != non_blocking
    )
    dtype = source.dtype if is_converted_there else target.dtype
    if not source.is_contiguous() or source.dtype != dtype:
        source = to_copy(
            machine, None, source, dtype=dtype, memory_format=torch.contiguous_format
        )
    if target.is_contiguous() and target.dtype == dtype:
        return _transfer(machine, target, source, non_blocking)
    cpu = torch.empty(target.shape, dtype=dtype)
    beside = machine.memories.adopt(cpu, "device" if target.is_cuda else "pageable")
    return near(machine, target, _transfer(machine, beside, source, non_blocking))


def near(machine: Machine, target: Any, source: Any) -> Any:
    """A copy on the GPU, or in the host's memory."""
    source = _expanded(machine, source, target)
    machine.launch("copy", [source], [target])
    return _done(machine, target, source, target.is_cuda)


def pin(machine: Machine, func: Any, x: Any, device: Any = None) -> Any:
    if x.is_cuda:
        raise RuntimeError(
            f"cannot pin '{x.type()}' only dense CPU tensors can be pinned"
        )
    return near(machine, machine.memories.adopt(torch.empty_like(x), "pinned"), x)


def is_pinned(machine: Machine, func: Any, x: Any, device: Any = None) -> bool:
    return not x.is_cuda and machine.memories.of(x).place == "pinned"


def foreach_copy(
    machine: Machine, func: Any, targets: Any, sources: Any, non_blocking: bool = False
) -> None:
    """`copy_` of each: on the GPU by one kernel, if they are alike."""
    pairs = list(zip(targets, sources, strict=True))
    kinds = {(target.dtype, source.dtype) for target, source in pairs}
    is_alike = all(
        target.is_cuda and source.is_cuda and target.shape == source.shape
        for target, source in pairs
    )
    if is_alike and len(kinds) == 1:
        machine.launch("copy", sources, targets)
        for target, source in pairs:
            _done(machine, target, source, True)
        return
    for target, source in pairs:
        copy(machine, None, target, source, non_blocking)


def _is_same(one: Any, other: Any) -> bool:
    """Tell whether both are the same elements, which PyTorch copies nowhere."""
    return one is other or (
        one.untyped_storage()._cdata == other.untyped_storage()._cdata
        and one.storage_offset() == other.storage_offset()
        and one.shape == other.shape
        and one.stride() == other.stride()
        and one.dtype == other.dtype
    )


def _expanded(machine: Machine, source: Any, target: Any) -> Any:
    if source.shape == target.shape:
        return source
    like = machine.memories.alias(source).expand(target.shape)
    return accelerator.cuda_view(source, like) if source.is_cuda else like


def _same_order(source: Any, target: Any) -> bool:
    """Tell whether both are whole, and in the same order."""
    if source.is_contiguous() and target.is_contiguous():
        return True
    if source.stride() != target.stride():
        return False
    dense = torch.empty_like(target, device="meta")
    return bool(dense.stride() == target.stride())


def _transfer(machine: Machine, target: Any, source: Any, non_blocking: bool) -> Any:
    memories = machine.memories
    if any(memories.of(tensor).shown for tensor in (source, target)):
        refuse(
            "copies between the host and memory of its own that the GPU sees",
            "Copy the tensor of the host that it was made of.",
        )
    is_pageable = any(
        memories.of(tensor).place == "pageable" for tensor in (source, target)
    )
    if is_pageable or not non_blocking:
        machine.order.forbid_in_capture("A copy that is waited for")
    machine.add(
        Copy(
            memories.view(source),
            memories.view(target),
            machine.record.stream,
            bool(non_blocking),
            machine.record.line(),
        )
    )
    return _done(machine, target, source, True)


def _done(machine: Machine, target: Any, source: Any, is_on_gpu: bool) -> Any:
    """Move the numbers, now or in a graph that is captured."""
    alias = machine.memories.alias
    work = functools.partial(alias(target).copy_, alias(source))
    machine.wrote([target])
    machine.later(is_on_gpu, work)
    return target


def install() -> None:
    Machine.special.update(
        {
            "_to_copy": to_copy,
            "copy_": copy,
            "_pin_memory": pin,
            "is_pinned": is_pinned,
            "_foreach_copy_": foreach_copy,
        }
    )

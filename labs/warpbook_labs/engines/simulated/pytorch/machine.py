"""Runs each ATen call on the CPU, and records it as one of the machine.

It stands below autograd and autocast, so what it sees is what a GPU would be given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from warpbook_labs.engines.simulated.judging.calls.allowed import base_of
from warpbook_labs.engines.simulated.program import (
    DEFAULT_STREAM,
    HOST,
    BeginCall,
    Instruction,
    Launch,
    Place,
    Read,
    UseOn,
)
from warpbook_labs.engines.simulated.pytorch import accelerator
from warpbook_labs.engines.simulated.pytorch.calls import (
    COMPOSITE,
    EMPTY,
    FILLS,
    INDEXED,
    OF_ANY_SIZE,
    RANDOM,
    Kind,
    kind_of,
    tensors_in,
    with_each,
    written_down,
)
from warpbook_labs.engines.simulated.pytorch.current import (
    MOST_INSTRUCTIONS,
    Record,
    refuse,
)
from warpbook_labs.engines.simulated.pytorch.memories import Memories, look_at_size
from warpbook_labs.engines.simulated.pytorch.order import Order

Special = Callable[..., Any]
_VIEW_DTYPE = torch.ops.aten.view.dtype
_SEEDS = 1 << 31
_MASKS = (torch.bool, torch.uint8)
_OTHER_DEVICE = (
    "Expected all tensors to be on the same device, but found at least two devices, "
    "cuda:0 and cpu!"
)


class Machine(TorchDispatchMode):  # type: ignore[misc]
    """One case; it records while it is entered."""

    #: calls that are not as on the CPU, by name: `special` fills it
    special: dict[str, Special] = {}

    def __init__(
        self,
        source_name: str = "solution.py",
        most_instructions: int = MOST_INSTRUCTIONS,
        is_judged: bool = True,
    ) -> None:
        """Begin a case.

        Args:
            source_name: lines are those of code from a file of this name.
            is_judged: what is recorded runs again with other numbers, so nothing may
                be asked whose shape depends on them; else nothing is recorded.
        """
        super().__init__()
        self.record = Record(source_name, most_instructions, is_kept=is_judged)
        self.memories = Memories(self.record)
        self.order = Order(self.record)
        self.is_judged = is_judged

    def begin_call(self, number: int) -> None:
        """Say that `run` is called now; its work begins on the first stream."""
        self.record.stream = DEFAULT_STREAM
        self.add(BeginCall(number))

    def add(self, instruction: Instruction) -> None:
        self.record.add(instruction)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Take one ATen call."""
        kind = kind_of(func)
        if kind.is_composite:
            with self:
                return func._op_dk(COMPOSITE, *args, **kwargs or {})
        special = self.special.get(kind.name)
        if special is not None:
            return special(self, func, *args, **kwargs or {})
        return self.call(func, args, dict(kwargs or {}))

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do a call as PyTorch does it where nothing is special about it."""
        kind = kind_of(func)
        if kind.name in INDEXED and args[0].is_cuda:
            args = (args[0], self._indices(args[1]), *args[2:])
        tensors = tensors_in(args, kwargs)
        if not kind.is_of_aten:
            if tensors:
                refuse(f"operator {func}")
            # such as a mark of the profiler
            return func(*args, **kwargs)
        self._look_at_devices(tensors)
        if func.is_view:
            return self._viewed(func, args, kwargs)
        if kind.name in OF_ANY_SIZE or kind.name in INDEXED and _has_mask(args[1]):
            self._look_at_numbers(kind, tensors)
        place = self._place(kind, tensors, kwargs)
        return _Call(self, func, args, kwargs, tensors, place).do()

    # -- arguments

    def _indices(self, indices: Sequence[Any]) -> list[Any]:
        copied = self.special["_to_copy"]
        return [
            index
            if index is None or index.is_cuda
            else copied(self, None, index, device=accelerator.CUDA)
            for index in indices
        ]

    def _look_at_devices(self, tensors: Sequence[Any]) -> None:
        """Raise what PyTorch says where host and GPU are mixed, but for numbers."""
        deciding = [tensor for tensor in tensors if tensor.dim() or tensor.is_cuda]
        if any(tensor.is_cuda != deciding[0].is_cuda for tensor in deciding):
            raise RuntimeError(_OTHER_DEVICE)

    def _look_at_numbers(self, kind: Kind, tensors: Sequence[Any]) -> None:
        """The host waits for a GPU's numbers, which say how large the result is."""
        if self.is_judged and tensors:
            refuse(
                f"`{kind.name}`, whose result is as large as the numbers say",
                "Use `torch.where` with three arguments. ",
            )
        for tensor in tensors[:1]:
            self.read(tensor, kind.name)

    def _place(
        self, kind: Kind, tensors: Sequence[Any], kwargs: dict[str, Any]
    ) -> Place:
        """Say where results are, and have the CPU make them in its memory."""
        is_on_gpu = any(tensor.is_cuda for tensor in tensors)
        is_pinned = bool(kwargs.pop("pin_memory", False))
        if kind.has_device:
            device = kwargs.get("device")
            if device is not None:
                is_on_gpu = torch.device(device).type == "cuda"
            kwargs["device"] = accelerator.CPU
        if is_on_gpu and is_pinned:
            raise RuntimeError("Only dense CPU tensors can be pinned")
        return "device" if is_on_gpu else "pinned" if is_pinned else "pageable"

    def _viewed(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.memories.of(args[0])
        if not args[0].is_cuda or func is _VIEW_DTYPE:
            return func(*args, **kwargs)
        like = func(self.memories.alias(args[0]), *args[1:], **kwargs)
        if isinstance(like, list | tuple):
            return [self.cuda_view(args[0], tensor) for tensor in like]
        return self.cuda_view(args[0], like)

    def cuda_view(self, of: Any, like: Any) -> Any:
        """Give the view of a GPU's tensor that an alias on the CPU is."""
        if like.dtype != of.dtype:
            refuse(f"views of {of.dtype} as {like.dtype} but by `x.view(dtype)`")
        return accelerator.cuda_view(of, like)

    # -- what is written down

    def launch(
        self,
        operation: str,
        reads: Sequence[Any],
        writes: Sequence[Any],
        numbers: Sequence[float] = (),
        call: str = "",
    ) -> None:
        """Record a kernel, or work of the CPU."""
        if not self.record.is_kept:
            return
        view = self.memories.view
        stream = self.record.stream if any(write.is_cuda for write in writes) else HOST
        self.add(
            Launch(
                operation,
                stream,
                tuple(view(read) for read in reads),
                tuple(view(write) for write in writes),
                tuple(float(number) for number in numbers),
                self.record.line(),
                call,
            )
        )

    def read(self, tensor: Any, what: str) -> None:
        if tensor.is_cuda:
            self.order.forbid_in_capture(f"{what}()")
        stream = self.record.stream if tensor.is_cuda else HOST
        self.add(Read(self.memories.view(tensor), what, self.record.line(), stream))

    def wrote(self, tensors: Sequence[Any]) -> None:
        """Count that the memory of tensors is written."""
        for tensor in tensors:
            self.memories.of(tensor).writes += 1

    def use_on(self, tensor: Any, stream: int) -> None:
        """Record that the allocator is told of a stream."""
        self.add(UseOn(self.memories.of(tensor).number, stream))

    def later(self, is_on_gpu: bool, work: Callable[[], Any]) -> None:
        """Do work, or keep it for the graph that is captured now."""
        graph = self.order.captured if is_on_gpu else None
        if graph is None:
            work()
        else:
            graph.append(work)


def _has_mask(indices: Sequence[Any]) -> bool:
    return any(index is not None and index.dtype in _MASKS for index in indices)


class _Call:
    """One ATen call that computes something."""

    def __init__(
        self,
        machine: Machine,
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        tensors: Sequence[Any],
        place: Place,
    ) -> None:
        self._machine, self._func, self._place = machine, func, place
        self._args, self._kwargs, self._tensors = args, kwargs, tensors
        self._kind = kind_of(func)
        self._ours = [self._argument(where) for where in self._kind.written]
        self._written = tensors_in(self._ours)
        #: new tensors: as the learner gets them, and as the CPU made them
        self._fresh: list[tuple[Any, Any]] = []

    def do(self) -> Any:
        machine, kind = self._machine, self._kind
        alias = machine.memories.alias
        args = with_each(alias, self._args)
        kwargs = with_each(alias, self._kwargs)
        seed = self._seed(kwargs)
        if kind.has_device and not self._tensors:
            self._look_at_size()
        graph = machine.order.captured if self._place == "device" else None
        before = (
            [alias(tensor).clone() for tensor in self._written]
            if graph is not None
            else []
        )
        result = _computed(self._func, args, kwargs, seed)
        is_one = len(kind.gives_written) == 1
        ours = iter(self._ours)
        given = [
            next(ours) if is_written else self._given(tensor)
            for tensor, is_written in zip(
                [result] if is_one else result or (), kind.gives_written, strict=False
            )
        ]
        self._follow(args, kwargs)
        machine.wrote(self._written)
        is_nothing = kind.is_only_shape or kind.name in EMPTY
        if (self._fresh or self._written) and not is_nothing:
            self._record(seed)
            if graph is not None:
                fresh = [cpu for _, cpu in self._fresh]
                again = functools.partial(_again, self._func, args, kwargs)
                graph.append(functools.partial(again, fresh, seed))
                # what is captured runs when it is replayed
                for tensor, old in zip(self._written, before, strict=True):
                    alias(tensor).copy_(old)
        if is_one:
            return given[0]
        return tuple(given) if given else None

    def _seed(self, kwargs: dict[str, Any]) -> int | None:
        """Draw a seed for a call by chance that is done again with other numbers."""
        if not (self._machine.is_judged and self._kind.name in RANDOM):
            return None
        generator = kwargs.get("generator")
        if generator is not None:
            kwargs["generator"] = None
        return int(torch.randint(_SEEDS, (1,), generator=generator))

    def _argument(self, where: int | str) -> Any:
        if isinstance(where, str):
            return self._kwargs.get(where)
        return self._args[where] if where < len(self._args) else None

    def _look_at_size(self) -> None:
        """Ask for no memory that there is not."""
        size = self._args[0] if self._args else 0
        if isinstance(size, list | tuple) and all(isinstance(n, int) for n in size):
            dtype = self._kwargs.get("dtype") or torch.get_default_dtype()
            look_at_size(functools.reduce(int.__mul__, size, dtype.itemsize))

    def _given(self, result: Any) -> Any:
        """Give what the learner gets: an alias as a view, or new memory."""
        if isinstance(result, list | tuple):
            return type(result)(self._given(part) for part in result)
        if not isinstance(result, torch.Tensor):
            return result
        if result.layout != torch.strided:
            refuse(f"tensors of the layout {result.layout}")
        if result.numel():
            # such as _unsafe_view, of which the schema keeps quiet
            for other in self._tensors:
                if self._is_same_memory(result, other):
                    if other.is_cuda:
                        return self._machine.cuda_view(other, result)
                    return result
        tensor = self._machine.memories.adopt(result, self._place)
        self._fresh.append((tensor, result))
        return tensor

    def _is_same_memory(self, result: Any, tensor: Any) -> bool:
        addresses = {one.untyped_storage().data_ptr() for one in (result, tensor)}
        return len(addresses) == 1

    def _follow(self, args: Any, kwargs: Any) -> None:
        """Follow `t_()`, `resize_()`, or an `out=` that was made to fit."""
        if not self._written:
            return
        machine = self._machine
        tensors = tensors_in(self._args, self._kwargs)
        for tensor, cpu in zip(tensors, tensors_in(args, kwargs), strict=True):
            is_ours = tensor.is_cuda and any(
                tensor is written for written in self._written
            )
            shape = tensor.shape, tensor.stride()
            if is_ours and shape != (cpu.shape, cpu.stride()):
                storage = tensor.untyped_storage()
                if not self._is_same_memory(cpu, tensor):
                    storage = machine.memories.adopt(cpu, "device").untyped_storage()
                accelerator.give_memory(tensor, storage, cpu)

    def _record(self, seed: int | None) -> None:
        kind, machine = self._kind, self._machine
        if not machine.is_judged:
            return
        fresh = [tensor for tensor, _ in self._fresh]
        if kind.name in FILLS:
            self._record_fill(self._written or fresh)
            return
        if kind.name == "clone":
            machine.launch("copy", self._args[:1], fresh)
            return
        if base_of(str(self._func)) is None:
            refuse(f"`{kind.name}`")
        written = self._written
        of_ours = {id(tensor) for tensor in written}
        reads = [tensor for tensor in self._tensors if id(tensor) not in of_ours]
        call = written_down(self._args, self._kwargs, reads, written)
        if not kind.only_writes:
            reads = [*reads, *written]
        numbers = () if seed is None else (float(seed),)
        machine.launch(str(self._func), reads, [*written, *fresh], numbers, call)

    def _record_fill(self, writes: Sequence[Any]) -> None:
        number = FILLS[self._kind.name]
        held = (
            self._kwargs.get("fill_value", self._args[-1]) if number is None else number
        )
        if isinstance(held, torch.Tensor):
            like = self._machine.memories.alias(held).expand(writes[0].shape)
            source = accelerator.cuda_view(held, like) if held.is_cuda else like
            self._machine.launch("copy", [source], writes)
        else:
            self._machine.launch("fill", [], writes, [held])


def _computed(func: Any, args: Any, kwargs: Any, seed: int | None) -> Any:
    if seed is None:
        return func(*args, **kwargs)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return func(*args, **kwargs)


def _again(func: Any, args: Any, kwargs: Any, outs: Sequence[Any], seed: Any) -> None:
    """Do a captured call again; it holds the CPU's tensors only."""
    made = tensors_in(_computed(func, args, kwargs, seed))
    for out, new in zip(outs, made, strict=False):
        out.copy_(new)

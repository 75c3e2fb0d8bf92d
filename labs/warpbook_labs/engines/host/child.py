"""The process that a learner's host code runs in, or the baseline's, which is ours.

    python -m warpbook_labs.engines.host.child

It reads on stdin how to begin, opens the memory that it is given, shuts itself in, and
only then is told a source. Whatever that does to this process, it gains nothing: what
counts is what the buffers hold, and a clock elsewhere.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

import msgspec
import numpy as np

from warpbook_labs.engines.host.memory import Mapped, opened_on_gpu
from warpbook_labs.engines.host.messages import (
    LENGTH,
    Command,
    Done,
    Failed,
    Load,
    Prepare,
    Ready,
    Record,
    Reply,
    Run,
    Setup,
    Slot,
    command_of,
    framed,
)
from warpbook_labs.lab.host_spec import HostPlace
from warpbook_labs.sandbox import gpu_confinement as confine
from warpbook_labs.sandbox import linux
from warpbook_labs.sandbox.learner_code import line_of

SOURCE_NAME, GIVEN_NAME = "solution.py", "given.py"
_MOST_WORDS = 500
_SPOILED = 3


class _CallArguments(NamedTuple):
    """A buffer as `run` gets it, and what is copied where it is staged."""

    slot: Slot
    tensor: Any
    #: where the referee looks; the same, unless it is staged
    shared: Any


class Child:
    """Does what it is told."""

    def __init__(self, setup: Setup, torch: Any) -> None:
        """Open the memory that is shared.

        Raises:
            OSError: it can't be.
            RuntimeError: CUDA refuses it.
        """
        self._transport, self._torch = setup.transport, torch
        self._on_gpu = setup.has_gpu
        self._memory: dict[HostPlace, Any] = {}
        for memory in setup.memory:
            if memory.handle:
                self._memory[memory.place] = opened_on_gpu(memory.handle)
                continue
            mapped = Mapped(memory.descriptor, memory.size_bytes)
            self._memory[memory.place] = mapped
            # what is staged is copied from there, as fast as from any pinned memory
            if self._on_gpu and memory.place != "host":
                _pin(torch, mapped)
        #: what a unit works on in which nothing is called, so that in it, too, the GPU
        #: goes from the referee to this process and back
        self._nothing = torch.zeros(1, device="cuda") if self._on_gpu else None
        self._module = ModuleType("solution")
        self._given: dict[int, list[_CallArguments]] = {}
        self._states: dict[int, Any] = {}

    def do(self, command: Command) -> Reply:
        if isinstance(command, Load):
            return self._load(command)
        if isinstance(command, Prepare):
            return self._prepare(command)
        if isinstance(command, Record):
            return self._record(command)
        self._run(command)
        return Done(command.turn)

    def _load(self, command: Load) -> Reply:
        own_run = None
        if command.given:
            # the learner imports another copy, whose names it may set
            own = ModuleType("given")
            for given in (own, ModuleType("given")):
                sys.modules["given"] = given
                _execute(given, command.given, GIVEN_NAME)
            own_run = getattr(own, "run", None)
        self._module = ModuleType("solution")
        # where PyTorch's compiler looks for it by its name
        sys.modules["solution"] = self._module
        _execute(self._module, command.source, SOURCE_NAME)
        if own_run is not None:
            # the lab itself uses what the learner prepares
            self._module.run = own_run  # type: ignore[attr-defined]
        # what is there now stays, and looking at it would come at odd times
        gc.collect()
        gc.freeze()
        return Done()

    def _prepare(self, command: Prepare) -> Reply:
        self._states.clear()
        self._given.clear()
        for slot in command.slots:
            given = self._tensor(slot)
            self._given.setdefault(slot.number, []).append(given)
        for number in self._given:
            self._states[number] = self._module.prepare(**command.sizes)
        self._synchronize()
        return Done()

    def _tensor(self, slot: Slot) -> _CallArguments:
        torch = self._torch
        held = self._memory[slot.place]
        dtype = getattr(torch, slot.dtype)
        if not isinstance(held, Mapped):
            part = held.part(slot.offset, slot.size_bytes)
            # without the device, versions of PyTorch copy it to the CPU
            whole = torch.as_tensor(part, device="cuda")
            tensor = whole.view(dtype).view(slot.shape)
            return _CallArguments(slot, tensor, tensor)
        count = int(np.prod(slot.shape, dtype=np.int64))
        tensor = torch.frombuffer(
            held.map, dtype=dtype, count=count, offset=slot.offset
        ).view(slot.shape)
        if slot.place == "device" and self._transport == "staged":
            device = "cuda" if self._on_gpu else "cpu"
            return _CallArguments(slot, torch.empty_like(tensor, device=device), tensor)
        return _CallArguments(slot, tensor, tensor)

    def _run(self, command: Run) -> None:
        for number in command.sets:
            self._copy(number, is_back=False)
        if command.is_empty:
            if self._nothing is not None:
                self._nothing.zero_()
        else:
            for number in command.sets:
                # new objects each time: what is set on one ends with its call
                tensors = {
                    given.slot.name: given.tensor.detach()
                    for given in self._given[number]
                }
                self._module.run(self._states[number], **tensors, **command.numbers)
        for number in command.sets:
            self._copy(number, is_back=True)
        self._synchronize()

    def _copy(self, number: int, is_back: bool) -> None:
        """Copy what is staged: all of it before the call, what it wrote after it."""
        staged = [
            given for given in self._given[number] if given.tensor is not given.shared
        ]
        if staged and is_back:
            # a learner's own stream is none that the copies would wait for
            self._synchronize()
        for given in staged:
            if not is_back:
                given.tensor.copy_(given.shared, non_blocking=True)
            elif given.slot.is_written:
                given.shared.copy_(given.tensor, non_blocking=True)
        if staged and not is_back:
            self._synchronize()

    def _record(self, command: Record) -> Reply:
        from warpbook_profiler.capture import kineto

        capture = kineto.Capture()
        self._run(command.run)
        capture.start()
        for _ in range(command.times):
            self._run(command.run)
        capture.stop()
        capture.save(command.path)
        return Done(command.run.turn)

    def _synchronize(self) -> None:
        if self._on_gpu:
            self._torch.cuda.synchronize()

    def failed(self, problem: BaseException) -> Failed:
        """Say what was raised; end this process where CUDA is of no use any more."""
        line = line_of(problem, SOURCE_NAME)
        if isinstance(problem, SyntaxError) and problem.filename == SOURCE_NAME:
            line = problem.lineno
        words = " ".join(f"{type(problem).__name__}: {problem}".split())
        where = f" (line {line} of {SOURCE_NAME})" if line else ""
        return Failed("raised", words[:_MOST_WORDS] + where, line)

    def is_spoiled(self) -> bool:
        """Tell whether a call has spoiled CUDA's context."""
        try:
            self._synchronize()
        except Exception:  # noqa: BLE001 - whatever it is, nothing more can be done
            return True
        return False


def main() -> None:
    """Begin, then do what comes until nothing comes."""
    linux.die_with_parent()
    setup = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Setup)
    nowhere = os.open(os.devnull, os.O_RDWR)
    # prints go nowhere, and nothing is left of what was asked here
    for descriptor in (0, 1):
        os.dup2(nowhere, descriptor)

    def tell(reply: Reply) -> None:
        left = framed(reply)
        while left:
            left = left[os.write(setup.answers, left) :]

    child, ready = _begun(setup)
    # whoever knows a handle might guess another
    setup = msgspec.structs.replace(setup, memory=())
    tell(ready)
    if child is None:
        os._exit(0)
    for command in _commands(setup.requests):
        try:
            reply = child.do(command)
        except BaseException as problem:  # noqa: BLE001 - whatever a learner's does
            ends = child.is_spoiled()
            tell(msgspec.structs.replace(_failed(child, problem), ends=ends))
            if ends:
                os._exit(_SPOILED)
            continue
        tell(reply)
    os._exit(0)


def _begun(setup: Setup) -> tuple[Child | None, Reply]:
    files = setup.is_early and confine.close_files(setup.hidden, setup.folder)
    try:
        torch: Any = importlib.import_module("torch")
        torch.set_num_threads(1)
        if setup.is_traced:
            # loaded before files are out of reach
            from warpbook_profiler.capture import kineto

            del kineto
    except (ImportError, OSError) as problem:
        words = (
            f"PyTorch can't be loaded ({problem}): pip install 'warpbook-labs[torch]'"
        )
        return None, Failed("no torch", words)
    try:
        if setup.has_gpu:
            torch.cuda.init()
            torch.zeros(1, device="cuda")
    except (RuntimeError, AssertionError) as problem:
        return None, Failed("no gpu", f"PyTorch can't use the GPU: {problem}"[:500])
    try:
        child = Child(setup, torch)
    except (RuntimeError, OSError, ImportError) as problem:
        words = f"{type(problem).__name__}: {problem}"
        return None, Failed("no sharing", words[:500])
    if not setup.is_early:
        files = confine.close_files(setup.hidden, setup.folder)
    network, calls = confine.shut_in(setup.is_traced)
    return child, Ready(confine.isolation_words(files, network, calls))


def _failed(child: Child, problem: BaseException) -> Failed:
    with contextlib.suppress(BaseException):
        return child.failed(problem)
    # its __str__ is the learner's, too
    return Failed("raised", type(problem).__name__[:_MOST_WORDS])


def _commands(descriptor: int) -> Iterator[Command]:
    while True:
        head = _exactly(descriptor, LENGTH.size)
        yield command_of(_exactly(descriptor, LENGTH.unpack(head)[0]))


def _exactly(descriptor: int, count: int) -> bytes:
    held = b""
    while len(held) < count:
        part = os.read(descriptor, count - len(held))
        if not part:
            _end()
        held += part
    return held


def _end() -> NoReturn:
    os._exit(0)


def _execute(module: ModuleType, source: str, name: str) -> None:
    exec(compile(source, name, "exec", dont_inherit=True), module.__dict__)


def _pin(torch: Any, mapped: Mapped) -> None:
    """Lock memory in its place, for the GPU to copy and read it by itself."""
    portable_and_mapped = 0b11
    code = torch.cuda.cudart().cudaHostRegister(
        mapped.address, mapped.size_bytes, portable_and_mapped
    )
    if int(code):
        raise OSError(f"cudaHostRegister of shared memory: error {int(code)}")


if __name__ == "__main__":
    main()

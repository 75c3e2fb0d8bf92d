"""One case on the GPU: launched among red zones, and compared on the CPU."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable

import numpy as np

from warpbook_labs.cases import execution
from warpbook_labs.cases.comparison import wrong_words
from warpbook_labs.cases.preparation import Prepared
from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.engines.kernels.buffers import Arena
from warpbook_labs.errors import BadRule
from warpbook_labs.gpu.driver import Device
from warpbook_labs.gpu.errors import BadArguments
from warpbook_labs.gpu.jobs import CaseOutcome, device_case
from warpbook_labs.gpu.kernels import poison
from warpbook_labs.gpu.tools import Tools
from warpbook_labs.lab.loaded import LoadedLab
from warpbook_labs.results.device import DeviceCase

#: of the launches of one case
PATIENCE_S = 5.0


def try_case(
    tools: Tools,
    loaded: LoadedLab,
    cubin: bytes,
    case: DrawnCase,
    prepared: Callable[[], Prepared],
) -> DeviceCase:
    """Run one case, with variables and memory as new.

    Args:
        prepared: gives it with its numbers; it may raise `BadRule`.

    Raises:
        Crashed: the GPU stopped the kernel.
        Hung: it did not end.
    """
    try:
        outcome = _tried(tools, cubin, prepared(), _off_by(loaded, case))
    except (BadArguments, BadRule) as problem:
        outcome = CaseOutcome("launch", str(problem))
    return device_case(case, outcome)


def _tried(
    tools: Tools, cubin: bytes, prepared: Prepared, off_by: dict[str, int]
) -> CaseOutcome:
    device: Device = tools.device
    memory = prepared.run.memory
    arena = Arena(tools, memory, off_by)
    arena.renew()
    for buffer in memory:
        if buffer.data:
            values = np.frombuffer(buffer.data, np.uint8)
            device.upload(arena.addresses[buffer.name], values)
    program = device.load(cubin)
    try:
        for launch in prepared.run.launches:
            device.launch(device.prepare(program, launch, arena.addresses))
        device.wait(PATIENCE_S)
        stray = arena.stray()
        outcome = CaseOutcome("red zone", stray) if stray else None
        outcome = outcome or _compared(device, prepared, arena)
    except (BadArguments, BadRule) as problem:
        outcome = CaseOutcome("launch", str(problem))
    # not after a crash or a hang: the driver would wait for what does not end
    program.unload()
    arena.free()
    return outcome


def _compared(device: Device, prepared: Prepared, arena: Arena) -> CaseOutcome:
    left: dict[str, execution.Memory] = {}
    for buffer in prepared.run.memory:
        held = device.download(arena.addresses[buffer.name], buffer.size_bytes)
        if buffer.data is not None and not buffer.is_told:
            if held.tobytes() != buffer.data:
                words = f"It writes `{buffer.name}`, which is an input."
                return CaseOutcome("input", words)
        elif buffer.is_told:
            unwritten = None
            if buffer.data is None:
                unwritten = _first_unwritten(held, prepared, arena, buffer.name)
            left[buffer.name] = execution.Memory(
                buffer.name,
                buffer.size_bytes,
                held.tobytes(),
                first_unwritten=unwritten,
            )
    wrong = prepared.wrong(left)
    if wrong is not None:
        return CaseOutcome("wrong", wrong_words(wrong), wrong)
    return CaseOutcome("", "")


def _first_unwritten(
    held: np.typing.NDArray[np.uint8], prepared: Prepared, arena: Arena, name: str
) -> int | None:
    """Find the first element that is still as it was poisoned."""
    place = arena.places[name]
    dtype = np.dtype(prepared.dtype_of(name))
    if dtype.itemsize < 4 and dtype.kind != "f":
        # so small a number may be right by chance
        return None
    was = poison(place.size_bytes, arena.key, place.begin)
    same = (held == was).reshape(-1, dtype.itemsize).all(axis=1)
    places = np.flatnonzero(same)
    return int(places[0]) * dtype.itemsize if len(places) else None


def _off_by(loaded: LoadedLab, case: DrawnCase) -> dict[str, int]:
    """Have some buffers of some hidden cases begin one element off."""
    if not (loaded.lab.hidden.unaligned and case.is_hidden):
        return {}
    rng = random.Random(secrets.randbits(64))
    return {
        parameter.name: np.dtype(parameter.dtype).itemsize * rng.randrange(2)
        for parameter in loaded.lab.parameters
        if parameter.shape
    }

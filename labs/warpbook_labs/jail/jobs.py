"""What is done in the jail: asked and answered in messages, trusted by nobody."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from warpbook_labs.nvrtc import CompileError, compile_to_ptx
from warpbook_labs.ptx.errors import BadLaunch, PtxError
from warpbook_labs.ptx.findings import Report
from warpbook_labs.ptx.lanes import Dim
from warpbook_labs.ptx.machine import MAX_STEPS, Machine
from warpbook_labs.ptx.spaces import Buffer


class Compile(Struct, frozen=True, tag="compile"):
    """Compile CUDA C++ to PTX."""

    source: str
    architecture: str = "compute_90"
    options: tuple[str, ...] = ()


class Memory(Struct, frozen=True):
    """A buffer of global memory."""

    name: str
    size_bytes: int
    #: None: nobody has written it
    data: bytes | None = None


class BufferArgument(Struct, frozen=True, tag="buffer"):
    """The address of a buffer."""

    name: str


class NumberArgument(Struct, frozen=True, tag="number"):
    """A number as it lies in memory."""

    data: bytes


class Launch(Struct, frozen=True):
    """One launch of a kernel."""

    kernel: str
    grid: Dim
    block: Dim
    arguments: tuple[BufferArgument | NumberArgument, ...]
    dynamic_shared_bytes: int = 0


class Interpret(Struct, frozen=True, tag="interpret"):
    """Run kernels on the processor, one launch after the other."""

    ptx: str
    memory: tuple[Memory, ...]
    launches: tuple[Launch, ...]
    max_steps: int = MAX_STEPS


Job = Compile | Interpret


class Compiled(Struct, frozen=True, tag="compiled"):
    """The program, and the compiler's warnings."""

    ptx: str
    log: str


class Interpreted(Struct, frozen=True, tag="interpreted"):
    """What each launch told, and what the buffers hold in the end."""

    reports: tuple[Report, ...]
    memory: tuple[Memory, ...]


class Refused(Struct, frozen=True, tag="refused"):
    """It can't be done; the message is for the author of the source."""

    message: str


Result = Compiled | Interpreted | Refused


def prepare() -> None:
    """Load all that jobs need, which no file can be opened for later."""
    ptx = compile_to_ptx('extern "C" __global__ void f(int* x) { *x = 1; }').ptx
    machine = Machine(ptx)
    machine.run("f", (1, 1, 1), (32, 1, 1), [machine.empty("x", 4)])


def do(job: Job) -> Result:
    """Do a job."""
    try:
        if isinstance(job, Compile):
            compiled = compile_to_ptx(job.source, job.architecture, job.options)
            return Compiled(compiled.ptx, compiled.log)
        return _interpret(job)
    except (CompileError, PtxError) as problem:
        return Refused(str(problem))


def _interpret(job: Interpret) -> Interpreted:
    machine = Machine(job.ptx)
    buffers: dict[str, Buffer] = {}
    for each in job.memory:
        if each.data is None:
            buffers[each.name] = machine.empty(each.name, each.size_bytes)
        else:
            values = np.frombuffer(each.data, np.uint8)
            buffers[each.name] = machine.put(each.name, values)
    reports = []
    for launch in job.launches:
        report = machine.run(
            launch.kernel,
            launch.grid,
            launch.block,
            [_argument(each, buffers) for each in launch.arguments],
            launch.dynamic_shared_bytes,
            job.max_steps,
        )
        reports.append(report)
        if report.stopped:
            break
    held = tuple(
        Memory(each.name, each.size_bytes, machine.read(each, np.uint8).tobytes())
        for each in buffers.values()
    )
    return Interpreted(tuple(reports), held)


def _argument(
    argument: BufferArgument | NumberArgument, buffers: dict[str, Buffer]
) -> Any:
    if isinstance(argument, BufferArgument):
        if argument.name not in buffers:
            raise BadLaunch(f"There is no buffer `{argument.name}` to launch with.")
        return buffers[argument.name]
    return np.void(argument.data)

"""What is done in the jail: asked and answered in messages, trusted by nobody."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from warpbook_labs.compiler.nvrtc import VERBOSE, CompileError, compile_to_ptx
from warpbook_labs.engines.interpreter.ptx.errors import (
    BadLaunch,
    PtxError,
    Unsupported,
)
from warpbook_labs.engines.interpreter.ptx.lanes import Dim
from warpbook_labs.engines.interpreter.ptx.machine import MAX_STEPS, Machine
from warpbook_labs.engines.interpreter.ptx.spaces import Buffer
from warpbook_labs.engines.simulated.messages import (
    HostJudged,
    HostRan,
    Judge,
    Record,
    RunTorch,
)
from warpbook_labs.results.findings import Report

#: how a run, or a whole job, went
Status = Literal["ran", "refused", "unsupported", "not run"]


class Compile(Struct, frozen=True, tag="compile"):
    """Compile CUDA C++ to PTX, and for a real architecture, "sm_90", to its cubin."""

    source: str
    architecture: str = "compute_90"
    options: tuple[str, ...] = ()
    #: compiled once more for this one, to tell what its kernels take; "" is not asked
    resources_for: str = ""
    #: that the source may include, by name
    headers: dict[str, bytes] = {}


class Memory(Struct, frozen=True):
    """A buffer of global memory."""

    name: str
    size_bytes: int
    #: None: nobody has written it
    data: bytes | None = None
    #: what it holds in the end is told
    is_told: bool = True
    #: of a result: the first byte that nobody has written
    first_unwritten: int | None = None
    #: of its elements, which Triton asks
    dtype: str = "uint8"
    #: how far off the alignment of a buffer it begins
    off_bytes: int = 0


class BufferArgument(Struct, frozen=True, tag="buffer"):
    """The address of a buffer."""

    name: str


class NumberArgument(Struct, frozen=True, tag="number"):
    """A number as it lies in memory."""

    data: bytes
    dtype: str = "uint8"


class IntegerArgument(Struct, frozen=True, tag="integer"):
    """A whole number, as wide as the kernel's parameter."""

    value: int


Argument = BufferArgument | NumberArgument | IntegerArgument


class Launch(Struct, frozen=True):
    """One launch of a kernel."""

    kernel: str
    grid: Dim
    block: Dim
    arguments: tuple[Argument, ...]
    dynamic_shared_bytes: int = 0
    #: of Triton: numbers by parameter or option
    constants: tuple[tuple[str, int], ...] = ()

    @property
    def even(self) -> tuple[int, ...]:
        """Tell which arguments are whole numbers that 16 divides."""
        return tuple(
            place
            for place, each in enumerate(self.arguments)
            if isinstance(each, IntegerArgument) and each.value % 16 == 0
        )

    @property
    def entry(self) -> str:
        """Name the compiled kernel; Triton makes one for each kind of numbers."""
        if not self.constants:
            return self.kernel
        numbers = [f"{name}_{number}" for name, number in self.constants]
        even = [f"even_{place}" for place in self.even]
        return "__".join([self.kernel, *numbers, *even]).replace("-", "m")


class Run(Struct, frozen=True):
    """Memory, and launches one after the other."""

    memory: tuple[Memory, ...]
    launches: tuple[Launch, ...]


class Interpret(Struct, frozen=True, tag="interpret"):
    """Run kernels on the processor, each run with memory of its own."""

    ptx: str
    runs: tuple[Run, ...]
    #: of each launch
    max_steps: int = MAX_STEPS
    #: of the processor, with the start of the process, and by the clock, of this job
    processor_s: float = math.inf
    wall_s: float = math.inf


class InterpretTriton(Struct, frozen=True, tag="interpret triton"):
    """Run Triton kernels on the processor, each run with memory of its own."""

    source: str
    runs: tuple[Run, ...]
    #: of the processor, with the start of the process
    processor_s: float = math.inf


class Asked(Struct, frozen=True):
    """One call of a learner's function, with plain data."""

    function: str
    arguments: tuple[Any, ...]


class Call(Struct, frozen=True, tag="call"):
    """Call functions of a learner's Python, one after the other."""

    source: str
    calls: tuple[Asked, ...]
    #: each may take so long
    call_s: float = 1.0


class Variant(Struct, frozen=True):
    """A Triton kernel with numbers that are fixed when it is compiled."""

    kernel: str
    #: what it is to be called
    entry: str
    #: of the other parameters, in order, such as "*float32" and "int32"
    types: tuple[str, ...]
    constants: tuple[tuple[str, int], ...]
    #: which of the others are numbers or addresses that 16 divides
    even: tuple[int, ...] = ()


class CompileTriton(Struct, frozen=True, tag="compile triton"):
    """Compile Triton to PTX for a real architecture."""

    source: str
    architecture: str
    variants: tuple[Variant, ...]


Job = (
    Compile
    | Interpret
    | InterpretTriton
    | CompileTriton
    | Call
    | RunTorch
    | Record
    | Judge
)

#: the module that does a job, by the job's type; only this one is loaded
WORK: dict[type, str] = {
    Compile: "warpbook_labs.sandbox.jobs",
    Interpret: "warpbook_labs.sandbox.jobs",
    InterpretTriton: "warpbook_labs.engines.interpreter.triton.running",
    CompileTriton: "warpbook_labs.engines.interpreter.triton.compiling",
    Call: "warpbook_labs.engines.answers.calling",
    RunTorch: "warpbook_labs.engines.simulated.on_cpu",
}
#: the module whose process stays warm, and does such a job in a child
WARM: dict[type, str] = dict.fromkeys(
    (RunTorch, Record, Judge), "warpbook_labs.engines.simulated.with_torch"
)


class Compiled(Struct, frozen=True, tag="compiled"):
    """The program, and the compiler's warnings."""

    ptx: str
    log: str
    #: of a real architecture: the program for it
    cubin: bytes = b""
    #: what the assembler said of each kernel, if that was asked and it could be made
    resources_log: str = ""


class Ran(Struct, frozen=True):
    """What each launch of a run told, and what its buffers hold in the end."""

    reports: tuple[Report, ...]
    memory: tuple[Memory, ...]
    #: why it could not be run, or not to its end
    refused: str = ""
    #: "unsupported" is no mistake: the interpreter does not know what a GPU does
    status: Status = "ran"
    #: the same of a second call on the same program, whose variables the first has
    #: changed; its buffers are as at first
    again: tuple[Memory, ...] = ()
    again_reports: tuple[Report, ...] = ()
    #: of "unsupported": what it is
    construct: str = ""
    #: of the source, where `refused` is about one
    line: int | None = None


class Interpreted(Struct, frozen=True, tag="interpreted"):
    """Every run."""

    runs: tuple[Ran, ...]


class Answered(Struct, frozen=True):
    """What one call gave."""

    #: in msgpack; judged as data, whatever it is
    data: bytes = b""
    #: why there is none, in words, and the line of the learner's where it happened
    problem: str = ""
    line: int | None = None
    printed: str = ""


class Called(Struct, frozen=True, tag="called"):
    """Every call."""

    answers: tuple[Answered, ...]


class Refused(Struct, frozen=True, tag="refused"):
    """It can't be done; the message is for the author of the source."""

    message: str
    status: Status = "refused"
    #: of the source, where the message is about one
    line: int | None = None


Result = Compiled | Interpreted | Called | HostRan | HostJudged | Refused


#: meets every part of the interpreter, which then has loaded what it needs: barriers
#: that some miss, races, atomics, exchanges in a warp, printing, functions, all types
_REHEARSAL = """
extern "C" __device__ int printf(const char*, ...);
__device__ __noinline__ double f(double x, int n) { return n ? x * n / 3 : x; }
extern "C" __global__ void rehearse(int* x, double* y) {
    __shared__ int held[64];
    int t = threadIdx.x;
    held[t / 2] = atomicAdd(x, 1) + atomicCAS(x, t, 3);
    if (t < 32) __syncthreads();
    y[t] = f(t, t % 3) + sinf(y[t]) + __shfl_down_sync(~0u, t, 1) + fma(y[t], 0.1, 1.0);
    if (t == 0) printf("%d %f %s", t, y[t], "x");
    x[t] = held[63 - t] % (t + 1) + __popc(t) + __brev(t) + __syncthreads_count(t);
}"""


def prepare() -> None:
    """Load all that jobs need, which no file can be opened for later."""
    machine = Machine(compile_to_ptx(_REHEARSAL).ptx)
    buffers = [machine.empty(name, 512) for name in "xy"]
    machine.run("rehearse", (2, 1, 1), (64, 1, 1), buffers)
    with contextlib.suppress(CompileError):
        compile_to_ptx("this does not compile")


def do(job: Compile | Interpret) -> Result:
    """Do a job."""
    try:
        if isinstance(job, Compile):
            compiled = compile_to_ptx(
                job.source, job.architecture, job.options, job.headers
            )
            resources_log = _resources_log(job) if job.resources_for else ""
            return Compiled(compiled.ptx, compiled.log, compiled.cubin, resources_log)
        is_over = _clock(job)
        return Interpreted(tuple(_run(job, each, is_over) for each in job.runs))
    except Unsupported as problem:
        return Refused(str(problem), "unsupported")
    except (CompileError, PtxError) as problem:
        return Refused(str(problem))


def _resources_log(job: Compile) -> str:
    """Have the assembler tell; what it refuses, the interpreter may still run."""
    options = (*job.options, VERBOSE)
    try:
        return compile_to_ptx(job.source, job.resources_for, options, job.headers).log
    except CompileError:
        return ""


def _clock(job: Interpret) -> Callable[[], bool]:
    """Start a clock that tells whether a job has had its time."""
    end_s = time.monotonic() + job.wall_s
    return lambda: time.process_time() > job.processor_s or time.monotonic() > end_s


def _run(job: Interpret, run: Run, is_over: Callable[[], bool]) -> Ran:
    if is_over():
        words = "It was not run, since a case before it took too long."
        return Ran((), (), words, "not run")
    try:
        return _launched(job, run, is_over)
    except Unsupported as problem:
        return Ran(
            (),
            (),
            str(problem),
            "unsupported",
            construct=problem.what,
            line=problem.line,
        )
    except PtxError as problem:
        return Ran((), (), str(problem), "refused")
    except MemoryError:
        raise
    except Exception as problem:  # noqa: BLE001 - `asm` says what no compiler would
        what = f"{type(problem).__name__}: {problem}"[:200]
        words = f"This interpreter can't make sense of the kernel ({what})."
        return Ran((), (), words, "unsupported")


def _launched(job: Interpret, run: Run, is_over: Callable[[], bool]) -> Ran:
    machine = Machine(job.ptx)
    buffers: dict[str, Buffer] = {}
    for each in run.memory:
        if each.data is None:
            buffers[each.name] = machine.empty(
                each.name, each.size_bytes, each.off_bytes
            )
        else:
            values = np.frombuffer(each.data, np.uint8)
            buffers[each.name] = machine.put(each.name, values, each.off_bytes)
    told = [buffers[each.name] for each in run.memory if each.is_told]

    def launched() -> tuple[Report, ...]:
        reports = []
        for launch in run.launches:
            report = machine.run(
                launch.kernel,
                launch.grid,
                launch.block,
                [_argument(each, buffers) for each in launch.arguments],
                launch.dynamic_shared_bytes,
                job.max_steps,
                is_over,
            )
            reports.append(report)
            if report.stopped:
                break
        return tuple(reports)

    reports = launched()
    held = _held(machine, told)
    if reports[-1].stopped or not machine.has_changed():
        return Ran(reports, held)
    # what the program keeps from call to call may spoil the next
    machine.put_back(buffers.values())
    again = launched()
    return Ran(reports, held, again=_held(machine, told), again_reports=again)


def _held(machine: Machine, buffers: list[Buffer]) -> tuple[Memory, ...]:
    """Give what buffers hold now."""
    return tuple(
        Memory(
            each.name,
            each.size_bytes,
            machine.read(each, np.uint8).tobytes(),
            first_unwritten=machine.first_unwritten(each),
        )
        for each in buffers
    )


def _argument(argument: Argument, buffers: dict[str, Buffer]) -> Any:
    if isinstance(argument, BufferArgument):
        if argument.name not in buffers:
            raise BadLaunch(f"There is no buffer `{argument.name}` to launch with.")
        return buffers[argument.name]
    if isinstance(argument, IntegerArgument):
        return argument.value
    return np.void(argument.data)

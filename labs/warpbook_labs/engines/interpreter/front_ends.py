"""How kernels of each language get to an interpreter, and are run on several cores."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, Literal, NamedTuple

import msgspec

from warpbook_labs.cases.execution import Run
from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.compiler.jobs import Compile, Compiled, CompileTriton, Variant
from warpbook_labs.compiler.programs import compile_job, cuda_job
from warpbook_labs.engines.interpreter.jobs import (
    Interpret,
    Interpreted,
    InterpretTriton,
    LineQuestion,
    RunResult,
)
from warpbook_labs.engines.interpreter.left_out import OmittedLines, left_out
from warpbook_labs.errors import NoGpu
from warpbook_labs.gpu.gpu import find_gpu
from warpbook_labs.lab.launch_rule import Rule
from warpbook_labs.lab.loaded import Submission
from warpbook_labs.lab.triton.tuning import configured
from warpbook_labs.results.occupancy import DEFAULT_ARCHITECTURE
from warpbook_labs.sandbox import warm
from warpbook_labs.sandbox.parent import Ended, Outcome
from warpbook_labs.sandbox.progress import Steps
from warpbook_labs.sandbox.work import Job, Limits, Refused

#: what takes longer is reported with its line, before the system ends the process
_SHARE_OF_TIME = 0.8


class FrontEnd(ABC):
    """What is compiled and interpreted of a source."""

    #: the jobs of its interpreter
    kind: ClassVar[type[Job[Interpreted]]]
    #: the jobs of its compiler
    compiler: ClassVar[type[Job[Compiled]]]

    def configurations(self, source: str) -> Sequence[str]:
        """Give the sources that a source stands for, each to be checked.

        Raises:
            BadSource: it says what can't be configured.
        """
        return (source,)

    @abstractmethod
    def build(
        self, submission: Submission, rule: Rule, cases: Sequence[DrawnCase]
    ) -> Job[Compiled]:
        """Say what is compiled.

        Raises:
            BadRule: the launch rule can't be followed.
        """

    def simpler_build(self, job: Job[Compiled]) -> Job[Compiled] | None:
        """Say what is compiled where `build` makes the compiler crash."""
        return None

    @abstractmethod
    def program(self, source: str, compiled: Compiled) -> str:
        """Give what the interpreter takes."""

    @abstractmethod
    def job(
        self, program: str, runs: tuple[Run, ...], limits: Limits
    ) -> Job[Interpreted]:
        """Say what is interpreted."""

    def asking(
        self, program: str, run: Run, limits: Limits, question: LineQuestion
    ) -> Job[Interpreted]:
        """Say what is interpreted once more to find lines."""
        job = self.job(program, (run,), limits)
        return msgspec.structs.replace(job, question=question)

    def left_out(
        self, source: str, program: str, writer: int, lines: Sequence[int]
    ) -> OmittedLines:
        """Give lines beside others that may be at fault, and are not in the program."""
        return OmittedLines()


class CudaFrontEnd(FrontEnd):
    """CUDA C++, compiled to PTX, which is interpreted."""

    kind = Interpret
    compiler = Compile

    def build(
        self, submission: Submission, rule: Rule, cases: Sequence[DrawnCase]
    ) -> Job[Compiled]:
        return msgspec.structs.replace(
            cuda_job(submission.source, rule),
            resources_for=_architecture(),
            is_for_all=True,
        )

    def simpler_build(self, job: Job[Compiled]) -> Job[Compiled] | None:
        return msgspec.structs.replace(job, resources_for="")

    def program(self, source: str, compiled: Compiled) -> str:
        return compiled.ptx

    def job(
        self, program: str, runs: tuple[Run, ...], limits: Limits
    ) -> Job[Interpreted]:
        processor_s = _SHARE_OF_TIME * limits.processor_s
        return Interpret(program, runs, processor_s=processor_s)

    def left_out(
        self, source: str, program: str, writer: int, lines: Sequence[int]
    ) -> OmittedLines:
        return left_out(source, program, writer, lines)


class TritonFrontEnd(FrontEnd):
    """Triton, interpreted as a source: its compiler refuses some of what runs."""

    kind = InterpretTriton
    compiler = CompileTriton

    def configurations(self, source: str) -> Sequence[str]:
        return configured(source)

    def build(
        self, submission: Submission, rule: Rule, cases: Sequence[DrawnCase]
    ) -> Job[Compiled]:
        shown = [case.sizes for case in cases if not case.is_hidden]
        job = compile_job(submission, rule, shown or [cases[0].sizes])
        # which numbers 16 divides changes how wide accesses are, not whether it
        # compiles; the one with the widest takes the most shared memory
        widest: dict[object, Variant] = {}
        for variant in sorted(job.variants, key=lambda variant: len(variant.even)):
            widest[variant.kernel, variant.types, variant.constants] = variant
        return msgspec.structs.replace(job, variants=tuple(widest.values()))

    def program(self, source: str, compiled: Compiled) -> str:
        return source

    def job(
        self, program: str, runs: tuple[Run, ...], limits: Limits
    ) -> Job[Interpreted]:
        return InterpretTriton(program, runs, _SHARE_OF_TIME * limits.processor_s)


def _architecture() -> str:
    """Give what kernels are compiled for: the GPU here, or a named default."""
    try:
        return find_gpu().architecture
    except NoGpu:
        return DEFAULT_ARCHITECTURE


_MOST_PROCESSES = 4

StopStatus = Ended | Literal["unsupported"]


class Stopped(Exception):
    """Not all were run; the message says why."""

    def __init__(self, message: str, status: StopStatus = "stopped") -> None:
        super().__init__(message)
        self.status = status


class Runs(NamedTuple):
    """Every run, in the order in which they were asked."""

    runs: tuple[RunResult, ...]
    #: where it was done, in words
    isolation: str


def interpret(
    front_end: FrontEnd, program: str, runs: tuple[Run, ...], limits: Limits
) -> Runs:
    """Run a program with each memory, on as many cores as may be used.

    Args:
        program: in PTX, or of Triton as a source.

    Raises:
        Stopped: not all of them could be run.
    """
    cores = len(os.sched_getaffinity(0))
    count = max(1, min(len(runs), cores, _MOST_PROCESSES))
    shares = _shares(runs, count)
    jobs = [
        front_end.job(program, tuple(runs[place] for place in share), limits)
        for share in shares
    ]
    steps = Steps(len(runs))
    with ThreadPoolExecutor(count, "warpbook-interpreter") as threads:
        outcomes = list(threads.map(lambda job: warm.run(job, limits, steps), jobs))
    by_place: dict[int, RunResult] = {}
    for share, outcome in zip(shares, outcomes, strict=True):
        by_place.update(zip(share, _interpreted(outcome).runs, strict=True))
    in_order = tuple(by_place[place] for place in range(len(runs)))
    return Runs(in_order, outcomes[0].isolation)


def _shares(runs: Sequence[Run], count: int) -> list[list[int]]:
    """Share the places of runs out, so that all processes have about as many blocks.

    Each has at least one run, and its own in their order.
    """
    blocks = [sum(math.prod(launch.grid) for launch in run.launches) for run in runs]
    shares: list[list[int]] = [[] for _ in range(count)]
    loads = [0] * count
    for place in sorted(range(len(runs)), key=lambda place: -blocks[place]):
        least = min(range(count), key=lambda at: (loads[at], len(shares[at])))
        shares[least].append(place)
        loads[least] += blocks[place]
    return [sorted(share) for share in shares]


def _interpreted(outcome: Outcome[Interpreted]) -> Interpreted:
    result = outcome.result
    if isinstance(result, Refused):
        is_unsupported = result.status == "unsupported"
        raise Stopped(result.message, "unsupported" if is_unsupported else "stopped")
    if result is None:
        raise Stopped(outcome.message, outcome.ended)
    return result

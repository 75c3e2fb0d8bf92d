"""What a jailed interpreter is asked, and what it answers."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from msgspec import Struct

from warpbook_labs.cases.execution import Memory, Run
from warpbook_labs.results.findings import Report
from warpbook_labs.sandbox.work import Job, Status, Work

#: instructions of a launch, each for many threads
MAX_STEPS = 2_000_000


class LineQuestion(Struct, frozen=True):
    """Of what the lines are asked, in a run that is done once more for it."""

    #: the value of an element; who writes where nothing is written; the address of the
    #: access that is told first, or of a line's accesses
    what: Literal["value", "nothing", "finding", "access"]
    buffer: str = ""
    #: of the element, in the buffer
    byte: int = 0
    #: that wrote it, or whose accesses they are
    line: int = 0
    #: of the second call on the same program
    is_again: bool = False


class Origin(Struct, frozen=True):
    """Lines from which something came, the nearest first."""

    lines: tuple[int, ...] = ()
    #: that wrote there, or beside it; that would have, had it been run
    writer: int = 0
    #: numbers of the launches that may write there
    launches: tuple[int, ...] = ()
    has_written: bool = True


class RunResult(Struct, frozen=True):
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
    #: of the source, where `refused` is about one
    line: int | None = None
    #: where it was asked for
    origin: Origin | None = None


class Interpreted(Struct, frozen=True, tag="interpreted"):
    """Every run."""

    runs: tuple[RunResult, ...]


class Interpret(Job[Interpreted], frozen=True, tag="interpret"):
    """Run kernels on the CPU, each run with memory of its own."""

    work: ClassVar[Work] = Work(
        "warpbook_labs.engines.interpreter.ptx.machine.running", Interpreted
    )
    ptx: str
    runs: tuple[Run, ...]
    #: of each launch
    max_steps: int = MAX_STEPS
    #: of the CPU, with the start of the process
    processor_s: float = math.inf
    #: of the only run
    question: LineQuestion | None = None


class InterpretTriton(Job[Interpreted], frozen=True, tag="interpret triton"):
    """Run Triton kernels on the CPU, each run with memory of its own."""

    work: ClassVar[Work] = Work(
        "warpbook_labs.engines.interpreter.triton.running", Interpreted
    )
    source: str
    runs: tuple[Run, ...]
    #: of the CPU, with the start of the process
    processor_s: float = math.inf
    #: of the only run
    question: LineQuestion | None = None

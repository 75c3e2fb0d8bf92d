"""What a jailed process is asked to do with host code, and what it answers."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from warpbook_labs.engines.simulated.program import Place
from warpbook_labs.lab.host_spec import HostPlace
from warpbook_labs.results.findings import Bar, Finding, HostCounts
from warpbook_labs.sandbox.work import Job, Work

_WITH_TORCH = "warpbook_labs.engines.simulated.with_torch"


class HostBuffer(Struct, frozen=True):
    """A tensor that the learner's `run` gets."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    place: HostPlace
    #: `run` may write it, and what it holds then is told
    is_written: bool
    size_bytes: int


class HostCall(Struct, frozen=True):
    """One call of `run`."""

    #: what buffers hold before it, by name; the others are left as they are
    data: dict[str, bytes]
    numbers: dict[str, int | float]


class HostCase(Struct, frozen=True):
    """One `prepare`, and calls of `run` on the same memory."""

    sizes: dict[str, int]
    buffers: tuple[HostBuffer, ...]
    calls: tuple[HostCall, ...]


class LineRequest(Struct, frozen=True):
    """Of what the lines are asked, in a case that is done once more for it."""

    #: what a call of `run` left in it, if it is that; the first call is 1
    output: str
    call: int
    #: what these lines did, the first of them before all
    lines: tuple[int, ...] = ()


class CaseRun(Struct, frozen=True):
    """What one case left."""

    #: of a run with PyTorch: by call, what buffers hold that may be written
    outputs: tuple[dict[str, bytes], ...] = ()
    #: of a recording: a `Program`, as it is sent on to who judges it
    program: bytes = b""
    #: why it is not whole, in words, and the line of the learner's where it happened
    problem: str = ""
    line: int | None = None
    #: that is something the simulated GPU does not have, which is no mistake
    is_unsupported: bool = False
    printed: str = ""
    #: it took longer than a case may
    is_too_long: bool = False
    #: the lines that were asked for, the nearest first
    lines: tuple[int, ...] = ()
    #: with these, the lines of assignments whose values nothing reads
    unread: tuple[int, ...] = ()


class HostRuns(Struct, frozen=True, tag="host ran"):
    """Every case, up to the first that took too long."""

    cases: tuple[CaseRun, ...]


class RunTorch(Job[HostRuns], frozen=True, tag="run torch"):
    """Run host code with PyTorch on the CPU."""

    work: ClassVar[Work] = Work(
        "warpbook_labs.engines.simulated.on_cpu", HostRuns, _WITH_TORCH
    )
    source: str
    given: str
    cases: tuple[HostCase, ...]
    #: for each
    case_s: float
    followed: LineRequest | None = None


class RunOnCpu(RunTorch, frozen=True, tag="run on cpu"):
    """Run host code with tensors of the CPU, also where a GPU could be simulated."""

    work: ClassVar[Work] = Work("warpbook_labs.engines.simulated.on_cpu", HostRuns)


class Ask(Struct, frozen=True, tag="ask"):
    """Who runs a lab's functions on ranks wants a rank's process to be asked."""

    #: who is asked, in words: each name has a process of its own
    process: str
    #: a `BeginRank` or a `GoOn`
    content: bytes


class RunOnRanks(RunTorch, frozen=True, tag="run on ranks"):
    """Run a lab's `run`, which has each rank of some functions asked for its steps.

    The source is only handed on to these.
    """

    work: ClassVar[Work] = Work(
        "warpbook_labs.engines.simulated.on_cpu", HostRuns | Ask
    )
    #: what `prepare` returns, by name
    functions: tuple[str, ...] = ()


class BeginRank(Struct, frozen=True, tag="begin rank"):
    """Begin one function on one rank."""

    source: str
    given: str
    case_s: float
    #: without what buffers hold
    case: HostCase
    #: which of the functions that `prepare` returns
    place: int
    rank: int
    size: int
    #: as `packed` gives them, behind `comm`
    arguments: bytes


class GoOn(Struct, frozen=True, tag="go on"):
    """Give a rank what it awaits, packed."""

    answer: bytes


class Awaited(Struct, frozen=True, tag="awaited"):
    """A rank awaits an exchange with others."""

    kind: Literal["all_reduce", "all_gather", "reduce_scatter", "send", "receive"]
    #: a tensor, packed
    x: bytes
    peer: int | None
    line: int
    #: since the last message
    printed: str


class Returned(Struct, frozen=True, tag="returned"):
    """A rank's function returned this, packed."""

    result: bytes
    printed: str


class Fell(Struct, frozen=True, tag="fell"):
    """A rank's function did not come to its end; see `CaseRun`."""

    problem: Annotated[str, Meta(min_length=1)]
    line: int | None
    is_unsupported: bool
    is_too_long: bool
    printed: str


class Record(Job[HostRuns], frozen=True, tag="record"):
    """Run host code with a PyTorch that records what it is asked of a GPU."""

    work: ClassVar[Work] = Work(_WITH_TORCH, HostRuns)
    source: str
    given: str
    cases: tuple[HostCase, ...]
    case_s: float
    followed: LineRequest | None = None


class Buffer(Struct, frozen=True):
    """A parameter of a lab that is memory, as the lab says."""

    name: str
    place: Place
    dtype: str
    shape: tuple[int, ...]
    is_input: bool
    is_output: bool


class Trial(Struct, frozen=True):
    """A program, and the inputs that count."""

    #: a `Program`, which anybody may have written
    program: bytes
    buffers: tuple[Buffer, ...]
    #: for each call of `run` what the inputs hold
    calls: tuple[dict[str, bytes], ...]


class Verdict(Struct, frozen=True):
    """What came of one program."""

    #: why it was not done, or not to its end, in words
    refused: str = ""
    #: by call, what the outputs hold
    outputs: tuple[dict[str, bytes], ...] = ()
    #: by call, the first element that was never written, by output that has one
    unwritten: tuple[dict[str, int], ...] = ()
    #: by call and output, for each 4 bytes the line that wrote them last, and the line
    #: that computed them, both as uint16; 0 where it is not known
    writers: tuple[dict[str, tuple[bytes, bytes]], ...] = ()
    #: by call and output, the lines from which its values came, the nearest first
    sources: tuple[dict[str, tuple[int, ...]], ...] = ()
    findings: tuple[Finding, ...] = ()
    #: by call
    counts: tuple[HostCounts, ...] = ()
    #: by call and count, the lines that most of it comes of
    count_lines: tuple[dict[str, tuple[int, ...]], ...] = ()
    bars: tuple[Bar, ...] = ()
    #: the line where Python first looked at numbers that come of the inputs
    first_look: int | None = None
    convolution_percents: dict[str, int] = {}


class HostVerdicts(Struct, frozen=True, tag="host judged"):
    """Every program."""

    verdicts: tuple[Verdict, ...]


class Judge(Job[HostVerdicts], frozen=True, tag="judge"):
    """Run recorded programs on the simulated GPU."""

    work: ClassVar[Work] = Work(
        "warpbook_labs.engines.simulated.with_torch", HostVerdicts
    )
    trials: tuple[Trial, ...]

"""What a jailed process is asked to do with host code, and what it answers."""

from __future__ import annotations

from msgspec import Struct

from warpbook_labs.host_spec import HostPlace
from warpbook_labs.simulated.program import Program


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


class RunTorch(Struct, frozen=True, tag="run torch"):
    """Run host code with PyTorch on the processor."""

    source: str
    given: str
    cases: tuple[HostCase, ...]
    #: for each
    case_s: float


class Record(Struct, frozen=True, tag="record"):
    """Run host code with a stand-in for PyTorch that records what it is asked."""

    source: str
    given: str
    cases: tuple[HostCase, ...]
    case_s: float


class Left(Struct, frozen=True):
    """What one case left."""

    #: of a run with PyTorch: by call, what buffers hold that may be written
    outputs: tuple[dict[str, bytes], ...] = ()
    #: of a recording
    program: Program | None = None
    #: why it is not whole, in words, and the line of the learner's where it happened
    problem: str = ""
    line: int | None = None
    printed: str = ""
    #: it took longer than a case may
    is_too_long: bool = False


class HostRan(Struct, frozen=True, tag="host ran"):
    """Every case, up to the first that took too long."""

    cases: tuple[Left, ...]

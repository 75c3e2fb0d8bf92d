"""Where the warps of kernels waited, by line of their source, as CUPTI sampled them.

A sample is one warp at one instruction, and the reason why it did not go on. Names,
paths and sources come from the profiled program: views must escape them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

_Count = Annotated[int, Meta(ge=0, lt=1 << 53)]
_Line = Annotated[int, Meta(ge=1, lt=1 << 31)]

#: "denied": the driver gives counters only to administrators; "held": another tool
#: has the sampler; "unsupported": this device, or this machine, has none; "refused":
#: the cell can't be run on copies; "failed": it was stopped; "nothing": no kernel ran,
#: or none was sampled
State = Literal[
    "sampled", "denied", "held", "unsupported", "refused", "failed", "nothing"
]

#: what a kernel's lines are of; "" is a kernel without a line table
Language = Literal["triton", "cuda", "inductor", ""]

#: what a saved trace keeps them by, beside its events
STALLS_KEY = "warpbook_stalls"
#: of `reasons`: the warp's instruction was issued, so it did not wait
SELECTED = "selected"


class Place(Struct, frozen=True):
    """A line of a file."""

    #: position in `Stalls.files`
    file: _Count
    #: from 1
    line: _Line


class SourceFile(Struct, frozen=True):
    """A source that lines are of."""

    #: as a person knows it: "train.py", "cell", "kernel.cu"
    name: str
    #: empty where it is not here, or too long
    text: str
    #: SHA-256 of its text in hexadecimal; empty without one
    digest: str


class LineStalls(Struct, frozen=True):
    """All samples of one line of one kernel, with what was inlined there."""

    #: position in `Stalls.files`
    file: _Count
    #: from 1
    line: _Line
    #: the sum of `reasons`
    samples: _Count
    #: by CUPTI's short name: "long_scoreboard", "barrier", ...; those in which no warp
    #: was issued (`*_not_issued`) are within
    reasons: dict[str, _Count]


class KernelStalls(Struct, frozen=True):
    """All samples of one kernel."""

    name: str
    #: that were sampled
    launches: _Count
    #: the sum of `reasons`
    samples: _Count
    #: of the whole kernel, as in `LineStalls`
    reasons: dict[str, _Count]
    #: most samples first; where there are many, those with the fewest are left out
    lines: tuple[LineStalls, ...]
    #: samples that have no line
    unattributed: _Count
    language: Language
    #: lines of Python that `torch.compile` made it of, as far as Inductor tells
    origins: tuple[Place, ...] = ()


class Stalls(Struct, frozen=True):
    """What a sampled run showed, or why there is none."""

    state: State
    #: one sentence: how it was run, or what to do about that there is none
    note: str
    #: the GPU's name; empty where it is not known
    device: str = ""
    #: of the multiprocessors' clock, from one sample to the next; 0 without samples
    period_cycles: _Count = 0
    #: that the sampled run took
    seconds: float = 0.0
    #: samples that found no room
    dropped: _Count = 0
    #: most samples first
    kernels: tuple[KernelStalls, ...] = ()
    files: tuple[SourceFile, ...] = ()

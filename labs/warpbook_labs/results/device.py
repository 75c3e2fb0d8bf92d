"""What a GPU made of a submission."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from warpbook_labs.cases.comparison import WrongElement
from warpbook_labs.results.measurements import Conditions, LimitCard, Ratio
from warpbook_profiler.model.stalls import Stalls

#: "red zone": it wrote beside its buffers; "input": it wrote what it may only read;
#: "crash": the GPU stopped it; "hang": it did not end; "launch": it can't be launched;
#: of host code, "raised": an exception; "goes on": it works after it said it was done
Kind = Literal[
    "",
    "wrong",
    "red zone",
    "input",
    "crash",
    "hang",
    "launch",
    "not run",
    "raised",
    "goes on",
]

SpeedStatus = Literal[
    "fast enough", "too slow", "too noisy to tell", "too busy", "not graded"
]


class DeviceCase(Struct, frozen=True):
    """How one case went on the GPU."""

    about: str
    is_hidden: bool
    passed: bool
    kind: Kind = ""
    #: in words; empty if it passed
    message: str = ""
    #: of a case that the learner sees
    sizes: dict[str, int] | None = None
    wrong: WrongElement | None = None


class SpeedResult(Struct, frozen=True):
    """How fast it is beside a baseline of the same run, and beside this GPU's limit."""

    status: SpeedStatus
    #: in words
    message: str
    sizes: dict[str, int]
    #: of one call: the middle of all
    learner_ns: float | None = None
    baseline_ns: float | None = None
    limit_ns: float | None = None
    #: time of the baseline over time taken
    of_baseline: Ratio | None = None
    #: time at the limit that was measured over time taken
    of_limit: Ratio | None = None
    #: what full marks want
    wanted_of_baseline: float | None = None
    wanted_of_limit: float | None = None
    #: timed calls of the submission; the output of each was checked
    calls: int = 0
    #: of these, how many the lab's own Python checked, on the CPU
    checked_on_host: int = 0
    #: trials that something disturbed, and that were done again
    discarded: int = 0
    #: of the GPU, while it was timed
    conditions: Conditions | None = None


class DeviceResult(Struct, frozen=True):
    """All that a GPU made of a submission."""

    gpu: str
    #: such as "sm_90"
    architecture: str
    cases: tuple[DeviceCase, ...] = ()
    right: int = 0
    of: int = 0
    speed: SpeedResult | None = None
    limit_card: LimitCard | None = None
    #: for a person to judge; they take nothing off
    flags: tuple[str, ...] = ()
    #: of host code: how the learner's process was shut in, in words
    isolation: str = ""
    #: of one call of the timed sizes, after all others; None where none was sampled
    stalls: Stalls | None = None

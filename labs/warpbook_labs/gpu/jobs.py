"""What the trusted process is asked, and what it tells line by line."""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import Struct

from warpbook_labs.cases.comparison import WrongElement
from warpbook_labs.cases.sampling import DrawnCase
from warpbook_labs.results.device import DeviceCase, Kind, SpeedResult
from warpbook_labs.results.measurements import LimitCard
from warpbook_profiler.model.stalls import Stalls


class CaseOutcome(NamedTuple):
    """What a case came to."""

    kind: Kind
    message: str
    wrong: WrongElement | None = None


def device_case(case: DrawnCase, outcome: CaseOutcome) -> DeviceCase:
    """Tell of a case what a learner may know."""
    sizes = None if case.is_hidden else dict(case.sizes)
    passed = not outcome.kind
    return DeviceCase(
        case.about,
        case.is_hidden,
        passed,
        outcome.kind,
        outcome.message,
        sizes,
        outcome.wrong,
    )


#: what timed calls are called among the cases
TIMED_CALLS = "timed calls"


class Request(Struct, frozen=True):
    """Check a submission on the GPU, and time it."""

    #: of the lab, with its reference and its baseline
    folder: str
    source: str
    cases: tuple[DrawnCase, ...]
    is_timed: bool = False
    limit_card: LimitCard | None = None


class GoOn(Struct, frozen=True):
    """Time it now, if that was asked: nothing else needs the CPU any more."""


class Began(Struct, frozen=True, tag="began"):
    """The process can use the GPU."""

    gpu: str
    architecture: str
    #: processes beside it that use the GPU for it, in the host lane
    pids: tuple[int, ...] = ()
    #: how a learner's process is shut in there, in words
    isolation: str = ""


class Trying(Struct, frozen=True, tag="trying"):
    """It begins with a case, or with a step in words."""

    step: str
    case: int | None = None


class Tried(Struct, frozen=True, tag="tried"):
    """A case is done."""

    result: DeviceCase


class Timed(Struct, frozen=True, tag="timed"):
    """It was timed."""

    result: SpeedResult
    flags: tuple[str, ...] = ()
    #: by `time.monotonic_ns`, which processes share
    since_ns: int = 0
    until_ns: int = 0


class Sampled(Struct, frozen=True, tag="sampled"):
    """It was sampled in one more call, when nothing was timed or judged any more."""

    stalls: Stalls


class Ended(Struct, frozen=True, tag="ended"):
    """Nothing more will come; "crash" and "hang" happened at what it tried last."""

    how: Literal["done", "crash", "hang", "problem", "launch"]
    message: str = ""


Message = Began | Trying | Tried | Timed | Sampled | Ended

"""What a rule proposes: a change in words, and the edits that stand for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from warpbook_profiler.advice.evidence import Evidence
from warpbook_profiler.advice.ways import Ways
from warpbook_profiler.events.columns import Int64s


@dataclass(frozen=True)
class Proposal:
    """A change before its time is known; see `Change` for what fields mean.

    Its time is a range, unless `is_bound`: then how much more new host code or unknown
    work takes, nobody knows. Without `ways` nothing is known. `reason` says why.
    """

    name: str
    title: str
    evidence: str
    ways: Ways | None
    is_bound: bool = False
    reason: str = ""
    operator: str | None = None
    line: int | None = None
    #: the cell's whole source after it; empty where no edit of it is sure
    code: str = ""
    #: what the trace does not tell and its time depends on, beside the host
    depends_on: str = ""
    #: without `ways`, what it is about: positions among the events on the GPU
    events: Int64s | None = None
    #: shown even where it gains nothing, since a person would expect a gain of it
    is_shown_without_gain: bool = False
    #: results are less exact; of several such changes a person makes one
    rounds: bool = False
    #: why it gains nothing, where another reason is known than the replay's
    no_gain: str = ""


Rule = Callable[[Evidence], Iterator[Proposal]]

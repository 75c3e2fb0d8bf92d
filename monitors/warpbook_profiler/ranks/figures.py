"""How the ranks of a job stand to one another, as it travels; it needs no NumPy."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class RankTime(Struct, frozen=True):
    """Where the window of one rank went, in ns; None is "not known"."""

    rank: int
    window_ns: int
    compute_ns: int | None
    communication_ns: int | None
    #: communication while the GPU computes nothing else
    exposed_ns: int | None
    idle_ns: int | None


class Arrival(Struct, frozen=True):
    """How one rank came to the collectives; times are behind the others' median."""

    rank: int
    #: of the aligned collectives, at how many it was the last, and clearly so
    last: int
    #: of these, together, in the middle, and the longest
    late_ns: int
    late_median_ns: int
    late_most_ns: int
    #: its clock against that of the first rank, which was taken off
    clock_offset_ns: int


class Alignment(Struct, frozen=True):
    """The ranks' times on one axis."""

    #: what was aligned: kernels, or work of threads of the host
    where: Literal["GPU", "host"]
    collectives: int
    #: collectives end at the same time on all ranks, but for so much (nine of ten)
    uncertainty_ns: int
    arrivals: tuple[Arrival, ...]
    #: the rank that the others wait for
    straggler: int | None
    #: one line: who comes last, by how much, how often, and why as far as is known
    sentence: str
    #: what could not be aligned
    left_out: tuple[str, ...] = ()

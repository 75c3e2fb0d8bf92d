"""A change that is advised, as it travels to every view; nothing is computed here."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

#: "predicted": a range; "not below": new host code decides how much more it takes;
#: "unknown": nothing is known before a trial
Basis = Literal["predicted", "not below", "unknown"]

#: of the bare run; a smaller gain, as usual, is none that one would see
LEAST_GAIN = 0.05
#: nobody tries more of one window
MOST_CHANGES = 6


class Change(Struct, frozen=True):
    """One change, with the time of the cell after it; names are the program's."""

    #: what `--try` and documents call it, "channels-last"
    name: str
    #: what to do, in one sentence
    title: str
    #: what in the trace shows it, with figures
    evidence: str
    basis: Basis
    #: the bare run after the change, as usual, and the ends of the range; only these
    #: where the host decides afterwards, of a bound only the low end, and of what is
    #: unknown nothing
    time_ns: int | None
    low_ns: int | None
    high_ns: int | None
    #: how many times as fast, at least and at most; known better than times where the
    #: host decides how long the bare run takes
    speed_low: float | None
    speed_high: float | None
    #: what decides where there is no range, or what the range rests on; may be empty
    reason: str
    #: the time after it and what decides it, in words
    sentence: str
    #: the outermost operator that it is about
    operator: str | None = None
    #: of the cell's source
    line: int | None = None
    #: the cell's whole source after the change, which binds what else it reads; empty
    #: where no edit is sure to keep what the cell computes
    code: str = ""
    #: what that changes, as the lines of a unified diff
    diff: str = ""
    #: id of the lab that teaches it, where one does
    lab: str | None = None
    #: of the window, what it makes shorter; see `Finding.part`
    parts: tuple[str, ...] = ()
    #: names of work on the GPU that it makes shorter, the longest first
    slices: tuple[str, ...] = ()

    def gains(self, before_ns: int) -> bool:
        """Return whether it is known to gain what one would see, or nothing is known.

        Args:
            before_ns: what the bare run takes now.
        """
        after_ns = self.low_ns if self.time_ns is None else self.time_ns
        return after_ns is None or after_ns <= (1 - LEAST_GAIN) * before_ns

    @property
    def gains_nothing(self) -> bool:
        """Tell whether it is named only to say that it would not help."""
        return self.speed_high == 1.0

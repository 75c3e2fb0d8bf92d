"""What changes gave that were tried on copies of a cell's state, in figures and words.

This module needs no NumPy and no torch: it travels to every view with the report.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, structs

from warpbook_monitors import units

Outcome = Literal["faster", "slower", "no difference shown", "refused"]

#: a smaller gain is told as none, however sure it is
LEAST_GAIN = 0.02
#: runs of one cell differ by less, unless one of them loads or sets things up
_SAME_RUN = 1.5
#: a first run is told if it takes so much longer than others
_LONG_NS, _MUCH_LONGER = 500_000_000, 5


class Interval(Struct, frozen=True):
    """How many times as fast the changed cell is, from 95 % of such measurements."""

    ratio: float
    low: float
    high: float


class OutputDifference(Struct, frozen=True):
    """How far the changed cell's results are from the unchanged cell's."""

    #: of the value that differs most, relative to what its dtype lets expect
    name: str
    #: its own, or "the change's dtype" where that rounds more
    dtype: str
    #: tensors and numbers that were compared
    compared: int
    largest_absolute: float
    #: of the value's own largest magnitude
    largest_relative: float
    #: what rounding in this dtype explains
    expected_relative: float
    #: of unchanged runs among themselves
    unchanged_relative: float
    #: more than the dtype, and unchanged runs, explain
    differs: bool
    #: what can't be compared, in words: another shape, a value that is missing
    mismatch: str | None = None


class Promise(Struct, frozen=True):
    """What a report said of a change before it was tried."""

    #: how many times as fast, at least and at most
    speed: tuple[float, float]
    #: the bare time that it is of
    bare_ns: int
    #: where only a bound was said: the time that it does not fall below
    bound_ns: int | None = None


class Trial(Struct, frozen=True):
    """One change to a cell: refused, or measured against the unchanged cell."""

    name: str
    outcome: Outcome
    #: all of it in words
    sentence: str
    #: why it was not measured; None if it was
    refused: str | None = None
    #: None where it was refused
    speed: Interval | None = None
    #: one unchanged and one changed run each
    pairs: int = 0
    unchanged_ns: int | None = None
    changed_ns: int | None = None
    difference: OutputDifference | None = None
    #: how many times as fast the report said it would be, at least and at most
    promised: tuple[float, float] | None = None
    #: of an edited cell the very first run, in which it may compile
    first_ns: int | None = None


class Edited(Struct, frozen=True):
    """The cell with changes made to its source, as trials beside it measured them."""

    #: what it comes to, in words
    sentence: str
    #: names of the changes that are made
    changes: tuple[str, ...] = ()
    #: of all of them; None where that was not measured
    speed: Interval | None = None
    #: the cell's source after them; empty where none was made
    code: str = ""
    #: of all of it against the cell as it is, as the lines of a unified diff
    diff: str = ""
    #: what it compiles, to be run once in a cell of its own before it; may be empty
    once: str = ""


def outcome_of(speed: Interval) -> Outcome:
    """Judge by the whole interval."""
    if speed.low >= 1 + LEAST_GAIN:
        return "faster"
    return "slower" if speed.high <= 1 / (1 + LEAST_GAIN) else "no difference shown"


def refused(name: str, reason: str) -> Trial:
    """Tell why a change was not measured."""
    return Trial(name, "refused", f"Not tried: {reason}", refused=reason)


def measured(
    name: str,
    what: str,
    speed: Interval,
    unchanged_ns: int,
    changed_ns: int,
    pairs: int,
    difference: OutputDifference,
    promise: Promise | None = None,
    first_ns: int | None = None,
) -> Trial:
    """Tell what a change gave.

    Args:
        name: of the change.
        what: the code that makes it, in a person's own cell; may be empty.
        speed: of the changed cell, over the unchanged one's.
        unchanged_ns: the median of the unchanged runs.
        changed_ns: the median of the changed ones.
        pairs: of runs.
        difference: of the results.
        promise: what the report said that it would give.
        first_ns: of the changed cell the very first run, where that is told.
    """
    outcome = outcome_of(speed)
    times = (
        f"{units.duration_ns(changed_ns)} instead of {units.duration_ns(unchanged_ns)}"
    )
    interval = f"{ratios((speed.low, speed.high))} times as fast"
    said = [f"{outcome.capitalize()}: {times} ({interval} at 95 %, {pairs:,} pairs)."]
    if promise is not None:
        said.append(_promise_words(promise, unchanged_ns))
    said.append(difference_words(difference))
    if outcome == "faster" and what:
        said.append(what)
    trial = Trial(
        name,
        outcome,
        "",
        speed=speed,
        pairs=pairs,
        unchanged_ns=unchanged_ns,
        changed_ns=changed_ns,
        difference=difference,
        promised=None if promise is None else promise.speed,
        first_ns=first_ns,
    )
    sentence = " ".join(filter(None, (*said, first_run_words(trial))))
    return structs.replace(trial, sentence=sentence)


def first_run_words(trial: Trial) -> str:
    """Tell of a first run that took much longer than later ones; else empty."""
    if trial.first_ns is None or trial.changed_ns is None:
        return ""
    if trial.first_ns < max(_LONG_NS, _MUCH_LONGER * trial.changed_ns):
        return ""
    return f"Its first run took {units.duration_ns(trial.first_ns)}."


def _promise_words(promise: Promise, unchanged_ns: int) -> str:
    if promise.bound_ns is not None:
        return f"Promised: not below {units.duration_ns(promise.bound_ns)}."
    words = f"Promised: {ratios(promise.speed)} times"
    ratio = promise.bare_ns / unchanged_ns if unchanged_ns > 0 else 1.0
    if 1 / _SAME_RUN <= ratio <= _SAME_RUN:
        return f"{words}."
    did = "more" if ratio > 1 else "less"
    whole = units.duration_ns(promise.bare_ns)
    return f"{words}, of a run of {whole}, which did {did} than these."


def difference_words(difference: OutputDifference) -> str:
    """Say whether the results are the same, and by how much they are not."""
    if difference.mismatch is not None:
        return f"The results differ: {difference.mismatch}."
    if not difference.compared:
        return "There is no result to compare."
    if difference.largest_absolute == 0:
        return "The results are the same, bit for bit."
    largest = (
        f"{difference.name} by up to {difference.largest_absolute:.2g}, "
        f"{difference.largest_relative:.1g} of its largest value, where "
        f"{difference.dtype} is expected to differ by "
        f"{difference.expected_relative:.1g}"
    )
    if difference.unchanged_relative > 0:
        largest += (
            f" and unchanged runs differ by {difference.unchanged_relative:.1g} "
            "among themselves"
        )
    if difference.differs:
        return f"The results differ: {largest}."
    return f"The results are the same but for rounding: {largest}."


def ratios(ends: tuple[float, float]) -> str:
    """Write how many times, at least and at most."""
    return " to ".join(f"{end:.3g}" if end < 100 else f"{end:,.0f}" for end in ends)

"""What `%%gpuprof --try` measured of changes to a cell, in figures and in words.

This module needs no NumPy and no torch: it travels to every view with the report.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from warpbook_monitors import units

Outcome = Literal["faster", "slower", "no difference shown", "refused"]

#: a smaller gain is told as none, however sure it is
LEAST_GAIN = 0.02


class Interval(Struct, frozen=True):
    """How many times as fast the changed cell is, from 95 % of such measurements."""

    ratio: float
    low: float
    high: float


class OutputDifference(Struct, frozen=True):
    """How far the changed cell's results are from the unchanged cell's."""

    #: of the value that differs most, relative to what its dtype lets expect
    name: str
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
    unchanged_ms: float | None = None
    changed_ms: float | None = None
    difference: OutputDifference | None = None
    #: how many times as fast the report said it would be, at least and at most
    promised: tuple[float, float] | None = None


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
    unchanged_ms: float,
    changed_ms: float,
    pairs: int,
    difference: OutputDifference,
    promised: tuple[float, float] | None = None,
) -> Trial:
    """Tell what a change gave.

    Args:
        name: of the change.
        what: the code that makes it, in a person's own cell.
        speed: of the changed cell, over the unchanged one's.
        unchanged_ms: the median of the unchanged runs.
        changed_ms: the median of the changed ones.
        pairs: of runs.
        difference: of the results.
        promised: how many times as fast the report said it would be.
    """
    outcome = outcome_of(speed)
    times = f"{units.duration(changed_ms)} instead of {units.duration(unchanged_ms)}"
    interval = f"{_times(speed.low)} to {_times(speed.high)} times as fast"
    said = [f"{outcome.capitalize()}: {times} ({interval} at 95 %, {pairs:,} pairs)."]
    if promised is not None:
        said.append(f"Promised: {_times(promised[0])} to {_times(promised[1])} times.")
    said.append(difference_words(difference))
    if outcome == "faster":
        said.append(what)
    return Trial(
        name,
        outcome,
        " ".join(said),
        speed=speed,
        pairs=pairs,
        unchanged_ms=unchanged_ms,
        changed_ms=changed_ms,
        difference=difference,
        promised=promised,
    )


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
        f"{difference.dtype} lets expect {difference.expected_relative:.1g}"
    )
    if difference.unchanged_relative > 0:
        largest += (
            f" and unchanged runs differ by {difference.unchanged_relative:.1g} "
            "among themselves"
        )
    if difference.differs:
        return f"The results differ: {largest}."
    return f"The results are the same but for rounding: {largest}."


def _times(ratio: float) -> str:
    return f"{ratio:.3g}" if ratio < 100 else f"{ratio:,.0f}"

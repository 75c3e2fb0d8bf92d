"""The time after a change, in the words that every view shows."""

from __future__ import annotations

import re

from warpbook_monitors import units
from warpbook_profiler.model.bare_run import BareRun
from warpbook_profiler.model.bare_words import took
from warpbook_profiler.model.change import Change


def sentence(change: Change, bare: BareRun, depends_on: str = "") -> str:
    """Say how long the cell takes after a change, beside what it takes now.

    Args:
        change: without a sentence yet.
        bare: what it takes now.
        depends_on: what decides where there is a range and no number.
    """
    before = took(bare)
    if change.low_ns is None:
        return _joined("Only a trial shows its gain.", change.reason)
    low = _ns(change.low_ns)
    if change.high_ns is None:
        return _joined(
            f"Takes {low} or more, the GPU's part, instead of {before}.", change.reason
        )
    if change.gains_nothing:
        return _joined(f"No gain: {before}, as before.", change.reason)
    range_ = units.duration_range_ns(change.low_ns, change.high_ns)
    if change.time_ns is None:
        told = f"{range_}, depending on {depends_on or 'the host'}, instead of {before}"
    else:
        told = f"About {_ns(change.time_ns)} ({range_}) instead of {before}"
    return _joined(f"{told}{_speeds(change)}.", change.reason)


def heading(change: Change) -> str:
    """Write a change's title, with the line that it is about and its name."""
    line = "" if change.line is None else f" (line {change.line})"
    return f"{change.title}{line} [{change.name}]"


def advised(change: Change, cause: str) -> str:
    """Write a change behind a cause, with its line where the cause does not name it."""
    line, title = change.line, change.title
    if line is not None and not re.search(rf"\bline {line}\b", cause):
        title = f"{title.removesuffix('.')} (line {line})."
    return f"{title} {change.sentence}"


def _speeds(change: Change) -> str:
    """Write how many times as fast it is, where that is a range worth a word."""
    if change.speed_low is None or change.speed_high is None:
        return ""
    low, high = _times(change.speed_low), _times(change.speed_high)
    return f", {low if low == high else f'{low} to {high}'} times as fast"


def _times(ratio: float) -> str:
    return (
        f"{ratio:.2f}"
        if ratio < 2
        else f"{ratio:.1f}"
        if ratio < 10
        else f"{ratio:.0f}"
    )


def _ns(nanoseconds: int) -> str:
    return units.duration_ns(nanoseconds)


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))

"""Is a program slower than it was? Two traces of the same work, for a CI to decide.

The answer is "slower" or "not slower" only where the whole interval of the change lies
on one side of the limit; else nothing is concluded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec
from msgspec import Struct

from warpbook_monitors import units
from warpbook_profiler.compare.comparability import (
    LEAST_SCORE,
    Comparability,
    comparability,
    work_of,
)
from warpbook_profiler.compare.compare import LEAST_RUNS, Pair, compare
from warpbook_profiler.events.columns import Columns
from warpbook_profiler.events.run import Run
from warpbook_profiler.facts.set_up import SetUpTime, without_set_up
from warpbook_profiler.facts.steps import Steps, find_steps
from warpbook_profiler.facts.trace import Trace
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.spread import Shift, ratio
from warpbook_profiler.verdict.analysis import profile

#: of what `--json` prints; it grows by one when a key's meaning changes or a key goes
SCHEMA_VERSION = 1
#: Two profiles of one code differ by no more: kernels by 1 % on an H100, all else,
#: which the profiler stretches, by half (docs/how-to/compare-runs.md says of what).
BUSY_NOISE, REST_NOISE = 0.02, 0.5
#: so many steps, evenly chosen, are enough to tell two medians apart
_MOST_STEPS = 500
_MOST_ROWS = 20
#: what explains less of the time is not told
_LEAST_SHARE = 0.001

#: all annotations of the profiler's schedule together
_STEP = "ProfilerStep#"

Verdict = Literal["slower", "not slower", "unknown"]


class Asked(Struct, frozen=True):
    """What counts as slower, and what as the same work."""

    #: how much more time is accepted, as a part of the old time
    limit: float
    #: below this score nothing is compared
    least_score: float = LEAST_SCORE
    #: how far two profiles of one code differ; None takes what is known of most
    noise: float | None = None


class Time(Struct, frozen=True):
    """How long both took, and how much more the new one does."""

    #: "steps" have a spread; a "window" has only the noise that is expected
    basis: Literal["steps", "window"]
    #: of one step (its median) or of one window, less the profiler's own
    before_ns: float
    after_ns: float
    before_steps: int
    after_steps: int
    #: new over old, less 1; and its interval
    change: float
    low: float
    high: float
    #: of a window, how far two profiles of one code are expected to differ
    noise: float | None


class Grown(Struct, frozen=True):
    """What takes more time than before, or less."""

    #: "kernel", "operator", or "idle", of which the name is the cause
    kind: Literal["kernel", "operator", "idle"]
    name: str
    #: of one step where both have steps; 0 where it is not there
    before_ns: float
    after_ns: float
    change_ns: float
    before_calls: float | None
    after_calls: float | None


class Side(Struct, frozen=True):
    """One of the traces."""

    gpu: str | None
    #: the kind of its own verdict
    verdict: str
    warnings: tuple[str, ...]
    #: left out of all times: what happens once in a process
    set_up_ns: int


class Versus(Struct, frozen=True):
    """A new trace beside an old one."""

    schema: str
    version: int
    verdict: Verdict
    sentence: str
    limit: float
    least_score: float
    comparability: Comparability
    #: counts and growth are of one step, since both traces have steps
    per_step: bool
    #: None where the traces are not compared
    time: Time | None
    #: the largest growth first, and what shrank last
    grown: tuple[Grown, ...]
    before: Side
    after: Side


@dataclass(frozen=True)
class _Read:
    """One trace, with what was made of it."""

    trace: Trace
    cell: CellProfile
    steps: Steps
    set_up: SetUpTime | None

    @property
    def side(self) -> Side:
        kind = self.cell.verdict.kind if self.cell.verdict else "unknown"
        return Side(
            self.cell.gpu_name,
            kind,
            self.cell.completeness.warnings,
            self.set_up.time_ns if self.set_up else 0,
        )


def _read(events: Columns, run: Run) -> _Read:
    # a little of it, too: only one of the two may have it
    trace, set_up = without_set_up(Trace(events, run), least_share=0.0)
    return _Read(trace, profile(trace), find_steps(trace), set_up)


def versus(
    before: tuple[Columns, Run], after: tuple[Columns, Run], terms: Asked
) -> Versus:
    """Compare a new trace with an old one.

    Args:
        before: the old trace.
        after: the new one.
        terms: what counts as slower.
    """
    old, new = _read(*before), _read(*after)
    per_step = bool(old.steps.count and new.steps.count)
    works = (work_of(read.trace, read.steps, per_step) for read in (old, new))
    alike = comparability(*works)
    why_not = _refusal(old, new, alike, terms)
    time = None if why_not else _time(old.steps, new.steps, per_step, terms)
    if time is None:
        verdict: Verdict = "unknown"
        sentence = why_not or "A trace has no time that the code took."
    else:
        verdict, sentence = _judged(time, terms.limit)
    return Versus(
        "warpbook.versus",
        SCHEMA_VERSION,
        verdict,
        sentence,
        terms.limit,
        terms.least_score,
        alike,
        per_step,
        time,
        tuple(_grown(old, new, per_step)),
        old.side,
        new.side,
    )


def _refusal(old: _Read, new: _Read, alike: Comparability, terms: Asked) -> str:
    for name, read in (("old", old), ("new", new)):
        refusal = read.cell.completeness.refusal
        if refusal:
            return f"The {name} trace can't be judged. {refusal}"
        if read.cell.gpu_name and read.cell.metrics is None and read.cell.launches:
            return f"The {name} trace holds nothing of what its GPU did."
    if alike.score >= terms.least_score:
        return ""
    least = min(
        (part for part in alike.parts if part.score is not None),
        key=lambda part: part.score or 0.0,
    )
    return (
        f"These traces are not of the same work: {units.share(alike.score)} "
        f"comparable, and {units.share(terms.least_score)} are needed. Most unlike: "
        f"{least.name} ({least.before} before, {least.after} now, "
        f"{units.share(least.score or 0.0)} the same)."
    )


def _time(old: Steps, new: Steps, per_step: bool, terms: Asked) -> Time | None:
    was, now = _positive(old), _positive(new)
    if min(len(was), len(now)) >= LEAST_RUNS:
        change = ratio(was, now)
        # the middle of all differences is that of the medians in all but odd cases
        return Time(
            "steps",
            _median(was),
            _median(now),
            old.count,
            new.count,
            *_changes(change),
            None,
        )
    old_ns = old.whole_ns / (old.count if per_step else 1)
    new_ns = new.whole_ns / (new.count if per_step else 1)
    if not old_ns or not new_ns:
        return None
    noise = terms.noise
    if noise is None:
        noise = max(_noise(old), _noise(new))
    middle = new_ns / old_ns
    change = Shift(middle / (1 + noise), middle, middle * (1 + noise))
    return Time(
        "window", old_ns, new_ns, old.count, new.count, *_changes(change), noise
    )


def _positive(steps: Steps) -> list[int]:
    """Give times of steps, no more than it takes to know their middle."""
    times = [one for one in steps.times_ns if one > 0]
    stride = max(-(-len(times) // _MOST_STEPS), 1)
    return times[::stride]


def _median(times: list[int]) -> float:
    ordered = sorted(times)
    half = len(ordered) // 2
    return (ordered[half] + ordered[~half]) / 2


def _changes(shift: Shift) -> tuple[float, float, float]:
    return shift.middle - 1, shift.low - 1, shift.high - 1


def _noise(steps: Steps) -> float:
    """Expect so much between two profiles of one code, as a part of their time."""
    busy = min(steps.busy_ns / steps.whole_ns, 1.0) if steps.whole_ns else 0.0
    return BUSY_NOISE * busy + REST_NOISE * (1 - busy)


def _judged(time: Time, limit: float) -> tuple[Verdict, str]:
    unit = " a step" if time.before_steps and time.after_steps else ""
    said = (
        f"{units.duration_ns(time.after_ns)}{unit} instead of "
        f"{units.duration_ns(time.before_ns)}, {signed_share(time.change)}"
    )
    if time.noise is None:
        interval = (
            f" (95 % interval {signed_share(time.low)} to {signed_share(time.high)}, "
            f"{time.before_steps:,} and {time.after_steps:,} steps)"
        )
    else:
        interval = (
            f" ({signed_share(time.low)} to {signed_share(time.high)}: two profiles of "
            f"the same code may differ by {units.share(time.noise)} here)"
        )
    bound = f"the limit of {signed_share(limit)}"
    if time.low > limit:
        return "slower", f"Slower: {said}{interval}, which is beyond {bound}."
    if time.high <= limit:
        return "not slower", f"Not slower: {said}{interval}, which is within {bound}."
    more = (
        "Profile more steps: schedule(active=20), with prof.step()."
        if time.noise is None
        else f"Profile at least {LEAST_RUNS} steps each, with schedule() and "
        "prof.step(), or state the noise that you know by --noise."
    )
    return "unknown", f"Can't be told from chance: {said}{interval}; {bound}. {more}"


def signed_share(change: float) -> str:
    """Write a change: "+22 %"."""
    return f"{'-' if change < 0 else '+'}{units.share(abs(change))}"


def _grown(old: _Read, new: _Read, per_step: bool) -> Iterator[Grown]:
    """Give what changed, from what grew most to what shrank most."""
    by = (old.steps.count, new.steps.count) if per_step else (1, 1)
    changes = compare(old.cell, new.cell)
    rows = [
        *_rows("idle", (one for one in changes.causes if "idle" in one.name), by),
        *_rows("kernel", changes.kernels, by),
        *_rows("operator", changes.operators, by),
    ]
    # what is left of a step is Python, of which the causes of idle time tell
    rows = [row for row in rows if row.name != _STEP]
    least_ns = _LEAST_SHARE * old.steps.whole_ns / by[0]
    rows = [row for row in rows if abs(row.change_ns) > least_ns]
    rows.sort(key=lambda row: -abs(row.change_ns))
    yield from sorted(rows[:_MOST_ROWS], key=lambda row: -row.change_ns)


def _rows(
    kind: Literal["kernel", "operator", "idle"],
    changes: Iterable[Pair],
    by: tuple[int, int],
) -> Iterator[Grown]:
    for one in changes:
        was = (one.before_ns or 0) / by[0]
        now = (one.after_ns or 0) / by[1]
        calls = one.before_calls, one.after_calls
        yield Grown(
            kind,
            one.name.removeprefix("GPU idle: "),
            was,
            now,
            now - was,
            None if kind == "idle" else (calls[0] or 0) / by[0],
            None if kind == "idle" else (calls[1] or 0) / by[1],
        )


def plain(whole: Versus) -> dict[str, object]:
    """Give what JSON holds of a comparison."""
    document: dict[str, object] = msgspec.to_builtins(whole)
    return document

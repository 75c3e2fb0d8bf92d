"""What changed between two profiles, the largest change first; the one engine of all.

Command line, notebook, server and page ask it, with the run before and the run after in
the order that a person chose. Runs that did other work are not compared. Kernels and
operators are aligned by name, and GPU work also by the path of operators that launched
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from warpbook_monitors import units
from warpbook_profiler.compare.clocks import (
    BothClocks,
    clock_cautions,
    clock_notes,
)
from warpbook_profiler.compare.likeness import (
    LEAST_SCORE,
    Likeness,
    likeness,
    words,
)
from warpbook_profiler.compare.times import (
    Time,
    certainty,
    compare_times,
    said,
)
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.report_view import ReportTable, TimeBar, TimePart
from warpbook_profiler.verdict.leading_cause import parts_by_label

#: the part of a change that one name explains at least, to be called the most of it
_MOST_SHARE = 0.5
#: of each table in a comparison that goes with a report
_MOST_ROWS = 20
_MOST_WARNINGS = 4
_REST = re.compile(r"^\([\d,]+ others\)$")
#: all annotations of the profiler's schedule together: what is left of a step is
#: Python, of which the causes of idle time tell
_STEP = "ProfilerStep#"
_IN_STEP = f"{_STEP} > "

Verdict = Literal[
    "less time", "more time", "about the same", "unknown", "not comparable"
]


class Pair(Struct, frozen=True):
    """One figure of both profiles; None where one does not have it."""

    name: str
    #: of one step, as the whole time is
    before_ns: float | None
    after_ns: float | None
    before_calls: float | None = None
    after_calls: float | None = None

    @property
    def change_ns(self) -> float:
        """Give how much more it takes now; what is not there takes nothing."""
        return (self.after_ns or 0) - (self.before_ns or 0)


class Comparison(Struct, frozen=True):
    """Two profiles, in the order that a person chose."""

    verdict: Verdict
    sentence: str
    likeness: Likeness
    #: how sure it is, in words; clocks and temperature
    notes: tuple[str, ...]
    #: what differs beside the time; the GPU itself ran faster or slower
    cautions: tuple[str, ...]
    #: None where one of them is not known
    time: Time | None
    #: busy time and the causes of idle time
    causes: tuple[Pair, ...]
    paths: tuple[Pair, ...]
    kernels: tuple[Pair, ...]
    operators: tuple[Pair, ...]
    #: of each run, what explains its time, as a part of it
    explained: tuple[tuple[TimePart, ...], tuple[TimePart, ...]]
    clocks: BothClocks
    #: as they are shown, which the server makes; empty on the way there
    bars: tuple[TimeBar, ...] = ()
    tables: tuple[ReportTable, ...] = ()


def compare(
    before: CellProfile,
    after: CellProfile,
    clocks: BothClocks = (None, None),
    *,
    least_score: float = LEAST_SCORE,
    noise: float | None = None,
    is_one_cell: bool = False,
) -> Comparison:
    """Compare two profiles.

    Args:
        before: the run to compare with.
        after: the run that is judged.
        clocks: of the time of each, where they are known.
        least_score: how alike their work must be, to conclude from their times.
        noise: how far two profiles of one code differ; None takes what is known.
        is_one_cell: both are of one cell of a notebook, which was edited in between:
            the times are compared however little of the work is alike.
    """
    alike = likeness(before.work, after.work, least_score)
    is_compared = alike.is_enough or is_one_cell
    refusal = _refusal(before, after)
    time = None if refusal else compare_times(before, after, noise)
    if time is None:
        return Comparison(
            "not comparable",
            refusal or "One of the two has no recorded time: record it again.",
            alike,
            *((), ()),
            None,
            *((), (), (), ()),
            ((), ()),
            clocks,
        )
    by = (time.before_count, time.after_count) if time.per_step else (1, 1)
    causes = _sorted(_causes(before, after, by))
    paths = _aligned(
        ((row.path, row.time_ns, row.calls) for row in before.paths),
        ((row.path, row.time_ns, row.calls) for row in after.paths),
        by,
    )
    kernels = _aligned(
        ((row.name, row.time_ns, row.calls) for row in before.kernels),
        ((row.name, row.time_ns, row.calls) for row in after.kernels),
        by,
    )
    operators = _aligned(
        _operators(before),
        _operators(after),
        by,
    )
    idle = [cause for cause in causes if cause.name != BUSY]
    # without a GPU the operators did the work
    parts = (*idle, *paths) if causes else operators
    has_gpu = bool(before.gpu_name or after.gpu_name)
    of_clocks = clock_notes(clocks) if has_gpu else ()
    notes = (*of_clocks, *_warnings(before, after))
    return Comparison(
        time.outcome if is_compared else "not comparable",
        _sentence(time, parts, alike) if is_compared else _unlike_sentence(time, alike),
        alike,
        (certainty(time), *notes) if is_compared else notes,
        (*_unlike(alike), *clock_cautions(time.change, clocks)),
        time,
        causes,
        paths,
        kernels,
        operators,
        (parts_by_label(before.findings), parts_by_label(after.findings)),
        clocks,
    )


def shortened(comparison: Comparison) -> Comparison:
    """Keep what a report can carry: the largest changes."""
    return msgspec.structs.replace(
        comparison,
        paths=comparison.paths[:_MOST_ROWS],
        kernels=comparison.kernels[:_MOST_ROWS],
        operators=comparison.operators[:_MOST_ROWS],
    )


def _refusal(before: CellProfile, after: CellProfile) -> str:
    """Say why the times are not known; empty where they are."""
    for name, run in (("before", before), ("after", after)):
        if run.completeness.refusal:
            return f"The run {name} can't be judged. {run.completeness.refusal}"
        if run.gpu_name and run.metrics is None and run.launches:
            return f"What the GPU did in the run {name} was not recorded."
        if run.work is not None and not run.work.rows and not run.work.time_ns:
            return f"The run {name} is empty: nothing was recorded in it."
    return ""


def _warnings(before: CellProfile, after: CellProfile) -> Iterator[str]:
    for name, run in (("Before", before), ("After", after)):
        for warning in run.completeness.warnings[:_MOST_WARNINGS]:
            yield f"{name}: {warning}"


def _unlike(alike: Likeness) -> Iterator[str]:
    """Say what differs beside the time."""
    if alike.score is None:
        yield (
            "It is not known whether both did the same work: neither operators nor GPU "
            "work were recorded."
        )
        return
    differing = words(alike)
    if differing:
        share = units.share(alike.score)
        yield f"The work is {share} alike. It differs in {differing}."


def _unlike_sentence(time: Time, alike: Likeness) -> str:
    """Tell both times without a conclusion."""
    score = "not known" if alike.score is None else units.share(alike.score)
    return (
        f"Not the same work ({score} alike, {units.share(alike.least_score)} needed): "
        f"{said(time)}. No conclusion is possible."
    )


BUSY = "GPU busy"
_IDLE = {
    "GPU idle: after a host synchronization": "host_synchronize_ns",
    "GPU idle: the host launched": "host_launching_ns",
    "GPU idle: the host was in operators": "host_operator_ns",
    "GPU idle: the host was in CUDA calls": "host_api_ns",
    "GPU idle: the host was in Python": "host_python_ns",
    "GPU idle: between kernels": "kernel_wait_ns",
}

#: by how many steps each side is divided
_By = tuple[int, int]


def _causes(before: CellProfile, after: CellProfile, by: _By) -> Iterator[Pair]:
    was, now = before.metrics, after.metrics
    if was is None or now is None:
        return

    def pair(name: str, was_ns: int, now_ns: int) -> Pair:
        return Pair(name, was_ns / by[0], now_ns / by[1])

    yield pair(BUSY, was.gpu_busy_ns, now.gpu_busy_ns)
    for name, field in _IDLE.items():
        was_ns, now_ns = getattr(was.idle, field), getattr(now.idle, field)
        if was_ns or now_ns:
            yield pair(name, was_ns, now_ns)
    was_ns = was.idle.other_ns - was.idle.profiler_ns
    now_ns = now.idle.other_ns - now.idle.profiler_ns
    if was_ns or now_ns:
        yield pair("GPU idle: other", was_ns, now_ns)


_Rows = Iterable[tuple[str, int, int]]


def _operators(run: CellProfile) -> _Rows:
    return (
        (row.name, row.self_ns, row.calls) for row in run.operators if row.name != _STEP
    )


def _aligned(before_rows: _Rows, after_rows: _Rows, by: _By) -> tuple[Pair, ...]:
    nothing = (None, None)
    before, after = _by_name(before_rows, by[0]), _by_name(after_rows, by[1])
    changes = []
    for name in {**before, **after}:
        was, now = before.get(name, nothing), after.get(name, nothing)
        changes.append(Pair(name, was[0], now[0], was[1], now[1]))
    return _sorted(changes)


def _by_name(rows: _Rows, steps: int) -> dict[str, tuple[float, float]]:
    sums: dict[str, tuple[float, float]] = {}
    for path, time_ns, calls in rows:
        # the rest that a profile adds up is so many in one and so many in the other
        name = _REST.sub("(others)", path.removeprefix(_IN_STEP))
        time, count = sums.get(name, (0.0, 0.0))
        sums[name] = (time + time_ns / steps, count + calls / steps)
    return sums


def _sorted(changes: Iterable[Pair]) -> tuple[Pair, ...]:
    return tuple(sorted(changes, key=lambda change: -abs(change.change_ns)))


def _sentence(time: Time, parts: Sequence[Pair], alike: Likeness) -> str:
    condition = ""
    if not alike.is_enough:
        score = units.share(alike.score or 0)
        condition = f" Valid only if both compute the same ({score} alike)."
    if time.outcome == "unknown":
        return f"Within noise: {said(time)}.{condition}"
    if time.outcome == "about the same":
        return f"About the same: {said(time)}.{condition}"
    change_ns = time.after_ns - time.before_ns
    with_it = [part for part in parts if part.change_ns * change_ns > 0]
    most = max(with_it, key=lambda row: abs(row.change_ns), default=None)
    where = ""
    # small changes of parts explain nothing of a large one
    if most is not None and abs(most.change_ns) >= _MOST_SHARE * abs(change_ns):
        where = f" Most of the change: {most.name} ({signed(most.change_ns)})."
    change = f"{units.share(abs(time.change))} {time.outcome}"
    if time.change >= 1:
        change = f"{1 + time.change:.1f} times as long"
    return f"{change}: {said(time)}.{where}{condition}"


def signed(nanoseconds: float) -> str:
    """Write a change of time."""
    sign = "-" if nanoseconds < 0 else "+"
    return f"{sign}{units.duration_ns(abs(nanoseconds))}"

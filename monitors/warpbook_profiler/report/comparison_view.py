"""Two runs beside one another as they are shown: two bars, then what differs most."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from warpbook_monitors import units
from warpbook_profiler.compare.compare import BUSY, Comparison, Pair, signed
from warpbook_profiler.compare.likeness import Likeness
from warpbook_profiler.compare.times import Time
from warpbook_profiler.model import table_cells as cells
from warpbook_profiler.model.report_view import (
    ReportTable,
    TableCell,
    TimeBar,
    TimePart,
)
from warpbook_profiler.report.profile_view import time_parts, with_rows

#: what explains less of the time is none of the largest differences
_LEAST_SHARE = 0.001
_MOST_ROWS = 12
#: between the sides of a tensor
_TIMES = re.compile(r"(?<=\d)x(?=\d)")


def shown(comparison: Comparison) -> Comparison:
    """Add bars and tables."""
    bars: tuple[TimeBar, ...] = ()
    if comparison.time is not None:
        bars = tuple(_bars(comparison.time, comparison.explained))
    return replace(comparison, bars=bars, tables=_tables(comparison))


def _bars(time: Time, sides: Iterable[Iterable[TimePart]]) -> Iterator[TimeBar]:
    """Draw both times to the same scale, each divided by what explains it."""
    times = ("Before", time.before_ns), ("After", time.after_ns)
    longest_ns = max(time.before_ns, time.after_ns)
    unit = {"runs": " without the profiler", "steps": " a step"}.get(
        time.basis, " a step" if time.per_step else ", less the profiler's own time"
    )
    for (name, time_ns), explained in zip(times, sides, strict=True):
        parts = time_parts(explained) or (TimePart(None, "not explained", 1.0),)
        yield TimeBar(
            f"{name}: {units.duration_ns(time_ns)}{unit}",
            tuple(
                replace(part, ratio=part.ratio * time_ns / longest_ns) for part in parts
            ),
        )


def _tables(comparison: Comparison) -> tuple[ReportTable, ...]:
    time, alike = comparison.time, comparison.likeness
    work = with_rows(_parts(alike), _differing(alike))
    if time is None:
        return work
    unit = " of a step" if time.per_step else ""
    times = with_rows(
        _table(f"Largest differences{unit}", "Part", _largest(comparison, time)),
        _table(f"GPU time{unit}", "Figure", comparison.causes),
        _table(f"GPU work by operators{unit}", "Operators", comparison.paths),
        _table(f"Kernels{unit}", "Kernel", comparison.kernels),
        _table(
            f"Operators on the host, own time{unit}", "Operator", comparison.operators
        ),
    )
    return (*times, *work) if alike.is_enough else (*work, *times)


def _largest(comparison: Comparison, time: Time) -> list[Pair]:
    """Choose what changed most of idle time, kernels and operators."""
    kinds = (("kernel", comparison.kernels), ("operator", comparison.operators))
    rows = [cause for cause in comparison.causes if cause.name != BUSY]
    for kind, pairs in kinds:
        rows += [replace(pair, name=f"{kind}: {pair.name}") for pair in pairs]
    least_ns = _LEAST_SHARE * time.before_ns
    rows = [row for row in rows if abs(row.change_ns) > least_ns]
    return sorted(rows, key=lambda row: -abs(row.change_ns))[:_MOST_ROWS]


def _table(title: str, name: str, pairs: Iterable[Pair]) -> ReportTable:
    pairs = list(pairs)
    has_calls = any(
        (pair.before_calls, pair.after_calls) != (None, None) for pair in pairs
    )
    header = ("Before", "After", "Change", *(("Calls",) if has_calls else ()))
    rows = tuple(
        (
            cells.words(pair.name),
            _time(pair.before_ns),
            _time(pair.after_ns),
            TableCell(signed(pair.change_ns), pair.change_ns),
            *((_calls(pair),) if has_calls else ()),
        )
        for pair in pairs
    )
    return ReportTable(title, name, header, rows)


def _time(nanoseconds: float | None) -> TableCell:
    if nanoseconds is None:
        return TableCell("none")
    return TableCell(units.duration_ns(nanoseconds), nanoseconds)


def _calls(pair: Pair) -> TableCell:
    if pair.before_calls is None and pair.after_calls is None:
        return TableCell("")
    was, now = pair.before_calls or 0, pair.after_calls or 0
    return TableCell(_changed(was, now), now - was)


def _changed(was: float, now: float) -> str:
    return f"{now:,.6g}" if was == now else f"{was:,.6g} → {now:,.6g}"


def _parts(alike: Likeness) -> ReportTable:
    """Say of each thing how much of it is the same."""
    rows = tuple(
        (
            cells.words(part.name),
            cells.words(part.before),
            cells.words(part.after),
            cells.ratio(part.score),
        )
        for part in alike.parts
    )
    score = cells.UNKNOWN if alike.score is None else units.share(alike.score)
    needed = units.share(alike.least_score)
    title = f"The same work: {score} alike, {needed} needed to conclude"
    return ReportTable(title, "Part", ("Before", "After", "The same"), rows)


def _differing(alike: Likeness) -> ReportTable:
    rows = tuple(
        (
            cells.words(f"{row.kind}: {row.name}"),
            TableCell(
                _changed(row.before_calls, row.after_calls),
                row.after_calls - row.before_calls,
            ),
            cells.words(_TIMES.sub("×", row.sizes) or cells.UNKNOWN),
            cells.words(row.dtypes or cells.UNKNOWN),
        )
        for row in alike.differing
    )
    header = ("Calls", "Sizes", "dtypes")
    return ReportTable("Called more or less often", "What", header, rows)

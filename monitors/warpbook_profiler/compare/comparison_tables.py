"""Two profiles side by side as tables; the same for terminal, notebook and page."""

from __future__ import annotations

from warpbook_monitors import units
from warpbook_profiler.compare.compare import Comparison, Pair, signed
from warpbook_profiler.model import table_cells as cells
from warpbook_profiler.model.report_view import ReportTable, TableCell


def comparison_tables(comparison: Comparison) -> tuple[ReportTable, ...]:
    """Give the tables that have rows, each with the largest change first."""
    tables = (
        _table("Whole", "Figure", (comparison.wall, *comparison.causes)),
        _table("GPU work by operators", "Operators", comparison.paths),
        _table("Kernels", "Kernel", comparison.kernels),
        _table("Operators on the host, own time", "Operator", comparison.operators),
    )
    return tuple(table for table in tables if table.rows)


def _table(title: str, name: str, pairs: tuple[Pair, ...]) -> ReportTable:
    has_calls = any(
        (pair.before_calls, pair.after_calls) != (None, None) for pair in pairs
    )
    header = ("Before", "Now", "Change", *(("Calls",) if has_calls else ()))
    rows = tuple(
        (
            cells.words(pair.name),
            _time(pair.before_ns),
            _time(pair.after_ns),
            _change(pair),
            *((_calls(pair),) if has_calls else ()),
        )
        for pair in pairs
    )
    return ReportTable(title, name, header, rows)


def _time(nanoseconds: int | None) -> TableCell:
    if nanoseconds is None:
        return TableCell("none")
    return TableCell(units.duration_ns(nanoseconds), nanoseconds)


def _change(pair: Pair) -> TableCell:
    if pair.before_ns is None and pair.after_ns is None:
        return TableCell("none")
    return TableCell(signed(pair.change_ns), pair.change_ns)


def _calls(pair: Pair) -> TableCell:
    was, now = pair.before_calls or 0, pair.after_calls or 0
    text = f"{now:,}" if was == now else f"{was:,} → {now:,}"
    return TableCell(text, now - was)

"""Lines about cells and the table of criteria, as text."""

from __future__ import annotations

from collections.abc import Sequence

from tests.gpu.exam.judging import LEAST_SAVED, Criterion, saves_nothing
from tests.gpu.exam.loading import Cell
from tests.gpu.exam.results import CellResult, Results, Times


def line(cell: Cell, result: CellResult) -> str:
    """Say in one line what a cell gave."""
    head = f"{cell.name:34s} {result.seconds:5.1f} s"
    if result.left_out:
        return f"{head} left out: {result.left_out}"
    if result.error:
        return f"{head} ERROR {' '.join(result.error.split())[:300]}"
    kinds = list(dict.fromkeys(str(profile.kind) for profile in result.profiles))
    is_right = all(kind in cell.kinds for kind in kinds)
    said = [
        f"{head} {'ok   ' if is_right else 'WRONG'} {' / '.join(kinds):14s}",
        f"bare {_ms(result.before)}, after {_ms(result.after)}, "
        f"changed {_ms(result.fixed)}",
    ]
    first = next(iter(result.profiles), None)
    if first is not None and first.bare_ms is not None:
        said.append(
            f"{first.bare_basis} {first.bare_ms:.2f} "
            f"({first.bare_low_ms or 0:.2f} to {first.bare_high_ms or 0:.2f})"
        )
    if first is not None:
        said.append(
            ", ".join(
                f"{change.name} {_promise(change.time_ms, change.low_ms)}"
                for change in first.changes[:2]
            )
            or "no change"
        )
    if result.trial is not None:
        said.append(f"--try {result.trial.name}: {result.trial.outcome}")
    for one in result.tried:
        said.append(f"--try {one.name}, promised: {one.outcome}")
    if result.applied is not None:
        changes = ", ".join(result.applied.changes) or "none"
        times = " / ".join(_ms(one) for one in result.applied.side_by_side or (None,))
        said.append(f"--apply {changes}: {times}")
    return " | ".join(said)


def _ms(times: Times | None) -> str:
    return "?" if times is None else f"{times.median_ms:.2f} ms"


def _promise(time_ms: float | None, low_ms: float | None) -> str:
    if time_ms is not None:
        return f"{time_ms:.2f}"
    return "?" if low_ms is None else f">= {low_ms:.2f}"


def table(
    cells: Sequence[Cell], results: Results, criteria: Sequence[Criterion]
) -> str:
    """Give all criteria, what is still to be run, and what has no name to be judged."""
    rows = ["| criterion | value | aim | of | | misses |", "|---|---|---|---|---|---|"]
    for criterion in criteria:
        sign = "<=" if criterion.is_at_most else ">="
        mark = "ok" if criterion.holds else "MISSED"
        rows.append(
            f"| {criterion.name} | {_value(criterion.value, criterion.name)} | {sign} "
            f"{_value(criterion.aim, criterion.name)} | {criterion.basis} | {mark} | "
            f"{', '.join(criterion.misses)} |"
        )
    missing = [cell.name for cell in cells if cell.name not in results]
    left_out = [name for name, result in results.items() if result.left_out]
    unnamed = [
        cell.name
        for cell in cells
        if not cell.changes and cell.judged != "no gain" and cell.name in results
    ]
    slower = [
        cell.name
        for cell in cells
        if cell.name in results and saves_nothing(cell, results[cell.name])
    ]
    rows += [
        "",
        f"Cells: {len(results)} run of {len(cells)}"
        + (f"; still to be run: {', '.join(missing)}" if missing else "")
        + (f"; left out: {', '.join(left_out)}" if left_out else ""),
        f"No name for the expert's change: {', '.join(unnamed) or 'none'}",
        f"The expert's change saves less than {LEAST_SAVED:.0%}, so it is no gain: "
        f"{', '.join(slower) or 'none'}",
    ]
    return "\n".join(rows)


def _value(value: float | None, name: str) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if "states" in name else f"{value:.1%}"

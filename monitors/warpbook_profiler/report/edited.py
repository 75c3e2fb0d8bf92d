"""The edited cell of `--apply` as a report shows it."""

from __future__ import annotations

from collections.abc import Iterator

from warpbook_profiler.model import table_cells as cells
from warpbook_profiler.model.cell_profile import CellProfile
from warpbook_profiler.model.report_view import EditedView, ReportTable, TableCell
from warpbook_profiler.model.trials import Trial, ratios


def edited_view(profile: CellProfile) -> EditedView | None:
    """Word it; None where nobody asked for it."""
    edited = profile.edited
    if edited is None:
        return None
    # a trial of all changes together follows those of each
    shown = (*edited.changes, "all")
    # a change may have been tried again after another
    measured = {trial.name: trial for trial in profile.trials if trial.name in shown}
    table = ReportTable(
        "What each change gave",
        "Change",
        ("Before", "After", "Times as fast", "Promised"),
        tuple(_rows(list(measured.values()))),
    )
    shown_table = table if table.rows else None
    return EditedView(edited.sentence, edited.diff, shown_table, bool(edited.code))


def _rows(trials: list[Trial]) -> Iterator[tuple[TableCell, ...]]:
    for trial in trials:
        if trial.speed is not None:
            yield (
                TableCell(trial.name),
                cells.time_ns(trial.unchanged_ns),
                cells.time_ns(trial.changed_ns),
                TableCell(
                    ratios((trial.speed.low, trial.speed.high)), trial.speed.ratio
                ),
                TableCell("" if trial.promised is None else ratios(trial.promised)),
            )

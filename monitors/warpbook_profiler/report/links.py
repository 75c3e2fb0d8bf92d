"""What belongs to what in a report: causes, changes, rows of tables, and slices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from warpbook_profiler.model.change import Change
from warpbook_profiler.model.figures import Finding
from warpbook_profiler.model.report_view import RowLinks


class RowOf(NamedTuple):
    """What a row of a table is about."""

    #: parts of the window that it is in; see `Finding.part`
    parts: tuple[str, ...] = ()
    #: what its events are called in the timeline
    slice: str = ""
    #: the operator that it is of
    operator: str | None = None
    #: id of the stalls of the kernel that it is of
    stalls: str = ""


class Links:
    """Gives ids to causes, changes and rows, and says which belong together."""

    def __init__(self, findings: Sequence[Finding], changes: Sequence[Change]) -> None:
        """Give ids to causes and changes, in their order."""
        self._findings, self._changes = findings, changes
        self._rows: dict[str, list[str]] = {}

    def rows(self, table: str, rows: Iterable[RowOf]) -> tuple[RowLinks, ...]:
        """Return the links of a table's rows, and keep them for their other ends."""
        return tuple(self._row(f"{table}-{at}", row) for at, row in enumerate(rows))

    def _row(self, row_id: str, row: RowOf) -> RowLinks:
        causes = tuple(
            cause_id(at)
            for at, finding in enumerate(self._findings)
            if finding.part in row.parts
        )
        changes = tuple(
            change_id(at)
            for at, change in enumerate(self._changes)
            if (row.slice and row.slice in change.slices)
            or (row.operator and row.operator == change.operator)
        )
        for one in filter(None, (*causes, *changes, row.stalls)):
            self._rows.setdefault(one, []).append(row_id)
        return RowLinks(row_id, causes, changes, row.slice, row.stalls)

    def rows_of(self, one: str) -> tuple[str, ...]:
        """Return the rows of an id of something else; all tables must be there."""
        return tuple(self._rows.get(one, ()))

    def changes_of(self, finding: Finding) -> tuple[str, ...]:
        """Return the changes that act on a cause."""
        return tuple(
            change_id(at)
            for at, change in enumerate(self._changes)
            if finding.part in change.parts
        )

    def causes_of(self, parts: Iterable[str]) -> tuple[str, ...]:
        """Return the causes that are these parts of the window."""
        named = set(parts)
        return tuple(
            cause_id(at)
            for at, finding in enumerate(self._findings)
            if finding.part in named
        )


def cause_id(at: int) -> str:
    """Return the id of a cause by its place."""
    return f"cause-{at}"


def change_id(at: int) -> str:
    """Return the id of a change by its place."""
    return f"change-{at}"

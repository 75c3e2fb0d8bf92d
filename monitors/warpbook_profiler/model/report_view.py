"""A report as it is shown: computed once, drawn by terminal, notebook and page.

Every text is ready to show. Names come from the profiled program: views escape them.
This module needs no NumPy, so that the server can pass reports on without loading it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from warpbook_monitors.verdict_kinds import Kind
from warpbook_profiler.model.figures import Topic


class TableCell(Struct, frozen=True):
    """One cell of a table."""

    text: str
    #: what a table is sorted by, in one unit a column; None, not known, comes last; a
    #: column without any is sorted by its texts
    value: float | None = None
    #: 0 to 1: the length of its bar; 0 draws none
    bar: float = 0.0


class ReportTable(Struct, frozen=True):
    """Rows of cells; the first column is a name, the others are figures."""

    title: str
    #: of the first column, "Kernel"
    name: str
    #: of the other columns
    header: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    #: the names are source code in its order: all of it is shown
    is_code: bool = False


class LabelledFigure(Struct, frozen=True):
    """A value with its label."""

    label: str
    value: str


class FigureGroup(Struct, frozen=True):
    """Figures that belong together."""

    title: str
    figures: tuple[LabelledFigure, ...]


class TableSection(Struct, frozen=True):
    """Tables that belong together."""

    title: str
    tables: tuple[ReportTable, ...]


class Headline(Struct, frozen=True):
    """The verdict: what to read before everything else."""

    kind: Kind
    #: what holds the code back, with its evidence
    cause: str
    #: what to change, with the time after it; empty where nothing is advised
    change: str


class TimePart(Struct, frozen=True):
    """A part of the bar that shows where the time goes."""

    #: None is not explained
    kind: Kind | None
    #: "memory-bound 97 %"
    label: str
    #: of the bar
    ratio: float


class TimeBar(Struct, frozen=True):
    """Where the time of the bare run goes."""

    #: whose time it is
    title: str
    parts: tuple[TimePart, ...]


#: id of the lab that teaches a technique, as far as the caller has labs
Labs = Mapping[Topic | None, str]


class CauseView(Struct, frozen=True):
    """One cause and what it explains."""

    kind: Kind
    #: "84 %" of the time
    share: str
    share_ratio: float
    evidence: str
    #: what may help, and what is left without the cause
    advice: str
    #: id of the lab that teaches it, where one does
    lab: str | None


class ChangeView(Struct, frozen=True):
    """One change to make."""

    name: str
    #: what to do, and at which line
    heading: str
    #: how long the code takes then
    sentence: str
    #: what in the trace shows it
    evidence: str
    #: the lines of the source that it changes; empty where no edit is sure
    diff: str
    #: id of the lab that teaches it, where one does
    lab: str | None


class TrialView(Struct, frozen=True):
    """What a change gave that was measured on copies of the cell's state."""

    name: str
    outcome: str
    sentence: str


class EditedView(Struct, frozen=True):
    """The cell with changes made to its source."""

    #: whether it is better, by measurement
    sentence: str
    #: the lines that differ; empty where no edit was made
    diff: str
    #: None where nothing was measured
    table: ReportTable | None
    #: its results are not known to differ
    can_be_placed: bool


class ReportView(Struct, frozen=True):
    """A report from its headline to its last table."""

    #: None where no verdict is possible
    headline: Headline | None
    #: None where no part of the time is explained
    time: TimeBar | None
    #: the figures to read first
    figures: tuple[LabelledFigure, ...]
    #: what to know before believing the figures
    warnings: tuple[str, ...]
    #: the one that gains most first
    changes: tuple[ChangeView, ...]
    trials: tuple[TrialView, ...]
    #: None where nobody asked for edits
    edited: EditedView | None
    #: the lines of the code with their times, if that was asked for
    lines: ReportTable | None
    #: the one that explains most first
    causes: tuple[CauseView, ...]
    sections: tuple[TableSection, ...]
    #: the figures behind the verdict
    groups: tuple[FigureGroup, ...]

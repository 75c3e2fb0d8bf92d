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


class RowLinks(Struct, frozen=True):
    """What a row of a table belongs to; ids are unique within a report."""

    id: str
    #: ids of the causes that it is part of, and of the changes that act on it
    causes: tuple[str, ...]
    changes: tuple[str, ...]
    #: what its events are called in the timeline; empty where it has none
    slice: str
    #: id of the stalls of a kernel; empty where it was not sampled
    stalls: str = ""


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
    #: of each row, in their order; empty where rows belong to nothing
    links: tuple[RowLinks, ...] = ()


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
    #: the kind in words, "compute-bound", or that kernels are far from their roof
    label: str
    #: what holds the code back, with its evidence
    cause: str
    #: what to change about it, with the time after it; empty where nothing is advised
    change: str
    #: ids of the causes that it names
    causes: tuple[str, ...]
    #: id of the change; None where it is none of the report's
    change_id: str | None


class TimePart(Struct, frozen=True):
    """A part of the bar that shows where the time goes."""

    #: None is not explained
    kind: Kind | None
    #: "memory-bound 97 %"
    label: str
    #: of the bar
    ratio: float
    #: ids of the causes in it
    causes: tuple[str, ...] = ()


class TimeBar(Struct, frozen=True):
    """Where a time goes; the parts sum to it."""

    #: which time
    title: str
    parts: tuple[TimePart, ...]


#: id of the lab that teaches a technique, as far as the caller has labs
Labs = Mapping[Topic | None, str]


class CauseView(Struct, frozen=True):
    """One cause and what it explains."""

    id: str
    kind: Kind
    #: the kind in words, as in the headline
    label: str
    #: "84 %" of the time
    share: str
    share_ratio: float
    evidence: str
    #: what may help, and what is left without the cause
    advice: str
    #: id of the lab that teaches it, where one does
    lab: str | None
    #: ids of the changes that act on it, and of the rows that are part of it
    changes: tuple[str, ...]
    rows: tuple[str, ...]


class ChangeView(Struct, frozen=True):
    """One change to make."""

    id: str
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
    #: "Acts on memory-bound 34 %."; empty where no cause is known
    acts_on: str
    #: ids of the causes and rows that it acts on
    causes: tuple[str, ...]
    rows: tuple[str, ...]


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


class StallReasonView(Struct, frozen=True):
    """Samples of a kernel with one reason."""

    #: "waits for device memory"
    words: str
    #: "84 %" of the kernel's samples
    share: str
    share_ratio: float
    #: what helps; empty where there is nothing to do
    advice: str
    #: id of the lab that teaches it, where one does
    lab: str | None


class KernelStallsView(Struct, frozen=True):
    """Where the warps of one kernel waited."""

    id: str
    name: str
    #: how many samples, and what most of its warps did
    sentence: str
    #: the one with most samples first; their shares sum to 1
    reasons: tuple[StallReasonView, ...]
    #: of each file, the lines around those with most samples
    sources: tuple[ReportTable, ...]
    #: what the lines leave out, or how to get lines
    notes: tuple[str, ...]
    #: ids of its rows in tables
    rows: tuple[str, ...]


class StallsView(Struct, frozen=True):
    """Where the warps of the kernels waited."""

    #: how they were sampled, or why they were not
    sentence: str
    #: what every share in it is of, and what to know before believing them
    notes: tuple[str, ...]
    #: the one that takes most time first
    kernels: tuple[KernelStallsView, ...]


class ReportView(Struct, frozen=True):
    """A report from its headline to its last table."""

    #: None where no verdict is possible
    headline: Headline | None
    #: what every share is of, once; empty where no time is known
    base: str
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
    #: None where nobody asked for it
    stalls: StallsView | None = None
    #: of each cause by its label, what it means
    meanings: dict[str, str] = {}

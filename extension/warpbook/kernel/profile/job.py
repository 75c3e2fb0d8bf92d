"""What `warpbook.analyze` shows of several traces: the ranks of one job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warpbook.reports.html import document_html
from warpbook.reports.text import document_text
from warpbook_monitors.plain_text import bounded
from warpbook_profiler.report.ranks_job_words import heading, job_tables, notes
from warpbook_profiler.report.report import JobReport, plain

_MOST_NAME = 60


class Job:
    """The traces of several ranks beside one another.

    Every field of `JobReport` is an attribute: `job.alignment`, `job.times`,
    `job.ranks[0].verdict`, ...
    """

    def __init__(self, figures: JobReport, files: Sequence[str]) -> None:
        """Keep the figures, and each rank's file in the order of the ranks."""
        self.figures = figures
        numbers = [one.rank for one in figures.ranks]
        are_ranks = None not in numbers and len(set(numbers)) == len(numbers)
        self._kind = "rank" if are_ranks else "trace"
        self._names = [
            str(number) if are_ranks else bounded(file, _MOST_NAME)
            for number, file in zip(numbers, files, strict=True)
        ]

    def __getattr__(self, name: str) -> Any:
        if name in JobReport.__struct_fields__:
            return getattr(self.figures, name)
        raise AttributeError(f"A job has no figure {name!r}.")

    def __dir__(self) -> list[str]:
        """List the figures too, so that they complete."""
        return [*super().__dir__(), *JobReport.__struct_fields__]

    def to_dict(self) -> dict[str, Any]:
        """Give plain dictionaries, lists and numbers, as `analyze --json` does."""
        return plain(self.figures)

    def __repr__(self) -> str:
        return document_text(*self._parts())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {
            "text/plain": repr(self),
            "text/html": document_html(*self._parts(), "Ranks of a job"),
        }

    def _parts(self) -> tuple[str, tuple[str, ...], tuple[Any, ...]]:
        verdicts = tuple(
            f"{self._kind.capitalize()} {name}: {one.verdict.kind}: "
            f"{one.verdict.sentence}"
            for name, one in zip(self._names, self.figures.ranks, strict=True)
        )
        tables = job_tables(self.figures, self._names, self._kind)
        return (
            heading(self.figures, self._kind),
            (*notes(self.figures), *verdicts),
            tables,
        )

"""What `warpbook.analyze` shows of a file of Nsight Compute."""

from __future__ import annotations

from collections.abc import Sequence

from warpbook.reports.html import document_html
from warpbook.reports.text import document_text
from warpbook_profiler.files.nsight.limiters import (
    KernelLimit,
    heading,
    limit_table,
    limiter_lines,
)


class KernelLimits:
    """The kernels of one file, each with what limits it: `limits.kernels`."""

    def __init__(self, kernels: Sequence[KernelLimit]) -> None:
        """Keep them, the longest first."""
        self.kernels = tuple(kernels)

    def __repr__(self) -> str:
        """Write them as text."""
        lines = limiter_lines(self.kernels)
        return document_text(heading(self.kernels), lines, [limit_table(self.kernels)])

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        lines, tables = limiter_lines(self.kernels), [limit_table(self.kernels)]
        said = heading(self.kernels)
        return {
            "text/plain": repr(self),
            "text/html": document_html(said, lines, tables, "Kernels, measured"),
        }
